-- Transactions with metadata: interleaved, rolled back, with savepoints, of tables that are filtered, prepared, over a restart.
-- @property provide.transaction.metadata=true
-- @property table.exclude.list=public.hidden
-- @property topic.transaction=tx
-- @compare {"marker": null, "settle_seconds": 2}
CREATE TABLE a (id integer PRIMARY KEY, v text);
CREATE TABLE b (id integer PRIMARY KEY, v text);
CREATE TABLE hidden (id integer PRIMARY KEY);
INSERT INTO a VALUES (1, 'x');
-- @run
BEGIN;
INSERT INTO a VALUES (2, 'two');
-- @session two
BEGIN;
INSERT INTO b VALUES (1, 'one');
SAVEPOINT s;
INSERT INTO b VALUES (2, 'lost');
ROLLBACK TO s;
INSERT INTO hidden VALUES (1);
-- @session main
UPDATE a SET id = 3 WHERE id = 2;
COMMIT;
-- @session two
INSERT INTO a VALUES (4, 'four');
COMMIT;
BEGIN;
INSERT INTO hidden VALUES (2);
COMMIT;
BEGIN;
INSERT INTO a VALUES (9, 'no');
ROLLBACK;
-- @session main
BEGIN;
INSERT INTO a VALUES (5, 'prepared');
PREPARE TRANSACTION 'p';
-- @session two
INSERT INTO b VALUES (6, 'between');
COMMIT PREPARED 'p';
BEGIN;
INSERT INTO b VALUES (7, 'seven');
TRUNCATE b;
INSERT INTO b VALUES (8, 'eight');
SELECT pg_logical_emit_message(true, 'p', 'inside');
DELETE FROM a WHERE id IN (1, 4);
COMMIT;
-- @stop
-- @session three
BEGIN;
INSERT INTO a VALUES (20, 'while away');
UPDATE a SET v = v || '!';
COMMIT;
-- @start
INSERT INTO a VALUES (21, 'back');
INSERT INTO a VALUES (22, 'again');
