-- Defaults of all types, of functions with schemas, of casts, too precise ones; set and dropped while streaming.

CREATE SCHEMA ext;
CREATE FUNCTION ext.next_id() RETURNS integer LANGUAGE sql AS 'SELECT 5';
CREATE FUNCTION make_text(a text) RETURNS text LANGUAGE sql AS 'SELECT a';
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE d (pk integer PRIMARY KEY, a integer DEFAULT ext.next_id(), b text DEFAULT make_text('x'), c text NOT NULL DEFAULT make_text('x'),
  d numeric(4,1) DEFAULT 3.14159, e numeric(8,4) NOT NULL DEFAULT '12.5', f timestamp(3) DEFAULT '2024-01-02 03:04:05.678901', g timestamptz DEFAULT '2024-01-02 03:04:05+02',
  h date DEFAULT '2024-02-29'::date, i time DEFAULT '01:02:03.4', j boolean DEFAULT true, k boolean NOT NULL DEFAULT 'f', l real DEFAULT 1.1, m float8 DEFAULT -1e-5,
  n smallint DEFAULT -7, o bigint DEFAULT 9223372036854775807, p char(5) DEFAULT 'ab', q varchar DEFAULT NULL, r uuid DEFAULT '76019d1a-ad2e-4b22-96e9-1a6d6543c818',
  s json DEFAULT '{"a": [1, "x"]}', t jsonb NOT NULL DEFAULT '{"b": {}}', u bytea DEFAULT '\x0102', v bit(3) DEFAULT B'101', w bit(1) DEFAULT B'1', x inet DEFAULT '10.0.0.1', y interval DEFAULT '1 day 02:00',
  z interval NOT NULL DEFAULT '1 year', aa mood DEFAULT 'ok', ab text DEFAULT 'a::b', ac text DEFAULT E'tab\there', ad varchar(10) DEFAULT 'x'::varchar, ae integer DEFAULT (1 + 2), af integer DEFAULT '8'::smallint,
  ag text DEFAULT current_setting('work_mem'), ah integer[] DEFAULT '{1,2}', ai integer[] NOT NULL DEFAULT ARRAY[]::integer[], aj money DEFAULT 5, ak timestamp DEFAULT '-infinity', al date DEFAULT 'epoch', am text DEFAULT '', an numeric DEFAULT 1.50, ao numeric NOT NULL DEFAULT 0,
  ap timetz DEFAULT '01:02:03+00', aq point DEFAULT '(1,2)', ar int4range DEFAULT '[1,2)', at tsvector DEFAULT 'a', au timestamptz NOT NULL DEFAULT now(), av date NOT NULL DEFAULT CURRENT_DATE, aw uuid NOT NULL DEFAULT gen_random_uuid(), ax text NOT NULL DEFAULT CURRENT_USER, ay bigint GENERATED ALWAYS AS IDENTITY, az char DEFAULT 'z', ba "char" DEFAULT 'c', bb macaddr DEFAULT '08:00:2b:01:02:03', bc oid DEFAULT 5, bd float4 NOT NULL DEFAULT 'NaN', be varbit DEFAULT B'1', bg name DEFAULT 'n')
;
-- @run
INSERT INTO d (pk, au, av, aw) VALUES (1, '2024-01-01 00:00:00+00', '2024-01-01', '76019d1a-ad2e-4b22-96e9-1a6d6543c818');
INSERT INTO d (pk, a, b, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, u, v, w, x, y, aa, ab, an, au, av, aw) VALUES (2, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2024-01-01 00:00:00+00', '2024-01-01', '76019d1a-ad2e-4b22-96e9-1a6d6543c818');
UPDATE d SET pk = 3 WHERE pk = 1;
DELETE FROM d WHERE pk = 2;
-- @wait
ALTER TABLE d ALTER COLUMN a SET DEFAULT 11, ALTER COLUMN q SET DEFAULT 'new', ALTER COLUMN n DROP DEFAULT;
INSERT INTO d (pk, au, av, aw) VALUES (4, '2024-01-01 00:00:00+00', '2024-01-01', '76019d1a-ad2e-4b22-96e9-1a6d6543c818');
ALTER TABLE d ADD COLUMN xx integer NOT NULL DEFAULT 77, ADD COLUMN yy text DEFAULT 'why';
INSERT INTO d (pk, a, yy, au, av, aw) VALUES (5, NULL, NULL, '2024-01-01 00:00:00+00', '2024-01-01', '76019d1a-ad2e-4b22-96e9-1a6d6543c818');
UPDATE d SET xx = 78 WHERE pk = 4;
DELETE FROM d WHERE pk = 5;
