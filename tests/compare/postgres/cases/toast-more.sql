-- Large values of enums, ranges, XML, hstore and others that the log does not repeat; masks and truncation on them; required ones; key changes.
-- @compare {"requires": ["hstore", "citext", "xml", "ltree"]}
-- @property hstore.handling.mode=map
-- @property include.unknown.datatypes=true
-- @property column.truncate.to.5.chars=public.t.tr
-- @property column.mask.hash.v2.SHA-256.with.salt.s=public.t.h
-- @property column.mask.with.3.chars=public.t.m
CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree;
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 200) i$$;
CREATE TYPE comp AS (a text, b text);
CREATE DOMAIN longtext AS text;
CREATE TABLE t (id integer PRIMARY KEY, v integer, tr text, h text, m varchar, ci citext, x xml, hs hstore, c comp, d longtext, ts tsvector, lt text[], hsa hstore[], cia citext[], nr numrange[], ba bytea[], fa float8[], na numeric[], ta timestamp[], ua uuid[], ja jsonb[], ca comp[], pa path, xa xml[], bi bit varying, tza timestamptz[], da date[], boola boolean[], i2a smallint[], ra real[], dnn longtext NOT NULL, bnn bytea NOT NULL, ann integer[] NOT NULL);
DO $$ DECLARE c text; BEGIN FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 2 AND attlen = -1 LOOP EXECUTE format('ALTER TABLE t ALTER COLUMN %I SET STORAGE EXTERNAL', c); END LOOP; END $$;
CREATE FUNCTION fill(n integer) RETURNS void LANGUAGE sql AS $$
INSERT INTO t VALUES (n, 1, big(n), big(n), big(n), big(n), ('<a>' || big(n) || '</a>')::xml, hstore('k', big(n)), (big(n), 'b'), big(n),
 (SELECT array_to_string(array_agg('w' || md5(i::text)), ' ') FROM generate_series(1, 150) i)::tsvector, ARRAY[big(n)], ARRAY[hstore('k', big(n))], ARRAY[big(n)]::citext[],
 (SELECT array_agg(numrange(i, i + 1)) FROM generate_series(1, 400) i), ARRAY[big(n)::bytea], (SELECT array_agg(i) FROM generate_series(1, 1000) i)::float8[], (SELECT array_agg(i) FROM generate_series(1, 1000) i)::numeric[],
 (SELECT array_agg(timestamp '2024-01-01' + i * interval '1 s') FROM generate_series(1, 600) i), (SELECT array_agg(md5(i::text)::uuid) FROM generate_series(1, 300) i), ARRAY[to_jsonb(big(n))], ARRAY[(big(n), 'b')::comp],
 ('[' || (SELECT string_agg('(' || i || ',' || i || ')', ',') FROM generate_series(1, 400) i) || ']')::path, ARRAY[('<a>' || big(n) || '</a>')::xml], repeat('101', 12000)::varbit,
 (SELECT array_agg(timestamptz '2024-01-01' + i * interval '1 s') FROM generate_series(1, 600) i), (SELECT array_agg(date '2024-01-01' + i) FROM generate_series(1, 1000) i), (SELECT array_agg(true) FROM generate_series(1, 3000) i), (SELECT array_agg(i) FROM generate_series(1, 3000) i)::smallint[], (SELECT array_agg(i) FROM generate_series(1, 1000) i)::real[], big(n), big(n)::bytea, (SELECT array_agg(i) FROM generate_series(1, 1000) i));
$$;
SELECT fill(1);
-- @run
SELECT fill(2);
UPDATE t SET v = 2 WHERE id = 1;
UPDATE t SET id = 3 WHERE id = 1;
ALTER TABLE t REPLICA IDENTITY FULL;
UPDATE t SET v = 4 WHERE id = 2;
UPDATE t SET id = 5 WHERE id = 2;
DELETE FROM t WHERE id = 3;
