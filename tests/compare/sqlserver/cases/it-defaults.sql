-- Defaults that are added, changed and removed by new capture instances; columns that are renamed and change their type.
-- @property include.schema.changes=true
-- @compare {"settle_seconds": 8}
CREATE TABLE a (id INT NOT NULL PRIMARY KEY, colb VARCHAR(30));
CREATE TABLE dv (id INT NOT NULL PRIMARY KEY, colb VARCHAR(30) CONSTRAINT dv_colb DEFAULT 'default_value');
CREATE TABLE ty (id INT NOT NULL PRIMARY KEY, colb VARCHAR(30), n INT NOT NULL DEFAULT 5);
INSERT INTO a VALUES (0, 'x');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'dv', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'ty', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO a VALUES (1, 'a');
INSERT INTO dv VALUES (1, 'some');
INSERT INTO ty (id, colb) VALUES (1, '1');
-- @wait
ALTER TABLE a ADD newcol INT NOT NULL DEFAULT 0;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0, @capture_instance = N'after_a';
INSERT INTO a VALUES (2, 'b', 2);
ALTER TABLE ty ALTER COLUMN colb VARCHAR(50);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'ty', @role_name = NULL, @supports_net_changes = 0, @capture_instance = N'after_ty';
INSERT INTO ty (id, colb) VALUES (2, '2');
-- @wait
ALTER TABLE dv ADD note VARCHAR(5) DEFAULT 'n';
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'dv', @role_name = NULL, @supports_net_changes = 0, @capture_instance = N'after_dv';
INSERT INTO dv (id) VALUES (2);
UPDATE a SET newcol = 7;
-- @stop
INSERT INTO a VALUES (3, 'c', 3);
DELETE FROM dv WHERE id = 1;
-- @start
-- @wait
INSERT INTO ty (id, colb) VALUES (9, 'end');
