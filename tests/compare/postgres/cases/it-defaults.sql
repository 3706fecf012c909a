-- Defaults of every type, money and intervals under other handling, of names with quotes, and where SELECTs show nulls; skipped updates without a change.
-- @property decimal.handling.mode=double
-- @property interval.handling.mode=string
-- @property snapshot.select.statement.overrides=public.m
-- @property snapshot.select.statement.overrides.public.m=SELECT id, NULL AS m, n FROM public.m
-- @property column.include.list=public.(d|m|i|e|q|v).*,public.w.id, public.w.white
-- @property skip.messages.without.change=true
CREATE SCHEMA fn;
CREATE FUNCTION fn.make_uuid() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()';
CREATE TYPE "Status" AS ENUM ('DRAFT', 'it''s');
CREATE TYPE "bug.status" AS ENUM ('new', 'open');
CREATE SCHEMA test;
CREATE DOMAIN test."Status" AS integer;
CREATE TABLE d (pk serial PRIMARY KEY, dint integer DEFAULT NULL::integer, dvc1 varchar(2) DEFAULT NULL::varchar, dvc2 varchar(2) DEFAULT NULL, dvc3 varchar(10) DEFAULT 'NULL', dt date DEFAULT NULL::date, dn numeric(6,2) DEFAULT NULL, dj jsonb DEFAULT NULL::jsonb,
  u uuid DEFAULT fn.make_uuid(), cost numeric(12,0) NOT NULL DEFAULT 0.0, c2 numeric(8,3) DEFAULT 1, c3 decimal(10,2) DEFAULT 3.14, r real DEFAULT 2.5, f float8 DEFAULT 1e10, b bigint DEFAULT 1::bigint);
CREATE TABLE m (id integer PRIMARY KEY, m money NOT NULL DEFAULT 1.5, n money);
CREATE TABLE i (id serial PRIMARY KEY, title varchar(512) NOT NULL, time_limit interval DEFAULT '60 days'::interval NOT NULL, j interval NOT NULL DEFAULT 'P1Y2M3DT4H5M6S', k interval DEFAULT '-1 mon');
CREATE TABLE e (id integer PRIMARY KEY, s "Status" NOT NULL DEFAULT 'it''s', t "bug.status" DEFAULT 'new'::"bug.status", x test."Status" DEFAULT 42, sa "Status"[] DEFAULT '{DRAFT}');
CREATE TABLE q (id integer PRIMARY KEY, tr text DEFAULT 'a "b" c', td text DEFAULT '', n numeric DEFAULT 5, ts timestamptz DEFAULT '2021-03-20 14:44:28 +1', ti time DEFAULT '13:51:30.5', d date NOT NULL DEFAULT '2019-02-10', bb bit(3) NOT NULL DEFAULT B'011', bx boolean DEFAULT false);
CREATE TABLE w (id integer PRIMARY KEY, white integer, black integer);
ALTER TABLE w REPLICA IDENTITY FULL;
ALTER TABLE m REPLICA IDENTITY FULL;
INSERT INTO d (u) VALUES ('76019d1a-ad2e-4b22-96e9-1a6d6543c818');
INSERT INTO m VALUES (10, 101.10, NULL);
INSERT INTO i (title) VALUES ('a');
INSERT INTO e (id) VALUES (1);
INSERT INTO q (id) VALUES (1);
-- @run
INSERT INTO d (u, cost) VALUES ('76019d1a-ad2e-4b22-96e9-1a6d6543c819', 5.5);
INSERT INTO d (u, dvc3, c2) VALUES (NULL, NULL, NULL);
INSERT INTO m VALUES (20, '-1.50', '-92233720368547758.08');
DELETE FROM m WHERE id = 20;
INSERT INTO i (title) VALUES ('Foo');
DELETE FROM i WHERE id = 1;
INSERT INTO e (id) VALUES (2);
UPDATE e SET s = 'DRAFT', x = 43, sa = '{DRAFT,DRAFT}' WHERE id = 2;
INSERT INTO q (id) VALUES (2);
DELETE FROM q;
INSERT INTO w VALUES (1, 1, 1);
UPDATE w SET black = 2 WHERE id = 1;
UPDATE w SET white = 2 WHERE id = 1;
UPDATE w SET white = 3, black = 3 WHERE id = 1;
