-- Reports each change of a table's definition in the log: two event triggers write a row into a table that nobody else
-- may write. Run it as a superuser, or as the role that a managed server lets make event triggers, on the primary. It may
-- be run again at any time.
BEGIN;

DROP EVENT TRIGGER IF EXISTS tailrace_ddl_end;
DROP EVENT TRIGGER IF EXISTS tailrace_ddl_drop;

-- What another role owns is not trusted. Functions are made again; the table stays, as pipelines know it by its number.
DO $$
DECLARE
  made text;
BEGIN
  IF EXISTS (
    SELECT FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
    WHERE nspname = 'tailrace_ddl' AND (nspowner <> current_user::regrole OR relowner <> current_user::regrole)
  ) THEN
    DROP SCHEMA tailrace_ddl CASCADE;
  END IF;
  CREATE SCHEMA IF NOT EXISTS tailrace_ddl;
  FOR made IN SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'tailrace_ddl'::regnamespace LOOP
    EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', made);
  END LOOP;
END $$;

CREATE TABLE IF NOT EXISTS tailrace_ddl.changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content text NOT NULL
);

-- Default privileges may have granted something, or somebody since.
DO $$
DECLARE
  grantee text;
BEGIN
  FOR grantee IN
    SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
    FROM (
      SELECT nspacl FROM pg_namespace WHERE nspname = 'tailrace_ddl'
      UNION ALL SELECT relacl FROM pg_class WHERE relnamespace = 'tailrace_ddl'::regnamespace
      UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = 'tailrace_ddl.changes'::regclass
    ) AS granted (acl), aclexplode(acl) a
    WHERE a.grantee <> current_user::regrole
  LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA tailrace_ddl FROM %s', grantee);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA tailrace_ddl FROM %s', grantee);
  END LOOP;
END $$;

-- The tables a statement touched, with those that inherit from them (partitions do).
CREATE FUNCTION tailrace_ddl.touched() RETURNS oid[] LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE commands AS (
    SELECT classid, objid, command_tag FROM pg_event_trigger_ddl_commands()
  ), touched AS (
    SELECT objid AS oid FROM commands WHERE classid = 'pg_class'::regclass
    UNION
    SELECT c.oid FROM commands JOIN pg_class c ON c.relnamespace = objid
    WHERE classid = 'pg_namespace'::regclass AND command_tag = 'ALTER SCHEMA'
    UNION
    SELECT inhrelid FROM pg_inherits JOIN touched ON inhparent = touched.oid
  )
  SELECT array_agg(DISTINCT oid) FROM touched JOIN pg_class USING (oid)
  WHERE relkind IN ('r', 'p') AND relpersistence = 'p'
$$;

-- Whether another transaction has replaced a row that a snapshot still shows: it is neither what was nor what is. Such
-- are seen by statements that waited for a lock, and where the isolation is more than READ COMMITTED.
CREATE FUNCTION tailrace_ddl.is_outdated(by xid) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN by = '0'::xid THEN false ELSE coalesce(pg_xact_status(
    (here - (((here - by::text::bigint + 2147483648) & 4294967295) - 2147483648))::text::xid8) = 'committed', false) END
  FROM (SELECT pg_current_xact_id()::text::bigint AS here) AS now
$$;

-- Name and columns by number: as they were before the statement, if called from a STABLE function, else as they are.
CREATE FUNCTION tailrace_ddl.names(tables oid[]) RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(c.oid, jsonb_build_object(
    'schema', nspname, 'name', relname,
    'outdated', tailrace_ddl.is_outdated(c.xmax) OR tailrace_ddl.is_outdated(n.xmax),
    'columns', (
      SELECT coalesce(jsonb_object_agg(attnum, attname), '{}') FROM pg_attribute a
      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        AND (a.xmax = '0'::xid OR NOT tailrace_ddl.is_outdated(a.xmax)))
  ) ORDER BY tailrace_ddl.is_outdated(c.xmax) DESC), '{}')
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = ANY (tables)
$$;

-- Tables as they are now, each with what it was called before.
CREATE FUNCTION tailrace_ddl.described(tables oid[], was jsonb) RETURNS jsonb LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_agg(jsonb_build_object(
    'kind', CASE WHEN was ? id::text THEN 'ALTER' ELSE 'CREATE' END,
    'oid', id::bigint, 'schema', object_names[1], 'name', object_names[2], 'was', was -> id::text,
    'comment', obj_description(id, 'pg_class'),
    'key', (
      SELECT jsonb_agg(attname ORDER BY place)
      FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place), pg_attribute a
      WHERE i.indrelid = id AND indisprimary AND place <= indnkeyatts AND attrelid = id AND attnum = number
        AND (i.xmax = '0'::xid OR NOT tailrace_ddl.is_outdated(i.xmax))
        AND (a.xmax = '0'::xid OR NOT tailrace_ddl.is_outdated(a.xmax))),
    'columns', (
      SELECT jsonb_agg(jsonb_build_object(
        'number', attnum, 'name', attname, 'oid', atttypid::bigint, 'modifier', atttypmod, 'type', typname,
        'class', typtype, 'array', typcategory = 'A', 'printed', format_type(atttypid, atttypmod),
        'nullable', NOT (attnotnull OR (typtype = 'd' AND typnotnull)),
        'default', CASE WHEN attgenerated = '' THEN pg_get_expr(adbin, adrelid) END,
        'identity', attidentity <> '', 'generated', attgenerated <> '', 'comment', col_description(id, attnum),
        'labels', (SELECT jsonb_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = atttypid)
      ) ORDER BY attnum)
      FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
      LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
      WHERE attrelid = id AND attnum > 0 AND NOT attisdropped
        AND (a.xmax = '0'::xid OR NOT tailrace_ddl.is_outdated(a.xmax)))
  ) ORDER BY id)
  FROM unnest(tables) AS id, pg_identify_object_as_address('pg_class'::regclass, id, 0)
$$;

-- The row is in the log as soon as it is written, so that it need not stay in the table.
CREATE FUNCTION tailrace_ddl.report(tag text, tables jsonb) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  written bigint;
BEGIN
  IF jsonb_array_length(tables) > 0 THEN
    INSERT INTO tailrace_ddl.changes (content) VALUES (jsonb_build_object(
      'version', 2, 'tag', tag, 'statement', left(current_query(), 100000), 'tables', tables)::text)
      RETURNING id INTO written;
    DELETE FROM tailrace_ddl.changes WHERE id = written;
  END IF;
END $$;

-- STABLE: what it calls that is STABLE, too, reads the catalog as it was before the statement. So old names are known.
CREATE FUNCTION tailrace_ddl.at_end() RETURNS event_trigger LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  touched oid[] := tailrace_ddl.touched();
BEGIN
  IF touched IS NOT NULL THEN
    PERFORM tailrace_ddl.report(tg_tag, tailrace_ddl.described(touched, tailrace_ddl.names(touched)));
  END IF;
END $$;

-- Tables that are gone, and columns that went with something else (DROP TYPE ... CASCADE).
CREATE FUNCTION tailrace_ddl.at_drop() RETURNS event_trigger LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone jsonb;
  altered oid[];
  was jsonb;
BEGIN
  SELECT jsonb_agg(jsonb_build_object('kind', 'DROP', 'oid', objid::bigint, 'schema', schema_name, 'name', object_name))
    INTO gone FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table' AND NOT is_temporary;
  PERFORM tailrace_ddl.report(tg_tag, gone);
  IF tg_tag <> 'ALTER TABLE' THEN
    SELECT array_agg(DISTINCT objid) INTO altered
      FROM pg_event_trigger_dropped_objects() d JOIN pg_class c ON c.oid = objid
      WHERE object_type = 'table column' AND relkind IN ('r', 'p') AND relpersistence = 'p';
    was := tailrace_ddl.names(altered);
    SELECT jsonb_object_agg(key, jsonb_set(value, '{columns}', (value -> 'columns') || (
        SELECT jsonb_object_agg(objsubid, address_names[3]) FROM pg_event_trigger_dropped_objects()
        WHERE object_type = 'table column' AND objid = key::oid)))
      INTO was FROM jsonb_each(was);
    PERFORM tailrace_ddl.report(tg_tag, tailrace_ddl.described(altered, was));
  END IF;
END $$;

CREATE EVENT TRIGGER tailrace_ddl_end ON ddl_command_end EXECUTE FUNCTION tailrace_ddl.at_end();
CREATE EVENT TRIGGER tailrace_ddl_drop ON sql_drop EXECUTE FUNCTION tailrace_ddl.at_drop();

COMMIT;
