-- Large values are selected again, also nulls; of rows with UUID, composite and text keys, and of one that is gone.
-- @property post.processors=reselector
-- @property reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property reselector.reselect.columns.include.list=public.t:te,public.t:jb,public.t:ta,public.t:ia,public.u:te,public.v:te,public.v:n
-- @property reselector.reselect.null.values=true
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 200) i$$;
CREATE TABLE t (id uuid PRIMARY KEY, small integer, te text, jb jsonb, ta text[], ia integer[], other text);
CREATE TABLE u (a integer, b text, te text, small integer, PRIMARY KEY (b, a));
CREATE TABLE v (id text PRIMARY KEY, te text, n integer);
ALTER TABLE t ALTER te SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL, ALTER jb SET STORAGE EXTERNAL, ALTER ta SET STORAGE EXTERNAL, ALTER ia SET STORAGE EXTERNAL;
ALTER TABLE u ALTER te SET STORAGE EXTERNAL;
INSERT INTO t VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1, big(1), to_jsonb(big(2)), ARRAY[big(3)], (SELECT array_agg(i) FROM generate_series(1, 2000) i), big(4));
INSERT INTO u VALUES (1, 'x', big(1), 1);
INSERT INTO v VALUES ('a', NULL, 1);
-- @run
UPDATE t SET small = 2;
-- @wait
UPDATE u SET small = 2;
-- @wait
UPDATE u SET a = 2;
-- @wait
INSERT INTO v VALUES ('b', NULL, NULL);
-- @wait
UPDATE v SET n = NULL WHERE id = 'a';
-- @wait
DELETE FROM t;
