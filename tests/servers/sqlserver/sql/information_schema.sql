-- INFORMATION_SCHEMA, and what the procedures for ODBC and JDBC metadata return.
CREATE VIEW infos.tables AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "TABLE_CATALOG", s.name::ty."nvarchar(128)" AS "TABLE_SCHEMA",
  o.name::ty."nvarchar(128)" AS "TABLE_NAME", CASE o.type WHEN 'U' THEN 'BASE TABLE' ELSE 'VIEW' END::ty."varchar(10)" AS "TABLE_TYPE"
  FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id) WHERE o.type IN ('U', 'V');
CREATE VIEW infos.columns AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "TABLE_CATALOG", s.name::ty."nvarchar(128)" AS "TABLE_SCHEMA",
  o.name::ty."nvarchar(128)" AS "TABLE_NAME", c.name::ty."nvarchar(128)" AS "COLUMN_NAME", c.column_id::ty.int AS "ORDINAL_POSITION",
  f.definition::ty."nvarchar(4000)" AS "COLUMN_DEFAULT", CASE c.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END::ty."varchar(3)" AS "IS_NULLABLE",
  c.type_name::ty."nvarchar(128)" AS "DATA_TYPE",
  CASE WHEN c.type_name IN ('char', 'varchar', 'nchar', 'nvarchar', 'binary', 'varbinary') THEN c.length WHEN c.type_name IN ('text', 'image') THEN 2147483647
    WHEN c.type_name = 'ntext' THEN 1073741823 WHEN c.type_name = 'xml' THEN -1 END::ty.int AS "CHARACTER_MAXIMUM_LENGTH",
  CASE WHEN c.type_name IN ('nchar', 'nvarchar') AND c.length > 0 THEN c.length * 2 WHEN c.type_name IN ('char', 'varchar', 'binary', 'varbinary', 'nvarchar') THEN c.length END::ty.int AS "CHARACTER_OCTET_LENGTH",
  CASE WHEN c.type_name IN ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'numeric', 'money', 'smallmoney', 'float', 'real') THEN c.precision END::ty.tinyint AS "NUMERIC_PRECISION",
  CASE WHEN c.type_name IN ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'numeric', 'money', 'smallmoney') THEN 10 WHEN c.type_name IN ('float', 'real') THEN 2 END::ty.smallint AS "NUMERIC_PRECISION_RADIX",
  CASE WHEN c.type_name IN ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'numeric', 'money', 'smallmoney') THEN c.scale END::ty.int AS "NUMERIC_SCALE",
  CASE WHEN c.type_name IN ('date', 'time', 'datetime', 'datetime2', 'smalldatetime', 'datetimeoffset') THEN c.scale END::ty.smallint AS "DATETIME_PRECISION",
  NULL::ty."nvarchar(128)" AS "CHARACTER_SET_NAME", c.collation_name::ty."nvarchar(128)" AS "COLLATION_NAME"
  FROM cat.columns c JOIN cat.objects o USING (object_id) JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id)
  LEFT JOIN cat.objects f ON f.object_id = c.default_object_id;
CREATE VIEW infos.table_constraints AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "CONSTRAINT_CATALOG", s.name::ty."nvarchar(128)" AS "CONSTRAINT_SCHEMA",
  o.name::ty."nvarchar(128)" AS "CONSTRAINT_NAME", d.name::ty."nvarchar(128)" AS "TABLE_CATALOG", s.name::ty."nvarchar(128)" AS "TABLE_SCHEMA", t.name::ty."nvarchar(128)" AS "TABLE_NAME",
  CASE o.type WHEN 'PK' THEN 'PRIMARY KEY' WHEN 'UQ' THEN 'UNIQUE' WHEN 'F' THEN 'FOREIGN KEY' ELSE 'CHECK' END::ty."varchar(11)" AS "CONSTRAINT_TYPE"
  FROM cat.objects o JOIN cat.objects t ON t.object_id = o.parent_object_id JOIN cat.schemas s ON s.database_id = t.database_id AND s.schema_id = t.schema_id
  JOIN cat.databases d ON d.database_id = o.database_id WHERE o.type IN ('PK', 'UQ', 'F', 'C');
CREATE VIEW infos.key_column_usage AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "CONSTRAINT_CATALOG", s.name::ty."nvarchar(128)" AS "CONSTRAINT_SCHEMA",
  i.name::ty."nvarchar(128)" AS "CONSTRAINT_NAME", d.name::ty."nvarchar(128)" AS "TABLE_CATALOG", s.name::ty."nvarchar(128)" AS "TABLE_SCHEMA",
  o.name::ty."nvarchar(128)" AS "TABLE_NAME", c.name::ty."nvarchar(128)" AS "COLUMN_NAME", x.key_ordinal::ty.int AS "ORDINAL_POSITION"
  FROM cat.index_columns x JOIN cat.indexes i USING (object_id, index_id) JOIN cat.columns c USING (object_id, column_id) JOIN cat.objects o USING (object_id)
  JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id) WHERE i.is_primary_key = 1 OR i.is_unique_constraint = 1;

-- sp_tables, sp_columns_100, sp_pkeys, sp_statistics_100.
CREATE VIEW infos.sp_tables AS SELECT t._db, t."TABLE_CATALOG" AS "TABLE_QUALIFIER", t."TABLE_SCHEMA" AS "TABLE_OWNER", t."TABLE_NAME",
  CASE t."TABLE_TYPE" WHEN 'VIEW' THEN 'VIEW' ELSE 'TABLE' END::ty."varchar(32)" AS "TABLE_TYPE", NULL::ty."varchar(254)" AS "REMARKS" FROM infos.tables t;
CREATE TABLE cat.odbc_types (name text PRIMARY KEY, data_type int, precision int, length int, scale int, radix int, sql_type int, sub int, ss_type int);
INSERT INTO cat.odbc_types VALUES ('bit', -7, 1, 1, NULL, NULL, -7, NULL, 50), ('tinyint', -6, 3, 1, 0, 10, -6, NULL, 37), ('smallint', 5, 5, 2, 0, 10, 5, NULL, 38),
  ('int', 4, 10, 4, 0, 10, 4, NULL, 38), ('bigint', -5, 19, 8, 0, 10, -5, NULL, 108), ('decimal', 3, NULL, NULL, NULL, 10, 3, NULL, 106),
  ('numeric', 2, NULL, NULL, NULL, 10, 2, NULL, 108), ('money', 3, 19, 21, 4, 10, 3, NULL, 110), ('smallmoney', 3, 10, 12, 4, 10, 3, NULL, 110),
  ('float', 6, 53, 8, NULL, 2, 6, NULL, 109), ('real', 7, 24, 4, NULL, 2, 7, NULL, 109), ('date', 91, 10, 6, 0, NULL, 9, 1, 0),
  ('time', -154, NULL, 12, NULL, NULL, -154, 0, 0), ('datetime', 93, 23, 16, 3, NULL, 9, 3, 111), ('smalldatetime', 93, 16, 16, 0, NULL, 9, 3, 111),
  ('datetime2', 93, NULL, 16, NULL, NULL, 9, 3, 0), ('datetimeoffset', -155, NULL, 20, NULL, NULL, -155, 0, 0), ('char', 1, NULL, NULL, NULL, NULL, 1, NULL, 47),
  ('varchar', 12, NULL, NULL, NULL, NULL, 12, NULL, 39), ('text', -1, 2147483647, 2147483647, NULL, NULL, -1, NULL, 35), ('nchar', -8, NULL, NULL, NULL, NULL, -8, NULL, 39),
  ('nvarchar', -9, NULL, NULL, NULL, NULL, -9, NULL, 39), ('ntext', -10, 1073741823, 2147483646, NULL, NULL, -10, NULL, 35), ('binary', -2, NULL, NULL, NULL, NULL, -2, NULL, 45),
  ('varbinary', -3, NULL, NULL, NULL, NULL, -3, NULL, 37), ('image', -4, 2147483647, 2147483647, NULL, NULL, -4, NULL, 34), ('timestamp', -2, 8, 8, NULL, NULL, -2, NULL, 45),
  ('uniqueidentifier', -11, 36, 16, NULL, NULL, -11, NULL, 37), ('xml', -152, 0, 0, NULL, NULL, -152, NULL, 0), ('sql_variant', -150, 8000, 8000, NULL, 10, -150, NULL, 39),
  ('hierarchyid', -151, 892, 892, NULL, NULL, -151, NULL, 23), ('geometry', -151, 0, 0, NULL, NULL, -151, NULL, 23), ('geography', -151, 0, 0, NULL, NULL, -151, NULL, 23);
CREATE VIEW infos.sp_columns AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "TABLE_QUALIFIER", s.name::ty."nvarchar(128)" AS "TABLE_OWNER",
  o.name::ty."nvarchar(128)" AS "TABLE_NAME", c.name::ty."nvarchar(128)" AS "COLUMN_NAME", t.data_type::ty.smallint AS "DATA_TYPE",
  (coalesce(a.name, c.type_name) || CASE WHEN c.identity_seed IS NULL THEN '' ELSE ' identity' END)::ty."nvarchar(128)" AS "TYPE_NAME",
  CASE WHEN t.precision IS NOT NULL THEN t.precision WHEN c.length = -1 THEN 0
    WHEN c.length > 0 THEN c.length WHEN c.type_name = 'time' THEN 8 + sign(c.scale)::int + c.scale WHEN c.type_name = 'datetime2' THEN 19 + sign(c.scale)::int + c.scale
    WHEN c.type_name = 'datetimeoffset' THEN 26 + sign(c.scale)::int + c.scale ELSE c.precision END::ty.int AS "PRECISION",
  CASE WHEN t.length IS NOT NULL THEN t.length WHEN c.length = -1 THEN 0 WHEN c.type_name IN ('nchar', 'nvarchar') THEN c.length * 2
    WHEN c.length > 0 THEN c.length ELSE c.precision + 2 END::ty.int AS "LENGTH",
  coalesce(t.scale, CASE WHEN c.type_name IN ('decimal', 'numeric', 'time', 'datetime2', 'datetimeoffset') THEN c.scale END)::ty.smallint AS "SCALE",
  t.radix::ty.smallint AS "RADIX", c.is_nullable::ty.smallint AS "NULLABLE", NULL::ty."varchar(254)" AS "REMARKS", f.definition::ty."nvarchar(4000)" AS "COLUMN_DEF",
  t.sql_type::ty.smallint AS "SQL_DATA_TYPE", t.sub::ty.smallint AS "SQL_DATETIME_SUB",
  CASE WHEN c.type_name IN ('nchar', 'nvarchar') AND c.length > 0 THEN c.length * 2 WHEN c.type_name IN ('char', 'varchar', 'binary', 'varbinary') THEN c.length
    WHEN c.type_name IN ('text', 'ntext', 'image') THEN t.length END::ty.int AS "CHAR_OCTET_LENGTH",
  c.column_id::ty.int AS "ORDINAL_POSITION", CASE c.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END::ty."varchar(254)" AS "IS_NULLABLE",
  c.is_sparse::ty.smallint AS "SS_IS_SPARSE", 0::ty.smallint AS "SS_IS_COLUMN_SET", (c.computed IS NOT NULL)::int::ty.smallint AS "SS_IS_COMPUTED",
  (c.identity_seed IS NOT NULL)::int::ty.smallint AS "SS_IS_IDENTITY", CASE WHEN t.data_type = -151 THEN d.name END::ty."nvarchar(128)" AS "SS_UDT_CATALOG_NAME",
  CASE WHEN t.data_type = -151 THEN 'sys' END::ty."nvarchar(128)" AS "SS_UDT_SCHEMA_NAME",
  CASE WHEN t.data_type = -151 THEN 'Microsoft.SqlServer.Types.' || c.type_name END::ty."nvarchar(max)" AS "SS_UDT_ASSEMBLY_TYPE_NAME",
  NULL::ty."nvarchar(128)" AS "SS_XML_SCHEMACOLLECTION_CATALOG_NAME", NULL::ty."nvarchar(128)" AS "SS_XML_SCHEMACOLLECTION_SCHEMA_NAME",
  NULL::ty."nvarchar(128)" AS "SS_XML_SCHEMACOLLECTION_NAME", t.ss_type::ty.tinyint AS "SS_DATA_TYPE"
  FROM cat.columns c JOIN cat.objects o USING (object_id) JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id)
  JOIN cat.odbc_types t ON t.name = c.type_name LEFT JOIN cat.types a ON a.database_id = o.database_id AND a.user_type_id = c.alias_id
  LEFT JOIN cat.objects f ON f.object_id = c.default_object_id WHERE o.type IN ('U', 'V');
CREATE VIEW infos.sp_pkeys AS SELECT o.database_id AS _db, d.name::ty."nvarchar(128)" AS "TABLE_QUALIFIER", s.name::ty."nvarchar(128)" AS "TABLE_OWNER",
  o.name::ty."nvarchar(128)" AS "TABLE_NAME", c.name::ty."nvarchar(128)" AS "COLUMN_NAME", x.key_ordinal::ty.smallint AS "KEY_SEQ", i.name::ty."nvarchar(128)" AS "PK_NAME"
  FROM cat.indexes i JOIN cat.index_columns x USING (object_id, index_id) JOIN cat.columns c USING (object_id, column_id) JOIN cat.objects o USING (object_id)
  JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id) WHERE i.is_primary_key = 1;
CREATE VIEW cat.statistics AS SELECT o.database_id, d.name AS db, s.name AS owner, o.name AS tab, 1 - i.is_unique AS non_unique, i.name AS index_name,
  CASE i.type WHEN 1 THEN 1 ELSE 3 END AS type, x.key_ordinal, c.name AS col, CASE x.is_descending WHEN 1 THEN 'D' ELSE 'A' END AS direction
  FROM cat.indexes i JOIN cat.index_columns x USING (object_id, index_id) JOIN cat.columns c USING (object_id, column_id) JOIN cat.objects o USING (object_id)
  JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id) WHERE x.is_included = 0
  UNION ALL SELECT o.database_id, d.name, s.name, o.name, NULL, NULL, 0, NULL, NULL, NULL
  FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id) WHERE o.type = 'U';
CREATE VIEW infos.sp_statistics AS SELECT database_id AS _db, db::ty."nvarchar(128)" AS "TABLE_QUALIFIER", owner::ty."nvarchar(128)" AS "TABLE_OWNER",
  tab::ty."nvarchar(128)" AS "TABLE_NAME", non_unique::ty.smallint AS "NON_UNIQUE", CASE WHEN index_name IS NOT NULL THEN tab END::ty."nvarchar(128)" AS "INDEX_QUALIFIER",
  index_name::ty."nvarchar(128)" AS "INDEX_NAME", type::ty.smallint AS "TYPE", key_ordinal::ty.smallint AS "SEQ_IN_INDEX", col::ty."nvarchar(128)" AS "COLUMN_NAME",
  direction::ty."char(1)" AS "COLLATION", 0::ty.int AS "CARDINALITY", 1::ty.int AS "PAGES", NULL::ty."varchar(128)" AS "FILTER_CONDITION" FROM cat.statistics;
