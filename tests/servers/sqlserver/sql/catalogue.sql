-- What SQL Server keeps in its system tables.
CREATE SEQUENCE cat.object_ids START 981578535 INCREMENT 16;
CREATE SEQUENCE cat.database_ids START 5;
CREATE SEQUENCE cat.principal_ids START 270;

CREATE TABLE cat.databases (
  database_id int PRIMARY KEY, name text NOT NULL, collation_name text NOT NULL, create_date timestamptz NOT NULL DEFAULT now(),
  is_cdc_enabled int2 NOT NULL DEFAULT 0, snapshot_isolation_state int2 NOT NULL DEFAULT 0, read_committed_snapshot int2 NOT NULL DEFAULT 0,
  recovery_model int2 NOT NULL DEFAULT 1, is_read_only int2 NOT NULL DEFAULT 0, compatibility_level int2 NOT NULL DEFAULT 160);
CREATE UNIQUE INDEX ON cat.databases (lower(name));

CREATE TABLE cat.schemas (
  database_id int NOT NULL, schema_id int NOT NULL, name text NOT NULL, principal_id int NOT NULL DEFAULT 1,
  PRIMARY KEY (database_id, schema_id));
CREATE UNIQUE INDEX ON cat.schemas (database_id, lower(name));

CREATE TABLE cat.objects (
  object_id int PRIMARY KEY DEFAULT nextval('cat.object_ids'), database_id int NOT NULL, schema_id int NOT NULL, name text NOT NULL,
  type text NOT NULL, parent_object_id int NOT NULL DEFAULT 0, is_ms_shipped int2 NOT NULL DEFAULT 0, definition text,
  parent_column_id int NOT NULL DEFAULT 0, is_system_named int2 NOT NULL DEFAULT 0, details jsonb,
  create_date timestamptz NOT NULL DEFAULT now(), modify_date timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX ON cat.objects (database_id, schema_id, lower(name));
CREATE INDEX ON cat.objects (parent_object_id);

CREATE TABLE cat.columns (
  object_id int NOT NULL REFERENCES cat.objects ON DELETE CASCADE, column_id int NOT NULL, name text NOT NULL,
  type_name text NOT NULL, length int NOT NULL, precision int NOT NULL, scale int NOT NULL, collation_name text, alias_id int,
  max_length int NOT NULL, system_type_id int NOT NULL, user_type_id int NOT NULL, is_nullable int2 NOT NULL,
  identity_seed int8, identity_increment int8, computed text, is_persisted int2 NOT NULL DEFAULT 0,
  default_object_id int NOT NULL DEFAULT 0, is_rowguid int2 NOT NULL DEFAULT 0, is_sparse int2 NOT NULL DEFAULT 0,
  mask text, encryption_type int,
  PRIMARY KEY (object_id, column_id));
CREATE UNIQUE INDEX ON cat.columns (object_id, lower(name));

CREATE TABLE cat.indexes (
  object_id int NOT NULL REFERENCES cat.objects ON DELETE CASCADE, index_id int NOT NULL, name text, type int2 NOT NULL,
  is_unique int2 NOT NULL, is_primary_key int2 NOT NULL, is_unique_constraint int2 NOT NULL, filter text,
  PRIMARY KEY (object_id, index_id));
CREATE TABLE cat.index_columns (
  object_id int NOT NULL, index_id int NOT NULL, index_column_id int NOT NULL, column_id int NOT NULL, key_ordinal int NOT NULL,
  is_descending int2 NOT NULL, is_included int2 NOT NULL, PRIMARY KEY (object_id, index_id, index_column_id),
  FOREIGN KEY (object_id, index_id) REFERENCES cat.indexes ON DELETE CASCADE);

CREATE TABLE cat.types (
  database_id int NOT NULL, user_type_id int NOT NULL, schema_id int NOT NULL, name text NOT NULL, declared text NOT NULL,
  is_nullable int2 NOT NULL DEFAULT 1, PRIMARY KEY (database_id, user_type_id));

CREATE TABLE cat.extended_properties (
  database_id int NOT NULL, class int2 NOT NULL, major_id int NOT NULL, minor_id int NOT NULL, name text NOT NULL, value text,
  PRIMARY KEY (database_id, class, major_id, minor_id, name));

-- Who may do what.
CREATE TABLE cat.logins (principal_id int PRIMARY KEY DEFAULT nextval('cat.principal_ids'), name text NOT NULL, type text NOT NULL,
  password text, default_database text NOT NULL DEFAULT 'master', is_disabled int2 NOT NULL DEFAULT 0, create_date timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX ON cat.logins (lower(name));
CREATE TABLE cat.users (database_id int NOT NULL, principal_id int NOT NULL DEFAULT nextval('cat.principal_ids'), name text NOT NULL,
  type text NOT NULL, login text, default_schema text, is_fixed_role int2 NOT NULL DEFAULT 0, create_date timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (database_id, principal_id));
CREATE UNIQUE INDEX ON cat.users (database_id, lower(name));
-- A database_id of 0 is the server.
CREATE TABLE cat.role_members (database_id int NOT NULL, role text NOT NULL, member text NOT NULL, PRIMARY KEY (database_id, role, member));
CREATE TABLE cat.permissions (database_id int NOT NULL, grantee text NOT NULL, permission text NOT NULL, state text NOT NULL,
  class text NOT NULL, major_id int NOT NULL DEFAULT 0);

-- Tables with several partitions, and rows that a security policy shows to nobody but the logins that are named.
CREATE TABLE cat.partitioned (object_id int PRIMARY KEY, parts int NOT NULL);
-- Where parts lie that were switched or rebuilt; without a number they have the rows of their table.
CREATE SEQUENCE cat.hobts START 72057594043000000;
CREATE TABLE cat.moved (object_id int NOT NULL, part int NOT NULL, hobt int8 NOT NULL, rows int8, PRIMARY KEY (object_id, part));
CREATE TABLE cat.filters (object_id int NOT NULL, policy text NOT NULL, condition text NOT NULL, exempt text NOT NULL);
-- SERVERPROPERTY, by names in lower case.
CREATE TABLE cat.properties (name text PRIMARY KEY, value text);
-- The server: one row.
CREATE TABLE cat.server (agent_running int2 NOT NULL DEFAULT 1, start_time timestamptz NOT NULL DEFAULT now());
INSERT INTO cat.server DEFAULT VALUES;

-- A table, view or module with its columns and indexes, as the translation reads it.
CREATE VIEW cat.described_objects AS
SELECT o.object_id, o.database_id, o.name, s.name AS schema_name, json_build_object(
  'object_id', o.object_id, 'database_id', o.database_id, 'database', d.name, 'schema', s.name, 'name', o.name,
  'kind', o.type, 'definition', o.definition, 'shipped', o.is_ms_shipped,
  'columns', (SELECT coalesce(json_agg(json_build_array(c.name, c.column_id, c.type_name, c.length, c.precision, c.scale, c.collation_name,
      c.alias_id, c.is_nullable, c.identity_seed, c.identity_increment, c.computed, f.definition, f.name, c.is_rowguid,
      c.mask IS NOT NULL) ORDER BY c.column_id), '[]')
    FROM cat.columns c LEFT JOIN cat.objects f ON f.object_id = c.default_object_id WHERE c.object_id = o.object_id),
  'indexes', (SELECT coalesce(json_agg(json_build_array(i.name, i.index_id, i.type, i.is_unique, i.is_primary_key, i.is_unique_constraint,
      (SELECT coalesce(json_agg(json_build_array(x.column_id, x.is_descending, x.is_included) ORDER BY x.is_included, x.index_column_id), '[]')
       FROM cat.index_columns x WHERE x.object_id = i.object_id AND x.index_id = i.index_id)) ORDER BY i.index_id), '[]')
    FROM cat.indexes i WHERE i.object_id = o.object_id),
  'filters', (SELECT coalesce(json_agg(json_build_array(x.condition, x.exempt)), '[]') FROM cat.filters x WHERE x.object_id = o.object_id),
  'captured', to_regclass('log.t' || o.object_id) IS NOT NULL) AS description
FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id) JOIN cat.databases d USING (database_id);
