UPDATE dbo.t SET a = 3 WHERE id = 1;
-- @wait
ALTER TABLE dbo.t ADD d INT NOT NULL DEFAULT 7;
ALTER TABLE dbo.t DROP COLUMN c;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL, @capture_instance = N'dbo_t_v2';
INSERT INTO dbo.t (id, a) VALUES (3, 3);
-- @wait
