CREATE TABLE w (id INT NOT NULL PRIMARY KEY, a TEXT, b INT, c INT, d INT, e INT, f INT, g INT, h TEXT, i INT, j IMAGE);
INSERT INTO w VALUES (1,'a',1,1,1,1,1,1,'h',1,0x01);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'w', @role_name = NULL, @supports_net_changes = 0;
