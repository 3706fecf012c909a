-- A snapshot of tables by an expression, of all tables' structures, in every start; a heartbeat's action.
-- @property snapshot.mode=always
-- @property snapshot.include.collection.list=[A-z].*dbo.a.*
-- @property schema.history.internal.store.only.captured.tables.ddl=true
-- @property table.include.list=dbo.a.*
-- @property include.schema.changes=true
CREATE TABLE a1 (id INT NOT NULL PRIMARY KEY, v VARCHAR(20));
CREATE TABLE a2 (id INT NOT NULL PRIMARY KEY, v VARCHAR(20));
CREATE TABLE b (id INT NOT NULL PRIMARY KEY, v VARCHAR(20));
INSERT INTO a1 VALUES (1, 'Test1'), (2, 'Test2');
INSERT INTO a2 VALUES (1, 'Test1');
INSERT INTO b VALUES (1, 'Test1');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a1', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a2', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'b', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO a1 VALUES (5, 'x');
-- @stop
DELETE FROM a1 WHERE id = 1;
INSERT INTO a1 VALUES (3, 'Test3');
-- @start
-- @wait
INSERT INTO a2 VALUES (9, 'end');
