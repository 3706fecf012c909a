-- Transactions: only skipped changes, updates without a change, key changes with and without tombstones, large ones, subtransactions, prepared ones, relations after a rollback.
-- @property provide.transaction.metadata=true
-- @property skipped.operations=u,t
-- @property skip.messages.without.change=true
-- @property tombstones.on.delete=false
-- @property message.prefix.exclude.list=no.*
CREATE TABLE a (id integer PRIMARY KEY, v text);
CREATE TABLE b (id integer PRIMARY KEY, v text);
ALTER TABLE a REPLICA IDENTITY FULL;
INSERT INTO a VALUES (1, 'v'), (2, 'w');
-- @run
UPDATE a SET v = 'x' WHERE id = 1;
BEGIN; UPDATE a SET v = 'x' WHERE id = 1; INSERT INTO b VALUES (1, 'b'); UPDATE a SET id = 7 WHERE id = 2; COMMIT;
BEGIN; TRUNCATE b; COMMIT;
BEGIN; SELECT pg_logical_emit_message(true, 'nothing', 'x'); SELECT pg_logical_emit_message(true, 'some', 'x'); SELECT pg_logical_emit_message(false, 'some', 'y'); INSERT INTO b VALUES (2, 'b'); COMMIT;
BEGIN; SELECT pg_logical_emit_message(true, 'nothing', 'x'); COMMIT;
BEGIN; INSERT INTO b VALUES (3, 'b'); ROLLBACK;
BEGIN; INSERT INTO b VALUES (3, 'b'); SAVEPOINT s; ALTER TABLE b ADD COLUMN w integer; INSERT INTO b VALUES (4, 'b', 1); ROLLBACK TO s; INSERT INTO b VALUES (5, 'b'); COMMIT;
CREATE TABLE c (id integer PRIMARY KEY);
BEGIN; CREATE TABLE d (id integer PRIMARY KEY); INSERT INTO d VALUES (1); DROP TABLE c; COMMIT;
BEGIN; DELETE FROM b; DELETE FROM a; COMMIT;
