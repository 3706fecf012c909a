-- Tables that are captured later, and capture instances that bring a default, NOT NULL, or nothing new.
-- @property include.schema.changes=true
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT, w VARCHAR(10) DEFAULT 'a', rv ROWVERSION);
CREATE TABLE n (id INT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE late (id INT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE part (id INT NOT NULL PRIMARY KEY, v INT);
INSERT INTO t (id, v) VALUES (1, 1); INSERT INTO n VALUES (1, 1); INSERT INTO late VALUES (1, 1);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N't'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'n';
-- @run
INSERT INTO t (id, v) VALUES (2, 1); INSERT INTO n VALUES (2, 1);
-- @wait
ALTER TABLE t ADD CONSTRAINT dv DEFAULT 5 FOR v;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N't', @capture_instance = N't2';
INSERT INTO t (id) VALUES (3);
-- @wait
ALTER TABLE n ALTER COLUMN v INT NOT NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'n', @capture_instance = N'n2';
INSERT INTO n VALUES (3, 1);
-- @wait
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'late';
INSERT INTO late VALUES (3, 1);
-- @wait
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'part', @captured_column_list = N'id';
INSERT INTO part VALUES (3, 1);
-- @wait
EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N't', @capture_instance = N'dbo_t';
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N't', @capture_instance = N't3';
INSERT INTO t (id) VALUES (4);
-- @stop
INSERT INTO t (id) VALUES (5);
-- @start
-- @wait
INSERT INTO t (id) VALUES (6);
