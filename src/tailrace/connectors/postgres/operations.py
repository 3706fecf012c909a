"""What an operator asks of a server outside a pipeline: which tables there are, how the slot stands, to drop it all."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from tailrace.config import Config
from tailrace.config.filters import OWN_SCHEMA
from tailrace.connectors.postgres import control, ddl
from tailrace.connectors.postgres import slot as slots
from tailrace.connectors.postgres.connect import connect, first_line, server_errors
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.connectors.postgres.standing import Begun, offsets
from tailrace.errors import SourceError
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

_TABLES = f"""
SELECT n.nspname AS schema, c.relname AS table, greatest(c.reltuples, 0)::bigint AS rows,
       pg_total_relation_size(c.oid) AS bytes,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS key,
       c.relkind = 'p' AS is_partitioned, c.relispartition AS is_partition,
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', '{OWN_SCHEMA}') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2
"""
_SLOT = """
SELECT slot_name AS name, plugin, active, active_pid AS pid, wal_status,
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


@dataclass(frozen=True)
class TableOverview:
    """A table one could capture; `rows` is the planner's estimate, `key` whether it has a primary key.

    `readable`: the role may read its rows.
    """

    schema: str
    table: str
    rows: int
    bytes: int
    key: bool
    is_partitioned: bool = False
    is_partition: bool = False
    readable: bool = True

    @property
    def name(self) -> str:
        """As the filters see it."""
        return f"{self.schema}.{self.table}"

    @property
    def written(self) -> str:
        """The name as signals take it."""
        return TableId("", self.schema, self.table).written

    @property
    def spellings(self) -> tuple[str, ...]:
        """All forms in which somebody may write the name."""
        schemas, tables = ((part, _quoted(part)) for part in (self.schema, self.table))
        return tuple(f"{schema}.{table}" for schema in schemas for table in tables)


@dataclass(frozen=True)
class SlotState:
    """A replication slot as the server tells it; LSNs as text."""

    name: str
    plugin: str | None
    active: bool
    pid: int | None
    wal_status: str | None
    restart: str | None
    confirmed: str | None


@dataclass(frozen=True)
class ServerState:
    """Where the server's log is, the pipeline's slot, None if there is none, and who is connected to the database."""

    current: str
    slot: SlotState | None
    applications: frozenset[str] = frozenset()

    def reads_snapshot(self, pipeline: str) -> bool:
        """Whether a first snapshot is held open for the pipeline, by the name in its offsets."""
        return f"tailrace {pipeline} snapshot" in self.applications

    def retained_bytes(self) -> int | None:
        """Bytes of log the slot keeps from being removed."""
        restart = self.slot.restart if self.slot else None
        return None if restart is None else max(0, parse_lsn(self.current) - parse_lsn(restart))


def _quoted(part: str) -> str:
    return sql.Identifier(part).as_string()


def tables(config: Config) -> list[TableOverview]:
    """The database's own permanent tables, partitions too, by name. Raises SourceError."""
    with connect(config) as connection, connection.cursor(row_factory=class_row(TableOverview)) as cursor:
        return cursor.execute(_TABLES).fetchall()


def server_state(config: Config) -> ServerState:
    """The log's end and the slot of `slot.name`. Raises SourceError."""
    with connect(config) as connection:
        row = connection.execute(_CURRENT).fetchone()
        names = connection.execute(_APPLICATIONS).fetchall()
        with connection.cursor(row_factory=class_row(SlotState)) as cursor:
            slot = cursor.execute(_SLOT, [config.text("slot.name")]).fetchone()
    assert row is not None  # a SELECT without FROM has one row
    return ServerState(row[0], slot, frozenset(name for (name,) in names))


def drop(config: Config, begun: Begun | None, *, force: bool = False) -> list[str]:
    """Drops the slot, the publication unless `publication.autocreate.mode` says it is not ours, and the DDL triggers.

    Returns a line for each of them, for triggers where there were some. `begun` are the offsets of the pipeline's
    checkpoint; unless forced, a slot that the checkpoint did not create is left alone. Raises SourceError then, and
    while the pipeline runs or something reads the slot.
    """
    try:
        with connect(config) as connection:
            slot = config.text("slot.name")
            done = [_drop_slot(connection, config, begun, force=force), _drop_publication(connection, config)]
            return done + ddl.remove(connection, slot)
    except psycopg.Error as error:
        remedy = "Run it as the owner of the publication, with a role that has REPLICATION."
        raise SourceError(first_line(error), where=config.text("database.dbname"), remedy=remedy) from error


def drop_at_stop(config: Config, begun: Begun) -> None:
    """Drops the slot of a pipeline that was stopped, ending a reader of its own that is still there.

    `begun` are the offsets of its checkpoint. Raises SourceError while somebody else reads the slot.
    """
    with server_errors("the slot cannot be dropped"), connect(config) as connection:
        slot = slots.existing(connection, config)
        if slot is None or begun[1] is None or not _is_owned(connection, config, slot, begun):
            return
        slots.free(connection, config, f"tailrace {begun[1]['pipeline']}")
        slots.drop(connection, slot)
        log.warning("slot %s is dropped (slot.drop.on.stop): what changes until the next start is lost", slot.name)


def _drop_slot(connection: psycopg.Connection, config: Config, begun: Begun | None, *, force: bool) -> str:
    name = config.text("slot.name")
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
    return slots.owned(config, slot, after.claim_of_slot(None if committed is None else before))


def _drop_publication(connection: psycopg.Connection, config: Config) -> str:
    name = config.text("publication.name")
    if config.text("publication.autocreate.mode") == "disabled":
        return f"publication {name}: kept, as publication.autocreate.mode is disabled"
    if connection.execute("SELECT FROM pg_publication WHERE pubname = %s", [name]).fetchone() is None:
        return f"publication {name}: there is none"
    connection.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
    return f"publication {name}: dropped"
