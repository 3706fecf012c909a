-- Schemas that are not captured, names in brackets, computed columns, and types of which events have nothing.
-- @property include.schema.changes=true
-- @property schema.history.internal.store.only.captured.databases.ddl=true
-- @property schema.include.list=dbo
-- @property snapshot.fetch.size=0
-- @property snapshot.select.statement.overrides=[testdb].[dbo].[my.table],testdb.dbo.plain
-- @property snapshot.select.statement.overrides.[testdb].[dbo].[my.table]=SELECT * FROM [dbo].[my.table] WHERE id > 1
-- @property snapshot.select.statement.overrides.testdb.dbo.plain=SELECT id, v FROM dbo.plain WHERE id < 3
CREATE SCHEMA other;
CREATE TABLE other.t (id INT NOT NULL PRIMARY KEY);
CREATE TABLE [my.table] (id INT NOT NULL PRIMARY KEY, [a b] VARCHAR(10));
CREATE TABLE plain (id INT NOT NULL PRIMARY KEY, v VARCHAR(10) NOT NULL DEFAULT 'x');
CREATE TABLE odd (id INT IDENTITY(1,1) NOT NULL PRIMARY KEY, a INT NOT NULL, twice AS a * 2, thrice AS (a * 3) PERSISTED NOT NULL, rv ROWVERSION, sv SQL_VARIANT, h HIERARCHYID, u UNIQUEIDENTIFIER NOT NULL DEFAULT NEWID());
INSERT INTO other.t VALUES (1); INSERT INTO [my.table] VALUES (1, 'a'), (2, 'b'); INSERT INTO plain VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO odd (a, u) VALUES (1, '6F9619FF-8B86-D011-B42D-00C04FC964FF');
EXEC sys.sp_cdc_enable_table @source_schema = N'other', @source_name = N't', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'my.table', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'odd', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO other.t VALUES (2);
INSERT INTO [my.table] VALUES (3, 'c');
INSERT INTO odd (a, u, sv) VALUES (2, '6F9619FF-8B86-D011-B42D-00C04FC964FE', 5);
UPDATE odd SET a = 3 WHERE id = 1;
DELETE FROM odd WHERE id = 2;
