CREATE TABLE k (a INT NOT NULL, b INT NOT NULL, v VARCHAR(10), PRIMARY KEY (a, b));
INSERT INTO k VALUES (1,2,'x');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'k', @role_name = NULL, @supports_net_changes = 0, @captured_column_list = N'a,v';
