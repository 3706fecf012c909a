-- Tables that change names with each other, are created again in a transaction, schemas that are renamed, keys by constraints that come and go.
-- @property provide.transaction.metadata=true
-- @property include.unknown.datatypes=true
CREATE SCHEMA s;
CREATE TABLE a (id integer PRIMARY KEY, v text DEFAULT 'a');
CREATE TABLE b (k text PRIMARY KEY, w integer NOT NULL DEFAULT 5);
CREATE TABLE s.t (id integer PRIMARY KEY, v text);
CREATE TABLE u (id integer, e integer NOT NULL, v text);
INSERT INTO a VALUES (1, 'v');
INSERT INTO b VALUES ('k', 1);
-- @run
INSERT INTO a VALUES (4, 'v');
-- @wait
BEGIN;
DROP TABLE s.t;
CREATE TABLE s.t (v text, id integer PRIMARY KEY, n numeric);
INSERT INTO s.t VALUES ('v', 1, 1.5);
COMMIT;
-- @wait
ALTER SCHEMA s RENAME TO r;
INSERT INTO r.t VALUES ('v', 2, 1.5);
-- @wait
INSERT INTO u VALUES (1, 1, 'v');
-- @wait
CREATE UNIQUE INDEX u_e ON u (e);
INSERT INTO u VALUES (2, 2, 'v');
-- @wait
ALTER TABLE u ADD PRIMARY KEY (id);
INSERT INTO u VALUES (3, 3, 'v');
UPDATE u SET id = 4 WHERE id = 3;
-- @wait
ALTER TABLE u REPLICA IDENTITY USING INDEX u_e;
UPDATE u SET e = 5 WHERE id = 4;
DELETE FROM u WHERE id = 4;
-- @wait
DROP INDEX u_e;
INSERT INTO u VALUES (6, 6, 'v');
ALTER TABLE u ADD COLUMN big bigserial, ADD COLUMN d date DEFAULT CURRENT_DATE, ADD COLUMN r double precision NOT NULL DEFAULT random();
INSERT INTO u (id, e, v, big, d, r) VALUES (7, 7, 'v', 9, '2024-01-01', 0.5);
-- @wait
ALTER TABLE u RENAME COLUMN id TO "Id";
INSERT INTO u ("Id", e, v, big, d, r) VALUES (8, 7, 'v', 9, '2024-01-01', 0.5);
-- @wait
ALTER TABLE u DROP COLUMN "Id";
INSERT INTO u (e, v, big, d, r) VALUES (9, 'v', 9, '2024-01-01', 0.5);
