-- Tables that are altered between and inside of transactions: keys, types, names, identities, recreated tables.
-- @property provide.transaction.metadata=true
-- @property skipped.operations=none

CREATE TABLE a (id integer PRIMARY KEY, v text, w numeric(5,2));
CREATE TABLE b (x integer, y integer, v text);
CREATE TABLE c (id integer PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'one', 1), (2, 'two', 2);
INSERT INTO b VALUES (1, 1, 'x');
-- @run
INSERT INTO a VALUES (3, 'three', 3);
ALTER TABLE a DROP CONSTRAINT a_pkey;
ALTER TABLE a ADD COLUMN id2 integer NOT NULL DEFAULT 5;
ALTER TABLE a ADD PRIMARY KEY (id2, id);
INSERT INTO a VALUES (4, 'four', 4, 6);
UPDATE a SET v = 'changed' WHERE id = 4;
-- @wait
ALTER TABLE b ADD PRIMARY KEY (y, x);
UPDATE b SET v = 'now with key';
UPDATE b SET x = 2;
ALTER TABLE b REPLICA IDENTITY FULL;
UPDATE b SET v = 'full';
DELETE FROM b;
-- @wait
BEGIN;
INSERT INTO c VALUES (1, 'before');
ALTER TABLE c ADD COLUMN w integer DEFAULT 3;
INSERT INTO c VALUES (2, 'after', NULL);
ALTER TABLE c RENAME COLUMN v TO text;
UPDATE c SET text = 'renamed' WHERE id = 1;
ALTER TABLE c ALTER COLUMN w TYPE varchar(7) USING 'w' || w::text;
UPDATE c SET w = 'x' WHERE id = 2;
COMMIT;
-- @wait
BEGIN;
DROP TABLE c;
CREATE TABLE c (id text PRIMARY KEY, other boolean NOT NULL);
INSERT INTO c VALUES ('a', true);
COMMIT;
UPDATE c SET id = 'b';
-- @wait
ALTER TABLE c RENAME TO d;
INSERT INTO d VALUES ('c', false);
-- @wait
CREATE TABLE c (id bigint PRIMARY KEY);
INSERT INTO c VALUES (1);
-- @wait
CREATE SCHEMA moved;
ALTER TABLE d SET SCHEMA moved;
INSERT INTO moved.d VALUES ('d', true);
TRUNCATE moved.d, c, a;
ALTER TABLE a ALTER COLUMN w TYPE double precision, DROP COLUMN v;
INSERT INTO a VALUES (7, 7.5, 8);
ALTER TABLE a REPLICA IDENTITY NOTHING;
INSERT INTO a VALUES (8, 7.5, 8);
CREATE TABLE e AS SELECT * FROM a;
INSERT INTO e SELECT * FROM a;
CREATE TEMPORARY TABLE f (id integer PRIMARY KEY);
INSERT INTO f VALUES (1);
CREATE UNLOGGED TABLE g (id integer PRIMARY KEY);
INSERT INTO g VALUES (1);
CREATE TABLE h ();
INSERT INTO h DEFAULT VALUES;
CREATE TABLE i (more integer) INHERITS (c);
INSERT INTO i VALUES (5, 3);
UPDATE ONLY c SET id = 6;
