SELECT pg_logical_emit_message(false, 'outside', 'alone');
-- @wait
SELECT pg_logical_emit_message(true, 'inside', 'alone');
-- @wait
BEGIN;
INSERT INTO t VALUES (2, 'b');
SELECT pg_logical_emit_message(true, 'inside', 'between');
SELECT pg_logical_emit_message(false, 'outside', 'between');
UPDATE t SET v = 'c' WHERE id = 1;
COMMIT;
-- @wait
