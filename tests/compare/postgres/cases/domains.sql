-- Domains of domains, with modifiers, checks, defaults and in arrays; their source types are propagated.
-- @property column.propagate.source.type=.*
-- @property include.unknown.datatypes=true

CREATE DOMAIN d_int AS integer DEFAULT 7;
CREATE DOMAIN d_int2 AS d_int CHECK (VALUE > 0);
CREATE DOMAIN d_num AS numeric(6,3) NOT NULL;
CREATE DOMAIN d_num2 AS d_num;
CREATE DOMAIN d_char AS varchar(12);
CREATE DOMAIN d_ts AS timestamptz(2);
CREATE DOMAIN d_bit AS bit(5);
CREATE DOMAIN d_arr AS integer[];
CREATE DOMAIN d_money AS money;
CREATE DOMAIN d_uuid AS uuid;
CREATE DOMAIN d_json AS jsonb;
CREATE DOMAIN d_box AS box;
CREATE SCHEMA other;
CREATE DOMAIN other.d_text AS text;
CREATE DOMAIN "Odd Name" AS date;
CREATE TABLE plain (id d_int2 PRIMARY KEY, a d_int, b d_int2 DEFAULT 9, c d_num DEFAULT 1.5, d d_num2 DEFAULT 2, e d_char DEFAULT 'x', f d_ts, g d_bit, h d_arr,
  i d_money, j d_uuid, k d_json, l d_box, m other.d_text, n "Odd Name", o d_int[], p d_char[], q d_num2[]);
ALTER TABLE plain REPLICA IDENTITY FULL;
INSERT INTO plain (id, f, g, h, i, j, k, l, m, n) VALUES (1, '2024-01-01 01:02:03.456+00', '10101', '{1,2}', 12.5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a":1}', '(1,2),(0,0)', 'm', '2024-01-01');
INSERT INTO plain (id, a, o, p, q) VALUES (2, NULL, '{1,NULL}', '{a}', '{1.5}');
-- @run
INSERT INTO plain (id, f, g, h, i, j, k, l, m, n) VALUES (3, '2024-01-01 01:02:03.456+00', '10101', '{1,2}', 12.5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a":1}', '(1,2),(0,0)', 'm', '2024-01-01');
UPDATE plain SET a = NULL, o = '{3}', q = '{1.25, 2}';
DELETE FROM plain WHERE id = 2;
ALTER TABLE plain ADD COLUMN z d_num2 DEFAULT 3.5;
INSERT INTO plain (id) VALUES (4);
ALTER TABLE plain ALTER COLUMN a TYPE d_char USING a::text;
INSERT INTO plain (id, a) VALUES (5, 'text');
ALTER TABLE plain ALTER COLUMN e TYPE text;
UPDATE plain SET e = 'longer than twelve characters' WHERE id = 5;
