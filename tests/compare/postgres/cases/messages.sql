-- Logical messages: binary content, prefixes, in and outside of transactions, around a restart; xmin; only messages of an excluded table's transaction.
-- @property message.prefix.exclude.list=secret.*
-- @property binary.handling.mode=base64
-- @property xmin.fetch.interval.ms=50
-- @property provide.transaction.metadata=true
-- @compare {"collapse_topics": ["message$"]}
CREATE TABLE t (id integer PRIMARY KEY);
-- @run
SELECT pg_logical_emit_message(true, 'p1', 'text ü');
SELECT pg_logical_emit_message(false, 'p1', E'\\xdeadbeef'::bytea);
SELECT pg_logical_emit_message(true, 'secret1', 'x');
SELECT pg_logical_emit_message(true, '', 'no prefix');
BEGIN;
INSERT INTO t VALUES (1);
SELECT pg_logical_emit_message(true, 'in', 'x');
SELECT pg_logical_emit_message(false, 'out', 'x');
INSERT INTO t VALUES (2);
ROLLBACK;
BEGIN;
SELECT pg_logical_emit_message(true, 'in', 'y');
INSERT INTO t VALUES (3);
COMMIT;
-- @stop
SELECT pg_logical_emit_message(true, 'away', 'x');
INSERT INTO t VALUES (4);
-- @start
INSERT INTO t VALUES (5);
