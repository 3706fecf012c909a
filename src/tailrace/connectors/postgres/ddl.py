"""DDL as the server itself tells it: event triggers that write a logical message for each change of a table."""

from __future__ import annotations

import psycopg

from tailrace.config import Config
from tailrace.connectors.postgres.connect import connect, first_line
from tailrace.errors import SourceError

PREFIX = "tailrace.ddl"
VERSION = 1
PRESENT = "SELECT FROM pg_event_trigger WHERE evtname = 'tailrace_ddl_end'"

_SCHEMA = "tailrace_ddl"
_STATEMENT_CHARACTERS = 100_000
_SECURE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

REMOVE = f"""\
DROP EVENT TRIGGER IF EXISTS tailrace_ddl_end;
DROP EVENT TRIGGER IF EXISTS tailrace_ddl_drop;
DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE;
"""

# Made anew each time, so that nobody's older functions of these names run with the rights of whoever runs DDL.
INSTALL = f"""\
{REMOVE}CREATE SCHEMA {_SCHEMA};

-- The tables a statement touched, with those that inherit from them (partitions do).
CREATE FUNCTION {_SCHEMA}.touched() RETURNS oid[] LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
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
CREATE FUNCTION {_SCHEMA}.is_outdated(by xid) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN by = '0'::xid THEN false ELSE coalesce(pg_xact_status(
    (here - (((here - by::text::bigint + 2147483648) & 4294967295) - 2147483648))::text::xid8) = 'committed', false) END
  FROM (SELECT pg_current_xact_id()::text::bigint AS here) AS now
$$;

-- Name and columns by number: as they were before the statement, if called from a STABLE function, else as they are.
CREATE FUNCTION {_SCHEMA}.names(tables oid[]) RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_object_agg(c.oid, jsonb_build_object(
    'schema', nspname, 'name', relname,
    'outdated', {_SCHEMA}.is_outdated(c.xmax) OR {_SCHEMA}.is_outdated(n.xmax),
    'columns', (
      SELECT coalesce(jsonb_object_agg(attnum, attname), '{{}}') FROM pg_attribute a
      WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        AND (a.xmax = '0'::xid OR NOT {_SCHEMA}.is_outdated(a.xmax)))
  ) ORDER BY {_SCHEMA}.is_outdated(c.xmax) DESC), '{{}}')
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = ANY (tables)
$$;

-- Tables as they are now, each with what it was called before.
CREATE FUNCTION {_SCHEMA}.described(tables oid[], was jsonb) RETURNS jsonb LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_agg(jsonb_build_object(
    'kind', CASE WHEN was ? id::text THEN 'ALTER' ELSE 'CREATE' END,
    'oid', id::bigint, 'schema', object_names[1], 'name', object_names[2], 'was', was -> id::text,
    'comment', obj_description(id, 'pg_class'),
    'key', (
      SELECT jsonb_agg(attname ORDER BY place)
      FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place), pg_attribute a
      WHERE i.indrelid = id AND indisprimary AND place <= indnkeyatts AND attrelid = id AND attnum = number
        AND (i.xmax = '0'::xid OR NOT {_SCHEMA}.is_outdated(i.xmax))
        AND (a.xmax = '0'::xid OR NOT {_SCHEMA}.is_outdated(a.xmax))),
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
        AND (a.xmax = '0'::xid OR NOT {_SCHEMA}.is_outdated(a.xmax)))
  ) ORDER BY id)
  FROM unnest(tables) AS id, pg_identify_object_as_address('pg_class'::regclass, id, 0)
$$;

CREATE FUNCTION {_SCHEMA}.tell(tag text, tables jsonb) RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_logical_emit_message(true, '{PREFIX}', jsonb_build_object(
    'version', {VERSION}, 'tag', tag, 'statement', left(current_query(), {_STATEMENT_CHARACTERS}), 'tables', tables
  )::text) WHERE jsonb_array_length(tables) > 0
$$;

-- STABLE: what it calls that is STABLE, too, reads the catalog as it was before the statement. So old names are known.
CREATE FUNCTION {_SCHEMA}.at_end() RETURNS event_trigger LANGUAGE plpgsql STABLE
{_SECURE} AS $$
DECLARE
  touched oid[] := {_SCHEMA}.touched();
BEGIN
  IF touched IS NOT NULL THEN
    PERFORM {_SCHEMA}.tell(tg_tag, {_SCHEMA}.described(touched, {_SCHEMA}.names(touched)));
  END IF;
END $$;

-- Tables that are gone, and columns that went with something else (DROP TYPE ... CASCADE).
CREATE FUNCTION {_SCHEMA}.at_drop() RETURNS event_trigger LANGUAGE plpgsql VOLATILE
{_SECURE} AS $$
DECLARE
  gone jsonb;
  altered oid[];
  was jsonb;
BEGIN
  SELECT jsonb_agg(jsonb_build_object('kind', 'DROP', 'oid', objid::bigint, 'schema', schema_name, 'name', object_name))
    INTO gone FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table' AND NOT is_temporary;
  PERFORM {_SCHEMA}.tell(tg_tag, gone);
  IF tg_tag <> 'ALTER TABLE' THEN
    SELECT array_agg(DISTINCT objid) INTO altered
      FROM pg_event_trigger_dropped_objects() d JOIN pg_class c ON c.oid = objid
      WHERE object_type = 'table column' AND relkind IN ('r', 'p') AND relpersistence = 'p';
    was := {_SCHEMA}.names(altered);
    SELECT jsonb_object_agg(key, jsonb_set(value, '{{columns}}', (value -> 'columns') || (
        SELECT jsonb_object_agg(objsubid, address_names[3]) FROM pg_event_trigger_dropped_objects()
        WHERE object_type = 'table column' AND objid = key::oid)))
      INTO was FROM jsonb_each(was);
    PERFORM {_SCHEMA}.tell(tg_tag, {_SCHEMA}.described(altered, was));
  END IF;
END $$;

CREATE EVENT TRIGGER tailrace_ddl_end ON ddl_command_end EXECUTE FUNCTION {_SCHEMA}.at_end();
CREATE EVENT TRIGGER tailrace_ddl_drop ON sql_drop EXECUTE FUNCTION {_SCHEMA}.at_drop();
"""
_OTHERS = """
SELECT slot_name FROM pg_replication_slots
WHERE database = current_database() AND slot_type = 'logical' AND slot_name <> %s ORDER BY 1
"""


def install(config: Config) -> None:
    """Makes the triggers, anew where there are some. Raises SourceError with the statements for somebody who may."""
    with connect(config) as connection:
        try:
            connection.execute(INSTALL.encode())
        except psycopg.Error as error:
            remedy = (
                f"Have a superuser run this in the database, on the primary; the pipeline needs no more:\n\n{INSTALL}"
            )
            where = f"DDL triggers of {config.text('database.dbname')}"
            raise SourceError(f"cannot be made: {first_line(error)}", where=where, remedy=remedy) from error


def remove(connection: psycopg.Connection, slot: str) -> list[str]:
    """Removes the triggers if no slot but `slot` is left that may want them; what was done, in no line or one."""
    if connection.execute(PRESENT).fetchone() is None:
        return []
    others = [name for (name,) in connection.execute(_OTHERS, [slot])]
    if others:
        return [f"DDL triggers: kept, as other slots may need them: {', '.join(others)}"]
    try:
        connection.execute(REMOVE.encode())
    except psycopg.errors.InsufficientPrivilege as error:
        return [f"DDL triggers: kept, {first_line(error)}; a superuser runs: {' '.join(REMOVE.split())}"]
    return ["DDL triggers: dropped"]
