CREATE TABLE dbo.t (id INT PRIMARY KEY, a INT, b AS (a * 2), c INT);
INSERT INTO dbo.t (id, a, c) VALUES (1, 1, 1);
INSERT INTO dbo.t (id, a, c) VALUES (2, 2, 2);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL;
