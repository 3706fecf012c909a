-- Columns that are added, removed and widened by new capture instances, also twice, over a restart, with schema changes.
-- @compare {"settle_seconds": 8}
-- @property include.schema.changes=true
-- @property provide.transaction.metadata=true
CREATE TABLE a (id INT NOT NULL PRIMARY KEY, v VARCHAR(20), w DECIMAL(6,2) NOT NULL DEFAULT 1.5);
CREATE TABLE b (id INT NOT NULL, v VARCHAR(20));
INSERT INTO a VALUES (1, 'one', 1);
INSERT INTO b VALUES (1, 'one');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'b', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO a VALUES (2, 'two', 2);
-- @wait
ALTER TABLE a ADD x NVARCHAR(10) NOT NULL DEFAULT N'x';
INSERT INTO a VALUES (3, 'three', 3, N'y');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0, @capture_instance = N'dbo_a_v2';
INSERT INTO a VALUES (4, 'four', 4, N'z');
UPDATE a SET x = N'changed' WHERE id IN (1, 3);
INSERT INTO b VALUES (2, 'two');
-- @wait
EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'a', @capture_instance = N'dbo_a';
INSERT INTO a VALUES (5, 'five', 5, N'z');
-- @wait
ALTER TABLE a DROP COLUMN v;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0, @capture_instance = N'dbo_a_v3';
INSERT INTO a (id, w, x) VALUES (6, 6, N'six');
DELETE FROM a WHERE id = 1;
-- @stop
CREATE TABLE c (id BIGINT NOT NULL PRIMARY KEY, d DATETIME2(3));
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'c', @role_name = NULL, @supports_net_changes = 0;
INSERT INTO c VALUES (1, '2024-01-02 03:04:05.678');
UPDATE b SET v = 'away';
-- @start
-- @wait
INSERT INTO c VALUES (2, NULL);
INSERT INTO b VALUES (9, 'end');
