-- Odd names of tables and columns, names by Avro's rules, schemas by lists, a table without a key, source types by type.
-- @property field.name.adjustment.mode=avro
-- @property schema.name.adjustment.mode=avro
-- @property schema.exclude.list=s1
-- @property datatype.propagate.source.type=.+\.NUMERIC,.+\.VARCHAR,.+\.REAL,.+\.DECIMAL
-- @property message.key.columns=(.*).keyless:id
-- @property include.schema.changes=true
CREATE SCHEMA s1;
CREATE SCHEMA [s ['1']]];
CREATE TABLE s1.a (id INT NOT NULL PRIMARY KEY, v INT);
CREATE TABLE [s ['1']]].[UAT WAG CZ$Fixed Asset ['1']]] (id INT NOT NULL PRIMARY KEY, [my col$a] VARCHAR(30), [my col#b] VARCHAR(30));
CREATE TABLE [UAT WAG CZ$Fixed Asset] (id INT NOT NULL PRIMARY KEY, [my col$] VARCHAR(30), Description VARCHAR(30) NOT NULL);
CREATE TABLE keyless (id INT, name VARCHAR(30));
CREATE TABLE dt (id INT NOT NULL PRIMARY KEY, c1 INT, c3a NUMERIC(5,2), c3b VARCHAR(128), f1 FLOAT(10), f2 DECIMAL(8,4), f3 DECIMAL, f4 NUMERIC);
INSERT INTO s1.a VALUES (1, 1);
INSERT INTO [s ['1']]].[UAT WAG CZ$Fixed Asset ['1']]] VALUES (1, 'a', 'b');
INSERT INTO [UAT WAG CZ$Fixed Asset] VALUES (1, 'a', 'b');
INSERT INTO keyless VALUES (1, 'k');
INSERT INTO dt VALUES (1, 123, 789.01, 'test', 1.228, 234.56, 5, 6);
EXEC sys.sp_cdc_enable_table @source_schema = N's1', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N's [''1'']', @source_name = N'UAT WAG CZ$Fixed Asset [''1'']', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'UAT WAG CZ$Fixed Asset', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'keyless', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'dt', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO s1.a VALUES (2, 1);
INSERT INTO [s ['1']]].[UAT WAG CZ$Fixed Asset ['1']]] VALUES (2, 'b', 'c');
UPDATE [UAT WAG CZ$Fixed Asset] SET Description = 'c1';
UPDATE keyless SET id = 3;
UPDATE keyless SET name = 'l';
DELETE FROM keyless;
UPDATE dt SET c1 = 124;
DELETE FROM dt;
-- @wait
CREATE TABLE [Two Words] (id INT NOT NULL PRIMARY KEY, [my col$] VARCHAR(30));
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'Two Words', @role_name = NULL, @supports_net_changes = 0;
-- @wait
INSERT INTO [Two Words] VALUES (3, 'b');
-- @wait
INSERT INTO [UAT WAG CZ$Fixed Asset] VALUES (4, 'b', 'c');
