"""Lists tables, describes the slot, and drops what a pipeline created."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from tailrace.config import Config
from tailrace.config.filters import OWN_SCHEMA, TableFilter
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.offset import position_of, readable
from tailrace.connectors.ports import Begun, Detail, SourceState, TableOverview
from tailrace.connectors.postgres.admin.resumable import offsets
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import PUBLICATION_AUTOCREATE_MODE, PUBLICATION_NAME, SLOT_NAME
from tailrace.connectors.postgres.position import claim_of_slot, format_lsn, parse_lsn
from tailrace.connectors.postgres.server import control
from tailrace.connectors.postgres.server import slot as slots
from tailrace.connectors.postgres.server.connect import connect, first_line, server_errors
from tailrace.connectors.postgres.server.partition_names import left_out
from tailrace.errors import SourceError
from tailrace.model.quantity import size
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

_TABLES = f"""
SELECT n.nspname AS schema, c.relname AS table, greatest(c.reltuples, 0)::bigint AS rows,
       {{size}} AS bytes,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS has_key,
       c.relkind = 'p' AS is_partitioned, c.relispartition AS is_partition,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS is_readable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', '{OWN_SCHEMA}') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2
"""
# The former waits for a table that is being altered: for hours, where a prepared transaction has done so.
_SIZE, _ABOUT = "pg_total_relation_size(c.oid)", "c.relpages * current_setting('block_size')::bigint"
_LOCK_MS = 1000  # guessed
_COMMENTS = """
SELECT n.nspname, c.relname, d.description FROM pg_description d
JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 AND c.relkind IN ('r', 'p')
"""
_SLOT = """
SELECT slot_name AS name, plugin, active, active_pid AS pid, wal_status, safe_wal_size AS headroom_bytes,
       restart_lsn::text AS restart, confirmed_flush_lsn::text AS confirmed
FROM pg_replication_slots WHERE slot_name = %s
"""
_CURRENT = (
    "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END)::text"
)

_APPLICATIONS = (
    "SELECT DISTINCT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND application_name IS NOT NULL"
)


NO_KEY = "NO KEY: updates and deletes need ALTER TABLE ... REPLICA IDENTITY FULL"


@dataclass(frozen=True, order=True)
class LogPosition:
    """Implements Position: an LSN."""

    lsn: int

    def to_text(self) -> str:
        """As PostgreSQL prints it."""
        return format_lsn(self.lsn)

    def distance(self, other: LogPosition) -> int:
        """Bytes of log from `other` to here."""
        return self.lsn - other.lsn


@dataclass(frozen=True)
class SlotState:
    """A replication slot as the server tells it; LSNs as text.

    `headroom_bytes`: so much log can come before the slot is invalidated; None where there is no limit
    (max_slot_wal_keep_size).
    """

    name: str
    plugin: str | None
    active: bool
    pid: int | None
    _: KW_ONLY
    wal_status: str | None
    restart: str | None
    confirmed: str | None
    headroom_bytes: int | None = None


def tables(config: Config) -> list[TableOverview]:
    """The database's own permanent tables, partitions too, by name, but for those `left_out`. Raises SourceError."""
    with server_errors("the tables cannot be listed"), connect(config) as connection:
        rows = _listed(connection)
        captures, database = TableFilter.from_config(config).captures, config[DATABASE_DBNAME]
        captured = [tuple(row[:2]) for row in rows if captures(TableId(database, *row[:2]))]
        others = left_out(connection, config, captured)
        return [_overview(config, *row) for row in rows if tuple(row[:2]) not in others]


def _listed(connection: psycopg.Connection[Any]) -> list[Any]:
    """The rows of _TABLES."""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}".encode())
            return connection.execute(_TABLES.format(size=_SIZE).encode()).fetchall()
    except psycopg.errors.LockNotAvailable:
        return connection.execute(_TABLES.format(size=_ABOUT).encode()).fetchall()


def comments(config: Config) -> dict[TableId, str]:
    """The comments of tables. Raises SourceError."""
    with server_errors("the comments of tables cannot be read"), connect(config) as connection:
        rows, database = connection.execute(_COMMENTS).fetchall(), config[DATABASE_DBNAME]
        return {TableId(database, schema, table): comment for schema, table, comment in rows}


def _overview(config: Config, schema: str, table: str, *facts: Any) -> TableOverview:
    overview = TableOverview(TableId(config[DATABASE_DBNAME], schema, table), *facts)
    return overview if overview.has_key else replace(overview, remark=NO_KEY)


def position(offset: Mapping[str, Any]) -> LogPosition | None:
    """The position of an offset, None if it has none."""
    text = position_of(offset)
    with readable():
        return None if text is None else LogPosition(parse_lsn(text))


def state(config: Config, pipeline: str | None) -> SourceState:
    """The log's end and the slot of `slot.name`. Raises SourceError."""
    with server_errors("the slot cannot be looked at"), connect(config) as connection:
        row = connection.execute(_CURRENT).fetchone()
        names = connection.execute(_APPLICATIONS).fetchall()
        with connection.cursor(row_factory=class_row(SlotState)) as cursor:
            slot = cursor.execute(_SLOT, [config[SLOT_NAME]]).fetchone()
    assert row is not None  # a SELECT without FROM has one row
    reads_snapshot = (slots.snapshot_application(f"tailrace {pipeline}"),) in names
    return state_of(row[0], slot, reads_snapshot=reads_snapshot)


def state_of(current: str, slot: SlotState | None, *, reads_snapshot: bool = False) -> SourceState:
    """The state of a server whose log ends at the LSN `current`."""
    end, restart = parse_lsn(current), slot.restart if slot else None
    retained = None if restart is None else max(0, end - parse_lsn(restart))
    return SourceState(
        log_end=LogPosition(end),
        idle=None if slot is not None and slot.active else "nobody reads its slot",
        reads_snapshot=reads_snapshot,
        details=(_slot_detail(slot, retained),),
        fields={"retained_bytes": retained, "slot": None if slot is None else asdict(slot)},
    )


def _slot_detail(slot: SlotState | None, retained: int | None) -> Detail:
    if slot is None:
        return Detail("slot", "there is none", is_fine=False)
    activity = f"active (server process {slot.pid})" if slot.active else "not active"
    kept = "" if retained is None else f", retains {size(retained)} of WAL"
    return Detail("slot", f"{slot.name}: {activity}{kept} ({slot.wal_status})", is_fine=slot.active)


def drop(config: Config, begun: Begun | None, *, force: bool = False) -> list[str]:
    """Drops the slot, the publication unless `publication.autocreate.mode` says it is not ours, and the DDL triggers.

    Returns a line for each of them, for triggers where there were some. `begun` are the offsets of the pipeline's
    checkpoint; unless forced, a slot that the checkpoint did not create is left alone. Raises SourceError then, and
    while the pipeline runs or something reads the slot.
    """
    try:
        with connect(config) as connection:
            slot = config[SLOT_NAME]
            done = [_drop_slot(connection, config, begun, force=force), _drop_publication(connection, config)]
            return done + event_triggers.remove(connection, slot)
    except psycopg.Error as error:
        remedy = "Run it as the owner of the publication, with a role that has REPLICATION."
        raise SourceError(first_line(error), where=config[DATABASE_DBNAME], remedy=remedy) from error


def drop_at_stop(config: Config, begun: Begun) -> None:
    """Drops the slot of a pipeline that was stopped, ending a reader of its own that is still there.

    `begun` are the offsets of its checkpoint. Raises SourceError while another process reads the slot.
    """
    with server_errors("the slot cannot be dropped"), connect(config) as connection:
        slot = slots.existing(connection, config)
        if slot is None or begun[1] is None or not _is_owned(connection, config, slot, begun):
            return
        slots.free(connection, config, f"tailrace {begun[1]['pipeline']}")
        slots.drop(connection, slot)
        log.warning("slot %s is dropped, as its pipeline has stopped: changes until the next start are lost", slot.name)


def _drop_slot(connection: psycopg.Connection, config: Config, begun: Begun | None, *, force: bool) -> str:
    name = config[SLOT_NAME]
    slot = slots.find(connection, name)
    if slot is None:
        return f"slot {name}: there is none"
    running = control.holder(connection, name)
    if running is not None or slot.active_pid is not None:
        what = f"a pipeline uses it: {running}" if running else f"is being read by server process {slot.active_pid}"
        raise SourceError(what, where=f"slot {name}", remedy="Stop the pipeline that uses it first.")
    if not force and not _is_owned(connection, config, slot, begun):
        what = "is not dropped, as no checkpoint of this pipeline says that it created it"
        remedy = (
            "Drop it by `tailrace drop --force` if the checkpoint is gone and nobody else needs the slot; for a "
            "connector's file, whose checkpoint is not known, give the pipeline file, or --force."
        )
        raise SourceError(f"{what}: {slot}", where=f"slot {name}", remedy=remedy)
    slots.drop(connection, slot)
    return f"slot {name}: dropped"


def _is_owned(connection: psycopg.Connection, config: Config, slot: slots.Slot, begun: Begun | None) -> bool:
    """Whether the checkpoint with these offsets created the slot. Raises OffsetError for one of another source."""
    committed, planned = begun or (None, None)
    newest = planned or committed
    if newest is None:
        return False
    before, after = offsets(connection, config, committed or newest, newest)
    return slots.owned(config, slot, claim_of_slot(None if committed is None else before, after))


def _drop_publication(connection: psycopg.Connection, config: Config) -> str:
    name = config[PUBLICATION_NAME]
    if config[PUBLICATION_AUTOCREATE_MODE] == "disabled":
        return f"publication {name}: kept, as publication.autocreate.mode is disabled"
    if connection.execute("SELECT FROM pg_publication WHERE pubname = %s", [name]).fetchone() is None:
        return f"publication {name}: there is none"
    connection.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
    return f"publication {name}: dropped"
