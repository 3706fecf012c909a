-- The tables that a database gets by sp_cdc_enable_db, in T-SQL.
CREATE TABLE cdc.change_tables (object_id int NOT NULL PRIMARY KEY, version int, source_object_id int, capture_instance sysname NOT NULL,
  start_lsn binary(10), end_lsn binary(10), supports_net_changes bit, has_drop_pending bit, role_name sysname NULL, index_name sysname NULL,
  filegroup_name sysname NULL, create_date datetime, partition_switch bit NOT NULL);
CREATE TABLE cdc.captured_columns (object_id int NOT NULL, column_name sysname NOT NULL, column_id int, column_type sysname NOT NULL,
  column_ordinal int NOT NULL, is_computed bit, masking_function nvarchar(4000), PRIMARY KEY (object_id, column_ordinal));
CREATE TABLE cdc.lsn_time_mapping (start_lsn binary(10) NOT NULL PRIMARY KEY, tran_begin_time datetime, tran_end_time datetime,
  tran_id varbinary(10), tran_begin_lsn binary(10));
CREATE TABLE cdc.index_columns (object_id int NOT NULL, column_name sysname NOT NULL, index_ordinal tinyint NOT NULL, column_id int NOT NULL,
  PRIMARY KEY (object_id, index_ordinal));
CREATE TABLE cdc.ddl_history (source_object_id int, object_id int, required_column_update bit, ddl_command nvarchar(max), ddl_lsn binary(10) NOT NULL,
  ddl_time datetime);
CREATE TABLE dbo.systranschemas (tabid int NOT NULL, startlsn binary(10) NOT NULL, endlsn binary(10) NOT NULL, typeid int NOT NULL DEFAULT 52);
