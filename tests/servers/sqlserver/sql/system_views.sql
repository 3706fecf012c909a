-- The catalogue views. The columns' domains name their T-SQL types; `_db` says which database a row belongs to.
CREATE TABLE cat.sessions (
  session_id int PRIMARY KEY, pid int NOT NULL, login_name text NOT NULL, host_name text NOT NULL, program_name text NOT NULL,
  database_id int NOT NULL, login_time timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE FUNCTION ms.shown(t timestamptz) RETURNS int8 LANGUAGE sql STABLE STRICT AS $$ SELECT ms.datetime(ms.local_ticks(t)) $$;
CREATE FUNCTION ms.row_count(of_object int) RETURNS int8 LANGUAGE plpgsql STABLE AS $$
DECLARE result int8;
BEGIN
  EXECUTE format('SELECT count(*) FROM u.t%s', of_object) INTO result;
  RETURN result;
EXCEPTION WHEN undefined_table THEN RETURN 0;
END $$;

-- Definitions are shown to those who may see them; the double's own connections have no login.
CREATE FUNCTION ms.sees_definition(in_database int, of_object int) RETURNS bool LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('ms.login', true), ''), '') = ''
    OR ms.has_permission(current_setting('ms.login', true), in_database, 'VIEW DEFINITION', 'OBJECT', of_object)
$$;
-- Security policies are in a schema of their own as a rule, so that a right on the tables' schema does not show them.
CREATE FUNCTION ms.sees_policies(in_database int) RETURNS bool LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('ms.login', true), ''), '') = ''
    OR ms.has_permission(current_setting('ms.login', true), in_database, 'VIEW DEFINITION', 'DATABASE', 0)
$$;

CREATE VIEW sys.databases AS SELECT name::ty."nvarchar(128)" AS name, database_id::ty.int AS database_id, NULL::ty.int AS source_database_id,
  '\x01'::ty."varbinary(85)" AS owner_sid, ms.shown(create_date)::ty.datetime AS create_date, compatibility_level::ty.tinyint AS compatibility_level,
  collation_name::ty."nvarchar(128)" AS collation_name, 0::ty.tinyint AS user_access, 'MULTI_USER'::ty."nvarchar(60)" AS user_access_desc,
  is_read_only::ty.bit AS is_read_only, 0::ty.tinyint AS state, 'ONLINE'::ty."nvarchar(60)" AS state_desc,
  snapshot_isolation_state::ty.tinyint AS snapshot_isolation_state,
  CASE snapshot_isolation_state WHEN 1 THEN 'ON' ELSE 'OFF' END::ty."nvarchar(60)" AS snapshot_isolation_state_desc,
  read_committed_snapshot::ty.bit AS is_read_committed_snapshot_on, recovery_model::ty.tinyint AS recovery_model,
  CASE recovery_model WHEN 1 THEN 'FULL' WHEN 2 THEN 'BULK_LOGGED' ELSE 'SIMPLE' END::ty."nvarchar(60)" AS recovery_model_desc,
  is_cdc_enabled::ty.bit AS is_cdc_enabled, 0::ty.bit AS is_published, 0::ty.bit AS is_encrypted, 0::ty.bit AS is_auto_close_on,
  0::ty.bit AS is_in_standby, 0::ty.bit AS is_distributor, NULL::ty.uniqueidentifier AS replica_id, NULL::ty.uniqueidentifier AS group_database_id,
  0::ty.tinyint AS containment, 'NONE'::ty."nvarchar(60)" AS containment_desc,
  CASE WHEN is_cdc_enabled = 1 AND EXISTS (SELECT 1 FROM cat.transactions t WHERE t.database_id = d.database_id) THEN 6 ELSE 0 END::ty.tinyint AS log_reuse_wait,
  CASE WHEN is_cdc_enabled = 1 AND EXISTS (SELECT 1 FROM cat.transactions t WHERE t.database_id = d.database_id) THEN 'REPLICATION' ELSE 'NOTHING' END::ty."nvarchar(60)" AS log_reuse_wait_desc
  FROM cat.databases d;
CREATE VIEW sys.sysdatabases AS SELECT name, database_id::ty.smallint AS dbid, create_date AS crdate FROM sys.databases;

CREATE VIEW sys.schemas AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, schema_id::ty.int AS schema_id,
  principal_id::ty.int AS principal_id FROM cat.schemas;

CREATE VIEW cat.typed_objects AS SELECT o.*, CASE type WHEN 'U' THEN 'USER_TABLE' WHEN 'V' THEN 'VIEW' WHEN 'PK' THEN 'PRIMARY_KEY_CONSTRAINT'
  WHEN 'UQ' THEN 'UNIQUE_CONSTRAINT' WHEN 'F' THEN 'FOREIGN_KEY_CONSTRAINT' WHEN 'C' THEN 'CHECK_CONSTRAINT' WHEN 'D' THEN 'DEFAULT_CONSTRAINT'
  WHEN 'P' THEN 'SQL_STORED_PROCEDURE' WHEN 'FN' THEN 'SQL_SCALAR_FUNCTION' WHEN 'IF' THEN 'SQL_INLINE_TABLE_VALUED_FUNCTION'
  WHEN 'TR' THEN 'SQL_TRIGGER' ELSE type END AS type_desc FROM cat.objects o;

CREATE VIEW sys.objects AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id, NULL::ty.int AS principal_id,
  schema_id::ty.int AS schema_id, parent_object_id::ty.int AS parent_object_id, rpad(type, 2)::ty."char(2)" AS type, type_desc::ty."nvarchar(60)" AS type_desc,
  ms.shown(create_date)::ty.datetime AS create_date, ms.shown(modify_date)::ty.datetime AS modify_date, is_ms_shipped::ty.bit AS is_ms_shipped,
  0::ty.bit AS is_published, 0::ty.bit AS is_schema_published FROM cat.typed_objects;
CREATE VIEW sys.all_objects AS SELECT * FROM sys.objects;
CREATE VIEW sys.sysobjects AS SELECT _db, name, object_id AS id, type AS xtype, schema_id::ty.smallint AS uid, parent_object_id AS parent_obj,
  create_date AS crdate, type FROM sys.objects;

CREATE VIEW sys.tables AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id, NULL::ty.int AS principal_id,
  schema_id::ty.int AS schema_id, parent_object_id::ty.int AS parent_object_id, 'U '::ty."char(2)" AS type, type_desc::ty."nvarchar(60)" AS type_desc,
  ms.shown(create_date)::ty.datetime AS create_date, ms.shown(modify_date)::ty.datetime AS modify_date, is_ms_shipped::ty.bit AS is_ms_shipped,
  0::ty.bit AS is_published, 0::ty.bit AS is_schema_published,
  (SELECT max(column_id) FROM cat.columns c WHERE c.object_id = o.object_id)::ty.int AS max_column_id_used, 0::ty.bit AS is_replicated,
  0::ty.bit AS is_merge_published, (to_regclass('log.t' || object_id) IS NOT NULL)::int::ty.bit AS is_tracked_by_cdc,
  0::ty.tinyint AS lock_escalation, 'TABLE'::ty."nvarchar(60)" AS lock_escalation_desc, 0::ty.bit AS is_filetable, 0::ty.bit AS is_memory_optimized,
  0::ty.tinyint AS temporal_type, 'NON_TEMPORAL_TABLE'::ty."nvarchar(60)" AS temporal_type_desc, 0::ty.bit AS is_external, 0::ty.bit AS is_node, 0::ty.bit AS is_edge
  FROM cat.typed_objects o WHERE type = 'U';
CREATE VIEW sys.views AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id, NULL::ty.int AS principal_id,
  schema_id::ty.int AS schema_id, 'V '::ty."char(2)" AS type, type_desc::ty."nvarchar(60)" AS type_desc, ms.shown(create_date)::ty.datetime AS create_date,
  ms.shown(modify_date)::ty.datetime AS modify_date, is_ms_shipped::ty.bit AS is_ms_shipped FROM cat.typed_objects WHERE type = 'V';
CREATE VIEW sys.procedures AS SELECT * FROM sys.objects WHERE type = 'P ';
CREATE VIEW sys.sql_modules AS SELECT database_id AS _db, object_id::ty.int AS object_id,
  ('CREATE ' || CASE type WHEN 'V' THEN 'VIEW' WHEN 'P' THEN 'PROCEDURE' ELSE 'FUNCTION' END || ' ' || name || ' ' || definition)::ty."nvarchar(max)" AS definition
  FROM cat.objects WHERE type IN ('V', 'P', 'FN', 'IF');

CREATE VIEW sys.columns AS SELECT o.database_id AS _db, c.object_id::ty.int AS object_id, c.name::ty."nvarchar(128)" AS name, c.column_id::ty.int AS column_id,
  c.system_type_id::ty.tinyint AS system_type_id, c.user_type_id::ty.int AS user_type_id, c.max_length::ty.smallint AS max_length,
  c.precision::ty.tinyint AS precision, c.scale::ty.tinyint AS scale,
  CASE WHEN c.type_name IN ('char', 'varchar', 'nchar', 'nvarchar', 'text', 'ntext') THEN coalesce(c.collation_name, d.collation_name) END::ty."nvarchar(128)" AS collation_name,
  c.is_nullable::ty.bit AS is_nullable, 1::ty.bit AS is_ansi_padded, c.is_rowguid::ty.bit AS is_rowguidcol,
  (c.identity_seed IS NOT NULL)::int::ty.bit AS is_identity, (c.computed IS NOT NULL)::int::ty.bit AS is_computed, 0::ty.bit AS is_filestream,
  0::ty.bit AS is_replicated, 0::ty.bit AS is_non_sql_subscribed, 0::ty.bit AS is_merge_published, 0::ty.bit AS is_dts_replicated, 0::ty.bit AS is_xml_document,
  0::ty.int AS xml_collection_id, c.default_object_id::ty.int AS default_object_id, 0::ty.int AS rule_object_id, c.is_sparse::ty.bit AS is_sparse,
  0::ty.bit AS is_column_set, 0::ty.tinyint AS generated_always_type, 0::ty.bit AS is_hidden, (c.mask IS NOT NULL)::int::ty.bit AS is_masked,
  c.encryption_type::ty.int AS encryption_type
  FROM cat.columns c JOIN cat.objects o USING (object_id) JOIN cat.databases d USING (database_id);
CREATE VIEW sys.all_columns AS SELECT * FROM sys.columns;

CREATE TABLE cat.system_types (name text, system_type_id int, user_type_id int, max_length int, precision int, scale int);
INSERT INTO cat.system_types VALUES ('image', 34, 34, 16, 0, 0), ('text', 35, 35, 16, 0, 0), ('uniqueidentifier', 36, 36, 16, 0, 0),
  ('date', 40, 40, 3, 10, 0), ('time', 41, 41, 5, 16, 7), ('datetime2', 42, 42, 8, 27, 7), ('datetimeoffset', 43, 43, 10, 34, 7),
  ('tinyint', 48, 48, 1, 3, 0), ('smallint', 52, 52, 2, 5, 0), ('int', 56, 56, 4, 10, 0), ('smalldatetime', 58, 58, 4, 16, 0),
  ('real', 59, 59, 4, 24, 0), ('money', 60, 60, 8, 19, 4), ('datetime', 61, 61, 8, 23, 3), ('float', 62, 62, 8, 53, 0),
  ('sql_variant', 98, 98, 8016, 0, 0), ('ntext', 99, 99, 16, 0, 0), ('bit', 104, 104, 1, 1, 0), ('decimal', 106, 106, 17, 38, 38),
  ('numeric', 108, 108, 17, 38, 38), ('smallmoney', 122, 122, 4, 10, 4), ('bigint', 127, 127, 8, 19, 0), ('hierarchyid', 240, 128, 892, 0, 0),
  ('geometry', 240, 129, -1, 0, 0), ('geography', 240, 130, -1, 0, 0), ('varbinary', 165, 165, 8000, 0, 0), ('varchar', 167, 167, 8000, 0, 0),
  ('binary', 173, 173, 8000, 0, 0), ('char', 175, 175, 8000, 0, 0), ('timestamp', 189, 189, 8, 0, 0), ('nvarchar', 231, 231, 8000, 0, 0),
  ('nchar', 239, 239, 8000, 0, 0), ('xml', 241, 241, -1, 0, 0), ('json', 244, 244, -1, 0, 0), ('vector', 165, 255, 8000, 0, 0), ('sysname', 231, 256, 256, 0, 0);
CREATE VIEW cat.all_types AS SELECT d.database_id, t.name, t.system_type_id, t.user_type_id, 4 AS schema_id, t.max_length, t.precision, t.scale,
  (t.name <> 'sysname')::int AS is_nullable, 0 AS is_user_defined FROM cat.databases d CROSS JOIN cat.system_types t
  UNION ALL SELECT t.database_id, t.name, s.system_type_id, t.user_type_id, t.schema_id, s.max_length, s.precision, s.scale, t.is_nullable, 1
  FROM cat.types t JOIN cat.system_types s ON s.name = lower(rtrim(split_part(t.declared, '(', 1)));
CREATE VIEW sys.types AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, system_type_id::ty.tinyint AS system_type_id,
  user_type_id::ty.int AS user_type_id, schema_id::ty.int AS schema_id, NULL::ty.int AS principal_id, max_length::ty.smallint AS max_length,
  precision::ty.tinyint AS precision, scale::ty.tinyint AS scale, NULL::ty."nvarchar(128)" AS collation_name, is_nullable::ty.bit AS is_nullable,
  is_user_defined::ty.bit AS is_user_defined, (system_type_id = 240)::int::ty.bit AS is_assembly_type, 0::ty.int AS default_object_id,
  0::ty.int AS rule_object_id, 0::ty.bit AS is_table_type FROM cat.all_types;

CREATE VIEW cat.all_indexes AS SELECT o.database_id, i.object_id, i.name, i.index_id, i.type, i.is_unique, i.is_primary_key, i.is_unique_constraint, i.filter
  FROM cat.indexes i JOIN cat.objects o USING (object_id)
  UNION ALL SELECT o.database_id, o.object_id, NULL, 0, 0, 0, 0, 0, NULL FROM cat.objects o
  WHERE o.type = 'U' AND NOT EXISTS (SELECT 1 FROM cat.indexes i WHERE i.object_id = o.object_id AND i.type = 1);
CREATE VIEW sys.indexes AS SELECT i.database_id AS _db, i.object_id::ty.int AS object_id, i.name::ty."nvarchar(128)" AS name, i.index_id::ty.int AS index_id,
  i.type::ty.tinyint AS type, CASE i.type WHEN 0 THEN 'HEAP' WHEN 1 THEN 'CLUSTERED' ELSE 'NONCLUSTERED' END::ty."nvarchar(60)" AS type_desc,
  i.is_unique::ty.bit AS is_unique, 1::ty.int AS data_space_id, 0::ty.bit AS ignore_dup_key, i.is_primary_key::ty.bit AS is_primary_key,
  i.is_unique_constraint::ty.bit AS is_unique_constraint, 0::ty.tinyint AS fill_factor, 0::ty.bit AS is_padded, 0::ty.bit AS is_disabled,
  0::ty.bit AS is_hypothetical, (i.filter IS NOT NULL)::int::ty.bit AS has_filter, i.filter::ty."nvarchar(max)" AS filter_definition
  FROM cat.all_indexes i;
CREATE VIEW sys.index_columns AS SELECT o.database_id AS _db, i.object_id::ty.int AS object_id, i.index_id::ty.int AS index_id,
  i.index_column_id::ty.int AS index_column_id, i.column_id::ty.int AS column_id, i.key_ordinal::ty.tinyint AS key_ordinal,
  0::ty.tinyint AS partition_ordinal, i.is_descending::ty.bit AS is_descending_key, i.is_included::ty.bit AS is_included_column
  FROM cat.index_columns i JOIN cat.objects o USING (object_id);
CREATE VIEW sys.key_constraints AS SELECT o.database_id AS _db, o.name::ty."nvarchar(128)" AS name, o.object_id::ty.int AS object_id,
  o.schema_id::ty.int AS schema_id, o.parent_object_id::ty.int AS parent_object_id, rpad(o.type, 2)::ty."char(2)" AS type,
  o.type_desc::ty."nvarchar(60)" AS type_desc, i.index_id::ty.int AS unique_index_id, o.is_system_named::ty.bit AS is_system_named
  FROM cat.typed_objects o JOIN cat.indexes i ON i.object_id = o.parent_object_id AND i.name = o.name WHERE o.type IN ('PK', 'UQ');
CREATE VIEW sys.default_constraints AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id,
  schema_id::ty.int AS schema_id, parent_object_id::ty.int AS parent_object_id, 'D '::ty."char(2)" AS type, type_desc::ty."nvarchar(60)" AS type_desc,
  parent_column_id::ty.int AS parent_column_id,
  CASE WHEN ms.sees_definition(database_id, parent_object_id) THEN definition END::ty."nvarchar(max)" AS definition,
  is_system_named::ty.bit AS is_system_named FROM cat.typed_objects WHERE type = 'D';
CREATE VIEW sys.check_constraints AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id,
  schema_id::ty.int AS schema_id, parent_object_id::ty.int AS parent_object_id, 'C '::ty."char(2)" AS type, type_desc::ty."nvarchar(60)" AS type_desc,
  0::ty.bit AS is_disabled, parent_column_id::ty.int AS parent_column_id, definition::ty."nvarchar(max)" AS definition
  FROM cat.typed_objects WHERE type = 'C';
CREATE VIEW sys.computed_columns AS SELECT c.*, x.computed::ty."nvarchar(max)" AS definition, 1::ty.bit AS uses_database_collation,
  x.is_persisted::ty.bit AS is_persisted FROM sys.columns c JOIN cat.columns x USING (object_id, column_id) WHERE x.computed IS NOT NULL;
CREATE VIEW sys.identity_columns AS SELECT c.*, ('bigint:' || x.identity_seed)::ty.sql_variant AS seed_value,
  ('bigint:' || x.identity_increment)::ty.sql_variant AS increment_value, ('bigint:' || ms.ident_current(x.object_id)::int8)::ty.sql_variant AS last_value
  FROM sys.columns c JOIN cat.columns x USING (object_id, column_id) WHERE x.identity_seed IS NOT NULL;
CREATE VIEW sys.foreign_keys AS SELECT database_id AS _db, name::ty."nvarchar(128)" AS name, object_id::ty.int AS object_id, schema_id::ty.int AS schema_id,
  parent_object_id::ty.int AS parent_object_id, 'F '::ty."char(2)" AS type, (details->>'referenced')::int::ty.int AS referenced_object_id,
  0::ty.bit AS is_disabled FROM cat.objects WHERE type = 'F';
CREATE VIEW sys.foreign_key_columns AS SELECT o.database_id AS _db, o.object_id::ty.int AS constraint_object_id, n::int::ty.int AS constraint_column_id,
  o.parent_object_id::ty.int AS parent_object_id, (o.details->'columns'->>(n - 1)::int)::int::ty.int AS parent_column_id,
  (o.details->>'referenced')::int::ty.int AS referenced_object_id, (o.details->'keys'->>(n - 1)::int)::int::ty.int AS referenced_column_id
  FROM cat.objects o, LATERAL generate_series(1, jsonb_array_length(o.details->'columns')) n WHERE o.type = 'F';
CREATE VIEW sys.extended_properties AS SELECT database_id AS _db, class::ty.tinyint AS class,
  CASE class WHEN 0 THEN 'DATABASE' WHEN 1 THEN 'OBJECT_OR_COLUMN' WHEN 3 THEN 'SCHEMA' ELSE 'OTHER' END::ty."nvarchar(60)" AS class_desc,
  major_id::ty.int AS major_id, minor_id::ty.int AS minor_id, name::ty."nvarchar(128)" AS name, ('nvarchar:' || value)::ty.sql_variant AS value
  FROM cat.extended_properties;
CREATE VIEW sys.partitions AS SELECT o.database_id AS _db, (o.object_id::int8 * 1000 + i.index_id::int8)::ty.bigint AS partition_id, o.object_id::ty.int AS object_id,
  i.index_id::ty.int AS index_id, n::ty.int AS partition_number,
  coalesce(h.hobt, o.object_id::int8 * 1000 + i.index_id::int8 + (n - 1) * 1000000000000000)::ty.bigint AS hobt_id,
  coalesce(h.rows, CASE n WHEN 1 THEN ms.row_count(o.object_id) ELSE 0 END)::ty.bigint AS rows, 0::ty.tinyint AS data_compression
  FROM cat.objects o JOIN sys.indexes i ON i.object_id = o.object_id LEFT JOIN cat.partitioned p ON p.object_id = o.object_id
  CROSS JOIN LATERAL generate_series(1, coalesce(p.parts, 1)) n LEFT JOIN cat.moved h ON h.object_id = o.object_id AND h.part = n WHERE o.type = 'U';
CREATE VIEW sys.security_policies AS SELECT DISTINCT o.database_id AS _db, f.policy::ty."nvarchar(128)" AS name, (f.object_id + 1)::ty.int AS object_id,
  1::ty.bit AS is_enabled FROM cat.filters f JOIN cat.objects o USING (object_id) WHERE ms.sees_policies(o.database_id);
CREATE VIEW sys.security_predicates AS SELECT o.database_id AS _db, (f.object_id + 1)::ty.int AS object_id, f.object_id::ty.int AS target_object_id,
  0::ty.int AS predicate_type, f.condition::ty."nvarchar(max)" AS predicate_definition FROM cat.filters f JOIN cat.objects o USING (object_id)
  WHERE ms.sees_policies(o.database_id);
CREATE VIEW sys.dm_db_partition_stats AS SELECT o.database_id AS _db, (o.object_id::int8 * 1000 + i.index_id::int8)::ty.bigint AS partition_id, o.object_id::ty.int AS object_id,
  i.index_id::ty.int AS index_id, 1::ty.int AS partition_number, (pg_relation_size(to_regclass('u.t' || o.object_id)) / 8192)::ty.bigint AS in_row_data_page_count,
  (pg_relation_size(to_regclass('u.t' || o.object_id)) / 8192)::ty.bigint AS used_page_count,
  (pg_relation_size(to_regclass('u.t' || o.object_id)) / 8192)::ty.bigint AS reserved_page_count, ms.row_count(o.object_id)::ty.bigint AS row_count
  FROM cat.objects o JOIN sys.indexes i ON i.object_id = o.object_id WHERE o.type = 'U';
CREATE VIEW sys.allocation_units AS SELECT _db, partition_id AS allocation_unit_id, 1::ty.tinyint AS type,
  'IN_ROW_DATA'::ty."nvarchar(60)" AS type_desc, partition_id AS container_id, reserved_page_count AS total_pages, used_page_count AS used_pages,
  in_row_data_page_count AS data_pages FROM sys.dm_db_partition_stats;
CREATE VIEW sys.synonyms AS SELECT * FROM sys.objects WHERE false;
CREATE VIEW sys.triggers AS SELECT * FROM sys.objects WHERE false;
CREATE VIEW sys.change_tracking_databases AS SELECT database_id FROM sys.databases WHERE false;

-- Principals.
CREATE VIEW sys.server_principals AS SELECT name::ty."nvarchar(128)" AS name, principal_id::ty.int AS principal_id, int4send(principal_id)::ty."varbinary(85)" AS sid,
  rpad(type, 1)::ty."char(1)" AS type, CASE type WHEN 'S' THEN 'SQL_LOGIN' ELSE 'SERVER_ROLE' END::ty."nvarchar(60)" AS type_desc,
  is_disabled::ty.bit AS is_disabled, ms.shown(create_date)::ty.datetime AS create_date, default_database::ty."nvarchar(128)" AS default_database_name FROM cat.logins;
CREATE VIEW sys.sql_logins AS SELECT * FROM sys.server_principals WHERE type = 'S';
CREATE VIEW sys.database_principals AS SELECT u.database_id AS _db, u.name::ty."nvarchar(128)" AS name, u.principal_id::ty.int AS principal_id,
  rpad(u.type, 1)::ty."char(1)" AS type, CASE u.type WHEN 'R' THEN 'DATABASE_ROLE' ELSE 'SQL_USER' END::ty."nvarchar(60)" AS type_desc,
  u.default_schema::ty."nvarchar(128)" AS default_schema_name, ms.shown(u.create_date)::ty.datetime AS create_date,
  int4send(l.principal_id)::ty."varbinary(85)" AS sid, u.is_fixed_role::ty.bit AS is_fixed_role
  FROM cat.users u LEFT JOIN cat.logins l ON lower(l.name) = lower(u.login);
CREATE VIEW sys.database_role_members AS SELECT m.database_id AS _db, r.principal_id::ty.int AS role_principal_id, u.principal_id::ty.int AS member_principal_id
  FROM cat.role_members m JOIN cat.users r ON r.database_id = m.database_id AND lower(r.name) = lower(m.role)
  JOIN cat.users u ON u.database_id = m.database_id AND lower(u.name) = lower(m.member);
CREATE VIEW sys.database_permissions AS SELECT p.database_id AS _db, CASE p.class WHEN 'OBJECT' THEN 1 WHEN 'SCHEMA' THEN 3 ELSE 0 END::ty.tinyint AS class,
  CASE p.class WHEN 'OBJECT' THEN 'OBJECT_OR_COLUMN' ELSE p.class END::ty."nvarchar(60)" AS class_desc, p.major_id::ty.int AS major_id, 0::ty.int AS minor_id,
  u.principal_id::ty.int AS grantee_principal_id, p.permission::ty."nvarchar(128)" AS permission_name, p.state::ty."char(1)" AS state,
  CASE p.state WHEN 'G' THEN 'GRANT' ELSE 'DENY' END::ty."nvarchar(60)" AS state_desc
  FROM cat.permissions p JOIN cat.users u ON u.database_id = p.database_id AND lower(u.name) = lower(p.grantee);
CREATE VIEW sys.server_permissions AS SELECT l.principal_id::ty.int AS grantee_principal_id, p.permission::ty."nvarchar(128)" AS permission_name,
  p.state::ty."char(1)" AS state FROM cat.permissions p JOIN cat.logins l ON lower(l.name) = lower(p.grantee) WHERE p.class = 'SERVER';

-- The server's state.
CREATE VIEW sys.dm_server_services AS SELECT x.servicename::ty."nvarchar(256)" AS servicename, 2::ty.int AS startup_type, 'Automatic'::ty."nvarchar(256)" AS startup_type_desc,
  x.status::ty.int AS status, CASE x.status WHEN 4 THEN 'Running' ELSE 'Stopped' END::ty."nvarchar(256)" AS status_desc, 1::ty.int AS process_id,
  ms.moment_from_local(ms.local_ticks(start_time), ms.offset_minutes())::ty."datetimeoffset(7)" AS last_startup_time
  FROM cat.server, LATERAL (VALUES ('SQL Server (MSSQLSERVER)', 4), ('SQL Server Agent (MSSQLSERVER)', CASE agent_running WHEN 1 THEN 4 ELSE 1 END)) x(servicename, status);
CREATE VIEW sys.dm_exec_sessions AS SELECT session_id::ty.smallint AS session_id, ms.shown(login_time)::ty.datetime AS login_time,
  host_name::ty."nvarchar(128)" AS host_name, program_name::ty."nvarchar(128)" AS program_name, login_name::ty."nvarchar(128)" AS login_name,
  CASE a.state WHEN 'active' THEN 'running' ELSE 'sleeping' END::ty."nvarchar(30)" AS status, 1::ty.bit AS is_user_process, s.database_id::ty.smallint AS database_id,
  (a.state LIKE '%in transaction%' OR a.state = 'active')::int::ty.int AS open_transaction_count
  FROM cat.sessions s LEFT JOIN pg_stat_activity a USING (pid);
CREATE VIEW sys.dm_exec_connections AS SELECT session_id::ty.int AS session_id, 'TCP'::ty."nvarchar(40)" AS net_transport, 'TSQL'::ty."nvarchar(40)" AS protocol_type,
  '127.0.0.1'::ty."nvarchar(48)" AS client_net_address FROM cat.sessions;
CREATE VIEW sys.dm_exec_requests AS SELECT session_id::ty.smallint AS session_id, 'running'::ty."nvarchar(30)" AS status, s.database_id::ty.smallint AS database_id,
  coalesce((SELECT b.session_id FROM cat.sessions b WHERE b.pid = ANY (pg_blocking_pids(s.pid)) LIMIT 1), 0)::ty.smallint AS blocking_session_id
  FROM cat.sessions s JOIN pg_stat_activity a USING (pid) WHERE a.state = 'active';
CREATE VIEW sys.dm_tran_locks AS SELECT 'OBJECT'::ty."nvarchar(60)" AS resource_type, o.database_id::ty.int AS resource_database_id,
  o.object_id::int8::ty.bigint AS resource_associated_entity_id,
  CASE l.mode WHEN 'ExclusiveLock' THEN 'X' WHEN 'AccessExclusiveLock' THEN 'Sch-M' WHEN 'RowShareLock' THEN 'IS' WHEN 'RowExclusiveLock' THEN 'IX'
    WHEN 'ShareLock' THEN 'S' WHEN 'ShareRowExclusiveLock' THEN 'SIX' ELSE 'Sch-S' END::ty."nvarchar(60)" AS request_mode,
  CASE WHEN l.granted THEN 'GRANT' ELSE 'WAIT' END::ty."nvarchar(60)" AS request_status, s.session_id::ty.int AS request_session_id
  FROM pg_locks l JOIN cat.sessions s USING (pid) JOIN pg_class r ON r.oid = l.relation JOIN cat.objects o ON r.relname = 't' || o.object_id
  WHERE l.locktype = 'relation' AND r.relnamespace = 'u'::regnamespace;
CREATE VIEW sys.dm_os_sys_info AS SELECT 2::ty.int AS cpu_count, ms.shown(start_time)::ty.datetime AS sqlserver_start_time FROM cat.server;
CREATE VIEW sys.dm_hadr_database_replica_states AS SELECT database_id, 0::ty.bit AS is_primary_replica FROM sys.databases WHERE false;
CREATE VIEW sys.configurations AS SELECT 1::ty.int AS configuration_id, 'max text repl size (B)'::ty."nvarchar(35)" AS name, 'int:65536'::ty.sql_variant AS value,
  'int:65536'::ty.sql_variant AS value_in_use;

-- The jobs of change data capture, and what the capture job did last.
CREATE VIEW sys.cdc_jobs AS SELECT j.database_id::ty.int AS database_id, j.job_type::ty."nvarchar(20)" AS job_type, ms.guid(j.job_id)::ty.uniqueidentifier AS job_id,
  j.maxtrans::ty.int AS maxtrans, j.maxscans::ty.int AS maxscans, j.continuous::ty.bit AS continuous, j.pollinginterval::ty.bigint AS pollinginterval,
  j.retention::ty.bigint AS retention, j.threshold::ty.bigint AS threshold FROM cat.cdc_jobs j;
CREATE VIEW sys.syssessions AS SELECT 1::ty.int AS session_id, ms.shown(start_time)::ty.datetime AS agent_start_date FROM cat.server;
CREATE VIEW sys.sysjobactivity AS SELECT 1::ty.int AS session_id, ms.guid(j.job_id)::ty.uniqueidentifier AS job_id,
  CASE j.job_type WHEN 'capture' THEN ms.shown(s.start_time) END::ty.datetime AS start_execution_date,
  CASE WHEN j.job_type = 'capture' AND NOT (s.agent_running = 1 AND j.is_running = 1) THEN ms.shown(clock_timestamp()) END::ty.datetime AS stop_execution_date
  FROM cat.cdc_jobs j, cat.server s;
CREATE TABLE cat.log_scans (
  session_id int PRIMARY KEY, database_id int NOT NULL, start_time timestamptz NOT NULL, end_time timestamptz NOT NULL, duration int NOT NULL,
  start_lsn text NOT NULL, end_lsn text NOT NULL, tran_count int8 NOT NULL, command_count int8 NOT NULL, last_commit_lsn text NOT NULL,
  last_commit_time timestamptz, latency int NOT NULL, empty_scan_count int NOT NULL);
CREATE VIEW sys.dm_cdc_log_scan_sessions AS SELECT database_id AS _db, session_id::ty.int AS session_id, ms.shown(start_time)::ty.datetime AS start_time,
  ms.shown(end_time)::ty.datetime AS end_time, duration::ty.int AS duration, 'Done'::ty."nvarchar(200)" AS scan_phase, 0::ty.int AS error_count,
  start_lsn::ty."nvarchar(23)" AS start_lsn, start_lsn::ty."nvarchar(23)" AS current_lsn, end_lsn::ty."nvarchar(23)" AS end_lsn, tran_count::ty.bigint AS tran_count,
  last_commit_lsn::ty."nvarchar(23)" AS last_commit_lsn, ms.shown(last_commit_time)::ty.datetime AS last_commit_time,
  0::ty.bigint AS log_record_count, 0::ty.int AS schema_change_count, command_count::ty.bigint AS command_count,
  start_lsn::ty."nvarchar(23)" AS first_begin_cdc_lsn, end_lsn::ty."nvarchar(23)" AS last_commit_cdc_lsn, latency::ty.int AS latency,
  empty_scan_count::ty.int AS empty_scan_count, 0::ty.int AS failed_sessions_count FROM cat.log_scans;
CREATE VIEW sys.dm_cdc_errors AS SELECT database_id AS _db, session_id::ty.int AS session_id, 0::ty.int AS error_number, ''::ty."nvarchar(1024)" AS error_message
  FROM cat.log_scans WHERE false;

CREATE VIEW infos.schemata AS SELECT s.database_id AS _db, d.name::ty."nvarchar(128)" AS "CATALOG_NAME", s.name::ty."nvarchar(128)" AS "SCHEMA_NAME",
  'dbo'::ty."nvarchar(128)" AS "SCHEMA_OWNER" FROM cat.schemas s JOIN cat.databases d USING (database_id);
