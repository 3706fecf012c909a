CREATE TABLE d (id INT NOT NULL PRIMARY KEY, a VARCHAR(20) NOT NULL DEFAULT 'it''s', b NVARCHAR(20) DEFAULT N'x(y)z', c BIT NOT NULL DEFAULT 1, e INT NOT NULL DEFAULT '5', f FLOAT DEFAULT 1.5, g VARCHAR(20) DEFAULT 'plain');
INSERT INTO d (id) VALUES (1);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'd', @role_name = NULL, @supports_net_changes = 0;
