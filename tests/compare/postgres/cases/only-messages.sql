-- A publication without tables: only logical messages come.
-- @property publication.autocreate.mode=no_tables
-- @property snapshot.mode=no_data
CREATE TABLE t (id integer PRIMARY KEY);
-- @run
INSERT INTO t VALUES (1);
SELECT pg_logical_emit_message(true, 'p1', 'text');
