CREATE TABLE w (id INT NOT NULL PRIMARY KEY, a TEXT, b INT, j IMAGE);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'w', @role_name = NULL, @supports_net_changes = 0;
