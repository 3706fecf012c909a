BEGIN;
INSERT INTO things VALUES (2, 'two');
INSERT INTO free VALUES (1, NULL, 'c');
COMMIT;
UPDATE free SET b = 'b', c = NULL;
BEGIN;
DELETE FROM things WHERE id = 1;
DELETE FROM free;
COMMIT;
TRUNCATE things;
SELECT pg_logical_emit_message(true, 'p', 'a message');
-- @sleep 1
INSERT INTO things VALUES (9, 'nine');
