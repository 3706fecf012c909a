-- Large values that the log does not repeat: every type, key changes, FULL identity, required columns.
-- @property binary.handling.mode=hex
-- @property unavailable.value.placeholder=gone
-- @property decimal.handling.mode=string
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 200) i$$;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN dtext AS text;
CREATE TABLE t (id integer PRIMARY KEY, small integer, te text, tn text NOT NULL, vc varchar(9000), by bytea, js json, jb jsonb, ta text[], va varchar(40)[], ca char(40)[], ia integer[], ba bigint[], da date[], ua uuid[], ja json[], bya bytea[], na numeric[], fa float8[], boa boolean[], tsa timestamptz[], ea mood[], nu numeric, tsv tsvector, dt dtext, c char(9000), bits varbit, xa inet[]);
CREATE TABLE f (LIKE t INCLUDING ALL);
ALTER TABLE f REPLICA IDENTITY FULL;
DO $$ DECLARE c record; BEGIN
FOR c IN SELECT attrelid::regclass AS r, attname AS a FROM pg_attribute WHERE attrelid IN ('t'::regclass, 'f'::regclass) AND attnum > 2 AND attstorage IN ('x', 'm') LOOP
EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE EXTERNAL', c.r, c.a); END LOOP; END $$;
INSERT INTO t SELECT 1, 1, big(1), big(2), big(3), decode(big(4), 'hex'), to_json(big(5)), to_jsonb(big(6)),
 ARRAY[big(1), big(2)], (SELECT array_agg(md5(i::text)) FROM generate_series(1, 200) i), (SELECT array_agg(md5(i::text)) FROM generate_series(1, 200) i), (SELECT array_agg(i) FROM generate_series(1, 2000) i), (SELECT array_agg(i::bigint) FROM generate_series(1, 2000) i), (SELECT array_agg('2024-01-01'::date + i) FROM generate_series(1, 2000) i),
 (SELECT array_agg(md5(i::text)::uuid) FROM generate_series(1, 500) i), ARRAY[to_json(big(7))], ARRAY[decode(big(8), 'hex')], (SELECT array_agg(i + 0.5) FROM generate_series(1, 2000) i), (SELECT array_agg(i::float8) FROM generate_series(1, 2000) i), (SELECT array_agg(i % 2 = 0) FROM generate_series(1, 4000) i), (SELECT array_agg('2024-01-01 00:00:00+00'::timestamptz + i * interval '1 s') FROM generate_series(1, 2000) i), (SELECT array_agg('ok'::mood) FROM generate_series(1, 2000) i),
 (repeat('123456789', 600) || '.5')::numeric, to_tsvector('simple', (SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 200) i)), big(9), big(10), repeat('10110', 6000)::varbit, (SELECT array_agg('10.0.0.1'::inet) FROM generate_series(1, 1000) i);
INSERT INTO f SELECT * FROM t;
-- @run
UPDATE t SET small = 2;
UPDATE t SET id = 2;
UPDATE t SET te = 'now small';
UPDATE t SET te = big(20), tn = big(21);
UPDATE t SET small = 3;
DELETE FROM t;
UPDATE f SET small = 2;
UPDATE f SET id = 2;
UPDATE f SET te = 'now small';
DELETE FROM f;
