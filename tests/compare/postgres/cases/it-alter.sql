-- Keys that are renamed, extended and replaced; defaults that change, also while the connector is stopped; types that change again and again; tables renamed, dropped, made anew.
-- @property include.unknown.datatypes=true
-- @compare {"collapse_topics": ["[._]message$"]}
-- @compare {"explained": {"^srv\\.c\\.(gone|moved)\\b": "docs/connectors/postgres.md: rows of a table that is dropped or renamed before they are read"}}
CREATE SCHEMA c;
CREATE TABLE c.keys (pk serial PRIMARY KEY, text text);
CREATE TABLE c.defs (pk serial PRIMARY KEY, i integer DEFAULT 1, text text DEFAULT 'foo');
CREATE TABLE c.types (pk serial PRIMARY KEY, text text);
CREATE TABLE c.renamed (pk serial PRIMARY KEY, text text);
CREATE TABLE c.moved (pk serial PRIMARY KEY, text text NOT NULL);
ALTER TABLE c.moved REPLICA IDENTITY FULL;
CREATE TABLE c.gone (pk serial PRIMARY KEY, text text);
CREATE TABLE c.nokey (pk serial PRIMARY KEY, text text);
CREATE TABLE c.ordered (b integer, d integer, c integer, a integer, val integer, PRIMARY KEY (b, d, c, a));
INSERT INTO c.keys (text) VALUES ('first');
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
INSERT INTO c.types (text) VALUES ('first');
INSERT INTO c.nokey (text) VALUES ('first');
INSERT INTO c.ordered VALUES (1, 2, 3, 4, 5);
-- @run
-- @wait
ALTER TABLE c.keys DROP CONSTRAINT keys_pkey;
ALTER TABLE c.keys RENAME COLUMN pk TO newpk;
ALTER TABLE c.keys ADD PRIMARY KEY (newpk);
INSERT INTO c.keys VALUES (2, 'newpkcol');
-- @wait
ALTER TABLE c.keys ADD COLUMN pk2 serial;
ALTER TABLE c.keys DROP CONSTRAINT keys_pkey;
ALTER TABLE c.keys ADD PRIMARY KEY (newpk, pk2);
INSERT INTO c.keys VALUES (3, 'newpkcol', 8);
UPDATE c.keys SET pk2 = 9 WHERE newpk = 3;
-- @wait
ALTER TABLE c.types ADD COLUMN uvc varchar(2);
ALTER TABLE c.types REPLICA IDENTITY FULL;
UPDATE c.types SET uvc = 'aa';
ALTER TABLE c.types RENAME COLUMN uvc TO xvc;
UPDATE c.types SET xvc = 'bb';
ALTER TABLE c.types DROP COLUMN xvc;
UPDATE c.types SET text = 'update';
ALTER TABLE c.types ADD COLUMN modtype integer;
INSERT INTO c.types (pk, modtype) VALUES (20, 1);
ALTER TABLE c.types ALTER COLUMN modtype TYPE smallint;
UPDATE c.types SET modtype = 2 WHERE pk = 20;
-- @wait
ALTER TABLE c.types ADD COLUMN n numeric(5,2);
UPDATE c.types SET n = 123.45 WHERE pk = 1;
ALTER TABLE c.types ALTER COLUMN n TYPE numeric(6,1);
INSERT INTO c.types (pk, n) VALUES (2, 123.41);
ALTER TABLE c.types ALTER COLUMN n TYPE numeric;
INSERT INTO c.types (pk, n) VALUES (3, 123.4567);
ALTER TABLE c.types ALTER COLUMN n TYPE decimal(12,4);
INSERT INTO c.types (pk, n) VALUES (4, 2.48);
ALTER TABLE c.types ALTER COLUMN n TYPE decimal(12);
INSERT INTO c.types (pk, n) VALUES (5, 1238);
ALTER TABLE c.types ALTER COLUMN n TYPE decimal;
UPDATE c.types SET n = 7 WHERE n IS NULL;
-- @wait
ALTER TABLE c.types ALTER COLUMN n SET NOT NULL;
INSERT INTO c.types (pk, n) VALUES (7, 1976);
DELETE FROM c.types;
-- @wait
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
-- @wait
ALTER TABLE c.defs ALTER COLUMN i SET DEFAULT 2;
ALTER TABLE c.defs ALTER COLUMN text SET DEFAULT 'bar';
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
-- @wait
ALTER TABLE c.renamed RENAME TO renamed2;
INSERT INTO c.renamed2 (text) VALUES ('new');
-- @wait
ALTER TABLE c.renamed2 SET SCHEMA public;
INSERT INTO renamed2 (text) VALUES ('moved');
-- @wait
INSERT INTO c.nokey (text) VALUES ('a');
ALTER TABLE c.nokey REPLICA IDENTITY FULL;
ALTER TABLE c.nokey DROP CONSTRAINT nokey_pkey CASCADE;
INSERT INTO c.nokey (pk, text) VALUES (4, 'full');
UPDATE c.nokey SET text = 'b';
DELETE FROM c.nokey WHERE pk = 4;
ALTER TABLE c.nokey REPLICA IDENTITY DEFAULT;
INSERT INTO c.nokey (pk, text) VALUES (5, 'default');
-- @wait
ALTER TABLE c.ordered ADD COLUMN val2 integer;
INSERT INTO c.ordered VALUES (10, 11, 12, 13, 14, 15);
CREATE SCHEMA later;
CREATE TABLE later.a (pk serial PRIMARY KEY, aa integer);
INSERT INTO later.a (aa) VALUES (11);
-- @stop
INSERT INTO c.moved (text) VALUES ('old');
ALTER TABLE c.moved RENAME TO moved2;
INSERT INTO c.keys VALUES (4, 'newpkcol', 20);
INSERT INTO c.gone (text) VALUES ('y');
UPDATE c.gone SET text = 'z';
UPDATE c.gone SET pk = pk + 100;
DELETE FROM c.gone WHERE pk > 101;
DROP TABLE c.gone;
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
ALTER TABLE c.defs ALTER COLUMN i SET DEFAULT 3;
ALTER TABLE c.defs ALTER COLUMN text SET DEFAULT 'baz';
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
ALTER TABLE c.defs ADD COLUMN bi bigint DEFAULT 1;
INSERT INTO c.defs (i, text, bi) VALUES (DEFAULT, DEFAULT, DEFAULT);
-- @start
-- @wait
INSERT INTO c.defs (i, text) VALUES (DEFAULT, DEFAULT);
-- @wait
ALTER TABLE c.defs ALTER COLUMN i SET DEFAULT 4;
ALTER TABLE c.defs ADD COLUMN tstz timestamptz DEFAULT '2021-03-20 14:44:28 +1';
INSERT INTO c.defs (i, text, tstz) VALUES (DEFAULT, DEFAULT, DEFAULT);
-- @wait
ALTER TABLE c.keys DROP CONSTRAINT keys_pkey;
ALTER TABLE c.keys DROP COLUMN pk2;
ALTER TABLE c.keys ADD COLUMN pk3 serial;
ALTER TABLE c.keys ADD PRIMARY KEY (newpk, pk3);
INSERT INTO c.keys VALUES (5, 'dropandadd', 10);
