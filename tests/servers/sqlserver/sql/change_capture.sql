-- The log that the capture step reads. Triggers of captured tables write changed rows to log.t<object_id>, and one row
-- a transaction and database to cat.transactions; the LSN of a transaction is drawn when it commits.
CREATE TABLE cat.transactions (
  xid xid8 NOT NULL, database_id int NOT NULL, begin_time timestamptz NOT NULL, end_time timestamptz, lsn int8,
  is_marker bool NOT NULL DEFAULT false, PRIMARY KEY (xid, database_id, is_marker));
CREATE INDEX ON cat.transactions (database_id, lsn);

-- One counter a database: positions of log records.
CREATE FUNCTION ms.log_position(database_id int) RETURNS int8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN nextval('log.position_' || database_id);
END $$;

-- At commit: the order of LSNs is the order in which transactions become visible, as the lock is held until then.
CREATE FUNCTION cat.transaction_commits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(20, NEW.database_id);
  UPDATE cat.transactions SET lsn = ms.log_position(NEW.database_id), end_time = clock_timestamp()
  WHERE xid = NEW.xid AND database_id = NEW.database_id AND lsn IS NULL;
  PERFORM pg_notify('committed', NEW.database_id::text);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER commits AFTER INSERT ON cat.transactions DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION cat.transaction_commits();

CREATE FUNCTION cat.note_transaction(changed_database int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO cat.transactions (xid, database_id, begin_time) VALUES (pg_current_xact_id(), changed_database, transaction_timestamp())
  ON CONFLICT DO NOTHING
$$;

-- The jobs of each database, and how far capture has come.
CREATE TABLE cat.cdc_jobs (
  database_id int NOT NULL, job_type text NOT NULL, job_id uuid NOT NULL DEFAULT gen_random_uuid(), is_enabled int2 NOT NULL DEFAULT 1, is_running int2 NOT NULL DEFAULT 1,
  maxtrans int NOT NULL DEFAULT 500, maxscans int NOT NULL DEFAULT 10, continuous int2 NOT NULL DEFAULT 1,
  pollinginterval int8 NOT NULL DEFAULT 5, retention int8 NOT NULL DEFAULT 0, threshold int8 NOT NULL DEFAULT 0,
  PRIMARY KEY (database_id, job_type));

-- The update mask: column n (from 1) is bit (n-1)%8 of byte (n-1)/8, counted from the end.
CREATE FUNCTION ms.update_mask(changed int[], captured int[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE size int := (cardinality(captured) + 7) / 8; mask bytea := decode(repeat('00', size), 'hex'); place int;
BEGIN
  FOR n IN 1 .. cardinality(captured) LOOP
    IF changed IS NULL OR captured[n] = ANY (changed) THEN
      place := size - 1 - (n - 1) / 8;
      mask := set_byte(mask, place, get_byte(mask, place) | (1 << ((n - 1) % 8)));
    END IF;
  END LOOP;
  RETURN mask;
END $$;

-- Capture instances: `columns` are the numbers of the captured columns in the source table, in order; they are the
-- columns 6, 7, … of the change table. Changes from `start_position` on belong to the instance.
CREATE TABLE cat.instances (
  object_id int PRIMARY KEY, database_id int NOT NULL, source_object_id int NOT NULL, name text NOT NULL, start_position int8 NOT NULL,
  columns int[] NOT NULL);
CREATE UNIQUE INDEX ON cat.instances (database_id, lower(name));
CREATE VIEW cat.captured_column AS SELECT source_object_id, unnest(columns) AS column_id FROM cat.instances;

CREATE FUNCTION ms.lsn_text(n int8) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT substring(h, 1, 8) || ':' || substring(h, 9, 8) || ':' || substring(h, 17, 4) FROM (SELECT encode(ms.lsn(n), 'hex') AS h) x
$$;
CREATE FUNCTION ms.lsn_position(lsn bytea) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ((ms.bytes_to_int8(substring(lsn, 1, 4)) - 37) << 24) + ((ms.bytes_to_int8(substring(lsn, 5, 4)) / 8 - 1) << 4)
    + ms.bytes_to_int8(substring(lsn, 9, 2)) - 1
$$;
