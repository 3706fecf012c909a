-- Structures of the tables that a first snapshot begins with, beside lists of tables in an order of their own.
-- @property include.schema.changes=true
-- @property table.include.list=dbo.t2,dbo.t0
-- @property snapshot.include.collection.list=testdb.dbo.t0
-- @property signal.data.collection=testdb.dbo.debezium_signal
CREATE TABLE t0 (id INT NOT NULL PRIMARY KEY, n INT);
CREATE TABLE t1 (id INT NOT NULL PRIMARY KEY, n INT);
CREATE TABLE t2 (id INT NOT NULL PRIMARY KEY, n INT);
CREATE TABLE t3 (id INT NOT NULL PRIMARY KEY, n INT);
INSERT INTO t0 VALUES (1, 1);
INSERT INTO t1 VALUES (1, 1);
INSERT INTO t2 VALUES (1, 1);
CREATE TABLE debezium_signal (id VARCHAR(64) PRIMARY KEY, type VARCHAR(2048), data VARCHAR(2048));
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't0', @role_name = NULL, @supports_net_changes = 0;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't1', @role_name = NULL, @supports_net_changes = 0;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't2', @role_name = NULL, @supports_net_changes = 0;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'debezium_signal', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO t0 VALUES (2, 1);
INSERT INTO t2 VALUES (2, 1);
