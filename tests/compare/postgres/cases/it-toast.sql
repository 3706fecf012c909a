-- Large values that are not repeated while columns are added and dropped; a large default; hstore; keys of FULL tables that change.
-- @property schema.refresh.mode=columns_diff_exclude_unchanged_toast
-- @property hstore.handling.mode=map
-- @compare {"requires": ["hstore"]}
CREATE EXTENSION hstore;
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 300) i$$;
CREATE TABLE t (pk serial PRIMARY KEY, text text);
CREATE TABLE arrays (id serial PRIMARY KEY, te text);
CREATE TABLE whole (pk serial PRIMARY KEY, data text, data2 text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE hs (pk serial PRIMARY KEY, data hstore NOT NULL DEFAULT ''::hstore, b boolean);
CREATE TABLE nokey (id serial, n integer, text text);
ALTER TABLE nokey REPLICA IDENTITY FULL;
CREATE TABLE js (pk serial PRIMARY KEY, label text NOT NULL, payload jsonb);
INSERT INTO t (text) VALUES ('insert');
INSERT INTO hs (data, b) SELECT hstore('key', big(1)), true;
INSERT INTO hs (b) VALUES (true);
-- @run
ALTER TABLE t ADD COLUMN n integer;
INSERT INTO t (n, text) SELECT 10, big(1);
UPDATE t SET n = 9 WHERE n = 10;
ALTER TABLE t ADD COLUMN must text NOT NULL DEFAULT '';
DO $$BEGIN EXECUTE format('ALTER TABLE t ALTER must SET DEFAULT %L', big(3)); END$$;
INSERT INTO t (n, text) SELECT 11, big(2);
UPDATE t SET n = 2;
UPDATE t SET pk = pk + 100;
-- @wait
ALTER TABLE t DROP COLUMN text;
UPDATE t SET n = 5;
-- @wait
ALTER TABLE arrays ADD COLUMN n integer, ADD COLUMN ta text[] NOT NULL DEFAULT '{}', ADD COLUMN va varchar(20000)[], ADD COLUMN ba bpchar(20000)[], ADD COLUMN da date[], ADD COLUMN ya bytea[], ADD COLUMN ia integer[], ADD COLUMN la bigint[], ADD COLUMN ja json[], ADD COLUMN ua uuid[], ADD COLUMN y bytea;
INSERT INTO arrays (te, n, ta, va, ba, da, ya, ia, la, ja, ua, y) SELECT 'x', 10, ARRAY[big(1)], ARRAY[big(2)], ARRAY[big(3)], (SELECT array_agg('2000-01-01'::date + i) FROM generate_series(1, 3000) i), ARRAY[big(4)::bytea],
  (SELECT array_agg(i * 7919) FROM generate_series(1, 3000) i), (SELECT array_agg(i * 1000003::bigint) FROM generate_series(1, 3000) i), ARRAY[to_json(big(5))], (SELECT array_agg(md5(i::text)::uuid) FROM generate_series(1, 500) i), big(6)::bytea;
UPDATE arrays SET n = 2;
ALTER TABLE arrays REPLICA IDENTITY FULL;
UPDATE arrays SET n = 3;
DELETE FROM arrays;
-- @wait
INSERT INTO whole (data, data2) SELECT big(1), big(2);
UPDATE whole SET pk = 20;
UPDATE whole SET data = 'small';
DELETE FROM whole;
INSERT INTO nokey (n, text) SELECT 10, big(1);
UPDATE nokey SET n = 20;
DELETE FROM nokey;
INSERT INTO nokey (n) VALUES (100);
UPDATE nokey SET n = 200;
DELETE FROM nokey;
UPDATE hs SET b = false;
INSERT INTO js (label, payload) SELECT 'initial', to_jsonb(big(1));
UPDATE js SET label = 'updated';
INSERT INTO js (label) VALUES ('null');
UPDATE js SET payload = '{"new": "data"}' WHERE pk = 1;
