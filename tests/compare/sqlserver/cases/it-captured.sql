-- Capture instances of some columns, with columns in the middle left out, with lists besides; a table that is renamed; a unique index whose columns are not all captured.
-- @property table.include.list=^dbo.(some|middle|several|index|account)$
-- @property column.include.list=.*id,.*name,dbo.several.note,.*amount,.*key1,.*key2,.*data
-- @property column.mask.with.12.chars=testdb.dbo.some.name
-- @property message.key.columns=dbo.index:key1,key2;
-- @property provide.transaction.metadata=true
CREATE TABLE some (id INT NOT NULL PRIMARY KEY, name VARCHAR(30), amount INT);
CREATE TABLE middle (id INT NOT NULL PRIMARY KEY, amount INT, name VARCHAR(30));
CREATE TABLE several (id INT NOT NULL PRIMARY KEY, amount INT, note VARCHAR(30), name VARCHAR(30));
CREATE TABLE [index] (key1 INT NOT NULL, key2 INT NOT NULL, data VARCHAR(255) NOT NULL, col4 INT NOT NULL);
CREATE UNIQUE INDEX indexa ON [index] (col4);
CREATE UNIQUE INDEX indexb ON [index] (key1, key2);
CREATE TABLE account (id INT NOT NULL PRIMARY KEY, name VARCHAR(30), amount INT);
INSERT INTO some VALUES (10, 'a name', 100);
INSERT INTO middle VALUES (10, 100, 'a name');
INSERT INTO several VALUES (10, 100, 'note', 'a name');
INSERT INTO [index] VALUES (1, 10, 'data1', 100);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'some', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'id,name'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'middle', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'id,name'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'several', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'id,note,name'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'index', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'key1,key2,data'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'account', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO some VALUES (11, 'some_name', 120);
INSERT INTO middle VALUES (11, 120, 'some_name');
INSERT INTO several VALUES (11, 120, 'a note', 'some_name');
INSERT INTO [index] VALUES (2, 20, 'data2', 200);
UPDATE [index] SET key1 = 3;
UPDATE middle SET amount = 1;
DELETE FROM several;
INSERT INTO account VALUES (10, 'some_name', 120);
