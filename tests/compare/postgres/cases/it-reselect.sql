-- Columns that are selected again by default: nulls and unchanged large values of every type, in each operation.
-- @property post.processors=reselector
-- @property post.processors.reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property post.processors.reselector.reselect.columns.include.list=public.t:data,public.j:data,public.a:data,public.b:data,public.u:data
-- @property reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property reselector.reselect.columns.include.list=public.t:data,public.j:data,public.a:data,public.b:data,public.u:data
-- @property include.unknown.datatypes=true
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 300) i$$;
CREATE TABLE t (id serial PRIMARY KEY, data text, data2 integer);
CREATE TABLE f (id integer PRIMARY KEY, data varchar(50), data2 integer);
CREATE TABLE j (id integer PRIMARY KEY, data jsonb, data2 integer);
CREATE TABLE a (id integer PRIMARY KEY, data text[], data2 integer);
CREATE TABLE b (id integer PRIMARY KEY, data bigint[], data2 integer);
CREATE TABLE u (id uuid PRIMARY KEY, data text[], data2 integer);
ALTER TABLE f REPLICA IDENTITY FULL;
INSERT INTO f VALUES (1, NULL, 1);
-- @run
-- @wait
INSERT INTO t (id, data, data2) SELECT 1, big(1), 1;
UPDATE t SET data2 = 2;
INSERT INTO j SELECT 1, to_jsonb(big(1)), 1;
UPDATE j SET data2 = 2;
INSERT INTO a SELECT 1, ARRAY[big(1)], 1;
UPDATE a SET data2 = 2;
INSERT INTO b SELECT 1, (SELECT array_agg(i * 1000003::bigint) FROM generate_series(1, 3000) i), 1;
UPDATE b SET data2 = 2;
INSERT INTO u SELECT 'b1164c91-b574-495c-9f17-c4899d88404c', ARRAY[big(1)], 1;
UPDATE u SET data2 = 2;
-- @wait
BEGIN;
INSERT INTO f VALUES (2, NULL, 1);
UPDATE f SET data = 'two' WHERE id = 2;
COMMIT;
-- @wait
DELETE FROM f;
DELETE FROM t;
