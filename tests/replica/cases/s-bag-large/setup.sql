CREATE TABLE dbo.bag (n INT NOT NULL, price IMAGE, note NTEXT);
INSERT INTO dbo.bag VALUES (1, 0x01, N'a');
INSERT INTO dbo.bag VALUES (2, NULL, NULL);
INSERT INTO dbo.bag VALUES (3, 0x03, N'c');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'bag', @role_name = NULL;
