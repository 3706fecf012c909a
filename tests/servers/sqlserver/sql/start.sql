-- The system databases and the administrator.
CREATE FUNCTION cat.create_database(wanted text, number int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  -- A new database begins as a copy of model.
  INSERT INTO cat.databases (database_id, name, collation_name, snapshot_isolation_state, read_committed_snapshot)
    SELECT number, wanted, 'SQL_Latin1_General_CP1_CI_AS', coalesce(max(snapshot_isolation_state), 0), coalesce(max(read_committed_snapshot), 0)
    FROM cat.databases WHERE name = 'model';
  INSERT INTO cat.schemas VALUES (number, 1, 'dbo', 1), (number, 2, 'guest', 2), (number, 3, 'INFORMATION_SCHEMA', 3), (number, 4, 'sys', 4);
  INSERT INTO cat.users (database_id, principal_id, name, type, login, is_fixed_role)
    VALUES (number, 0, 'public', 'R', NULL, 0), (number, 1, 'dbo', 'S', 'sa', 0), (number, 2, 'guest', 'S', NULL, 0),
      (number, 16384, 'db_owner', 'R', NULL, 1), (number, 16385, 'db_accessadmin', 'R', NULL, 1), (number, 16386, 'db_securityadmin', 'R', NULL, 1),
      (number, 16387, 'db_ddladmin', 'R', NULL, 1), (number, 16390, 'db_datareader', 'R', NULL, 1), (number, 16391, 'db_datawriter', 'R', NULL, 1);
  EXECUTE format('CREATE SEQUENCE u.rowversion_%s START 2001', number);
  EXECUTE format('CREATE SEQUENCE log.position_%s', number);
  RETURN number;
END $$;
SELECT cat.create_database('master', 1), cat.create_database('tempdb', 2), cat.create_database('model', 3), cat.create_database('msdb', 4);
UPDATE cat.databases SET snapshot_isolation_state = 1 WHERE database_id IN (1, 4);
INSERT INTO cat.logins (principal_id, name, type) VALUES (1, 'sa', 'S'), (3, 'sysadmin', 'R');
