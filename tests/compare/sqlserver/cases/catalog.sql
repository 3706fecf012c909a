-- What the catalog tells of alias types, unique indexes, keys that are captured in part, and odd defaults.
-- @property include.schema.changes=true
-- @property datatype.propagate.source.type=.+[.]Remark,.+[.]Flag
-- @property snapshot.tables.order.by.row.count=descending
CREATE TYPE dbo.Remark FROM NVARCHAR(20) NOT NULL; CREATE TYPE dbo.Flag FROM BIT;
CREATE TABLE aliased (id INT NOT NULL PRIMARY KEY, r dbo.Remark DEFAULT 'x', f dbo.Flag DEFAULT 1);
CREATE TABLE keyed (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL);
CREATE UNIQUE INDEX first_name ON keyed (a); CREATE UNIQUE CLUSTERED INDEX second_name ON keyed (b, c);
CREATE TABLE parts (a INT NOT NULL, b INT NOT NULL, c INT); CREATE UNIQUE INDEX by_both ON parts (b, a);
CREATE TABLE odd (id INT NOT NULL PRIMARY KEY, i INT DEFAULT '5', m MONEY DEFAULT '1.5', d DECIMAL(8,2) DEFAULT '2.5', g DATE DEFAULT '1/31/1900', t DATETIME DEFAULT '1900-01-31', w DATETIME2(3) DEFAULT '1/31/1900 1:30 PM', k TIME(0) DEFAULT '13:30', y VARBINARY(4) DEFAULT 0x0102, q REAL DEFAULT '1.5');
INSERT INTO aliased VALUES (1, N'a', 1); INSERT INTO keyed VALUES (1, 2, 3), (2, 3, 4), (3, 4, 5); INSERT INTO parts VALUES (1, 2, 3), (2, 3, 4); INSERT INTO odd (id) VALUES (1);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'aliased', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'keyed', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'odd', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'parts', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'a, c';
-- @run
INSERT INTO aliased (id, r) VALUES (2, N'b');
INSERT INTO keyed VALUES (7, 8, 9);
INSERT INTO parts VALUES (7, 8, 9);
INSERT INTO odd (id, i) VALUES (2, 7);
UPDATE keyed SET b = 9 WHERE a = 1;
DELETE FROM parts WHERE a = 1;
