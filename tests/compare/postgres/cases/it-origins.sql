-- Replication origins: set for a session, with a position, several, none after one, over a restart.
-- @property slot.stream.params=origin=any
-- @property provide.transaction.metadata=true
CREATE TABLE t (pk serial PRIMARY KEY, data text);
SELECT pg_replication_origin_create('h3_one');
SELECT pg_replication_origin_create('h3_two');
-- @run
SELECT pg_replication_origin_session_setup('h3_one');
INSERT INTO t (data) VALUES ('one');
BEGIN;
SELECT pg_replication_origin_xact_setup('0/12345', '2024-01-01 00:00:00+00');
INSERT INTO t (data) VALUES ('one with a position');
UPDATE t SET data = 'changed' WHERE pk = 1;
SELECT pg_logical_emit_message(true, 'p', 'in');
COMMIT;
SELECT pg_replication_origin_session_reset();
INSERT INTO t (data) VALUES ('none');
SELECT pg_replication_origin_session_setup('h3_two');
INSERT INTO t (data) VALUES ('two');
TRUNCATE t;
-- @stop
INSERT INTO t (data) VALUES ('two, away');
SELECT pg_replication_origin_session_reset();
INSERT INTO t (data) VALUES ('none, away');
-- @start
INSERT INTO t (data) VALUES ('none again');
-- @wait
SELECT pg_replication_origin_drop('h3_one');
SELECT pg_replication_origin_drop('h3_two');
