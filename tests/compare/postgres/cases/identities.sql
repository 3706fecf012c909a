-- Replica identities of tables with keys of several columns: index, nothing, full, changed in between; large values; truncated.
-- @property replica.identity.autoset.values=public.auto:FULL
-- @property skipped.operations=none
CREATE TABLE by_index (id integer PRIMARY KEY, u integer NOT NULL UNIQUE, v text NOT NULL, w text);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_u_key;
CREATE TABLE by_index_only (u integer NOT NULL, u2 text NOT NULL, v numeric(5,2) NOT NULL, ts timestamp NOT NULL, CONSTRAINT two UNIQUE (u2, u));
ALTER TABLE by_index_only REPLICA IDENTITY USING INDEX two;
CREATE TABLE "full" (a integer, b text, v text, PRIMARY KEY (b, a));
ALTER TABLE "full" REPLICA IDENTITY FULL;
CREATE TABLE full_no_key (a integer, b text);
ALTER TABLE full_no_key REPLICA IDENTITY FULL;
CREATE TABLE auto (id integer PRIMARY KEY, v text);
CREATE TABLE plain (a integer, b text, v text, w boolean NOT NULL, PRIMARY KEY (b, a));
INSERT INTO by_index VALUES (1, 1, 'a', NULL), (2, 2, 'b', 'c');
INSERT INTO by_index_only VALUES (1, 'x', 1.5, '2024-01-01');
INSERT INTO "full" VALUES (1, 'x', NULL), (2, 'y', 'v');
INSERT INTO full_no_key VALUES (1, 'x'), (NULL, NULL), (1, 'x');
INSERT INTO plain VALUES (1, 'x', 'v', true);
-- @run
-- @sleep 2
UPDATE by_index SET v = 'new' WHERE id = 1;
UPDATE by_index SET u = 5 WHERE id = 1;
UPDATE by_index SET id = 6 WHERE id = 1;
DELETE FROM by_index WHERE id = 2;
UPDATE by_index_only SET v = 2.5;
UPDATE by_index_only SET u2 = 'y';
DELETE FROM by_index_only;
UPDATE "full" SET v = 'new' WHERE a = 1;
UPDATE "full" SET b = 'z' WHERE a = 1;
UPDATE "full" SET v = v;
DELETE FROM "full";
UPDATE full_no_key SET b = 'y' WHERE a = 1;
DELETE FROM full_no_key;
INSERT INTO auto VALUES (1, 'a');
UPDATE auto SET v = 'b';
DELETE FROM auto;
UPDATE plain SET v = NULL;
UPDATE plain SET a = 2, w = false;
UPDATE plain SET b = 'y', a = 3;
ALTER TABLE plain REPLICA IDENTITY FULL;
UPDATE plain SET v = 'full';
DELETE FROM plain;
-- @wait
TRUNCATE "full", plain RESTART IDENTITY CASCADE;
