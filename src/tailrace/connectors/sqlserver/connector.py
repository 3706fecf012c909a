"""SQL Server's change tables as the planner and the tasks use them; implements Connector (connectors/log_ports.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.log_ports import Connector, Watched
from tailrace.connectors.offset import Reached
from tailrace.connectors.sqlserver.catalog import Catalog, Instance
from tailrace.connectors.sqlserver.client import Connection, Server
from tailrace.connectors.sqlserver.log.end import AgentCheck, log_end
from tailrace.connectors.sqlserver.log.reader import LogRange, changes
from tailrace.connectors.sqlserver.log.schema_changes import Switch
from tailrace.connectors.sqlserver.position import BEGINS, BLOCK, SOURCE_TYPE, parse
from tailrace.connectors.sqlserver.snapshot.chunks import CapturedUntil
from tailrace.connectors.sqlserver.snapshot.rows import read
from tailrace.connectors.sqlserver.snapshot.server import SqlServerSnapshots
from tailrace.connectors.sqlserver.snapshot.splits import SplitPlanner
from tailrace.errors import OffsetError
from tailrace.events.notifications import COMPLETED, INITIAL, STARTED, Notice
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

# In the `log` of an offset: the capture instances whose rows belong to the log up to there, by database: a number that
# no other instance has, schema and table.
INSTANCES = "instances"
# There if the structures of tables are still to be told.
UNTOLD = "structures_untold"
Known = Mapping[str, Mapping[str, list[Any]]]


@dataclass(frozen=True)
class LogEnd:
    """Implements LogEnd: what is captured, and the capture instances at that time."""

    position: Reading
    instances: tuple[Instance, ...]


@dataclass(frozen=True)
class Gap:
    """Implements Lost: clean-up has removed changes that were not read."""

    cause: OffsetError
    is_foreign = False
    is_trusted = False

    def __str__(self) -> str:
        return self.cause.what

    def error(self) -> OffsetError:
        """See Lost.error."""
        return self.cause


class SqlServerConnector(Connector):
    """Implements Connector. A position is a Reading; a range is (start, end]."""

    source, source_type = BLOCK, SOURCE_TYPE
    # In the reference engine a snapshot of structures alone is one.
    told_without_rows = (Notice(INITIAL, STARTED), Notice(INITIAL, COMPLETED))
    changes = staticmethod(changes)
    fence = staticmethod(CapturedUntil.parse)
    rows = staticmethod(read)
    parse = staticmethod(parse)

    def __init__(self, config: Config) -> None:
        self.config = config
        self._server = Server(config)
        self._agent = AgentCheck(config)
        self._told: set[str] = set()

    @cached_property
    def snapshots(self) -> SqlServerSnapshots:
        """See Connector.snapshots."""
        return SqlServerSnapshots(self.config, self._server)

    @cached_property
    def identity(self) -> str:
        """See Connector.identity: the server's name and the databases, with the time each was made."""

        def asked(connection: Connection) -> str:
            names = ", ".join(f"N'{each}'" for each in Catalog(connection, self.config).databases())
            rows = connection.rows(
                "SELECT name, CONVERT(varchar(30), create_date, 126) FROM sys.databases "
                f"WHERE name IN ({names}) ORDER BY name"
            )
            server = connection.value("SELECT CONVERT(nvarchar(256), SERVERPROPERTY('ServerName'))")
            return "/".join([str(server), *(f"{database}@{made}" for database, made in rows)])

        return self._server.ask(asked)

    def text(self, position: Reading) -> str:
        """See Connector.text."""
        return position.to_text()

    def within(self, start: Reading, limit: int) -> Reading | None:
        """See Connector.within: None, as LSNs count no bytes of change tables."""
        return None

    def watch(self, config: Config) -> Watched:
        """See Connector.watch: tables without a capture instance have a snapshot and no changes."""

        def asked(connection: Connection) -> list[str]:
            catalog = Catalog(connection, config)
            newest = catalog.newest()
            return [str(table) for table in catalog.captured() if table not in newest]

        missing = self._server.ask(asked)
        return Watched(tuple(f"{table} has no capture instance, so its changes are not captured" for table in missing))

    def tables(self, config: Config) -> list[TableSchema]:
        """See Connector.tables."""

        def asked(connection: Connection) -> list[TableSchema]:
            catalog = Catalog(connection, config)
            numbers, newest = catalog.tables(), catalog.newest()
            found = (catalog.capture(catalog.now(table, newest, numbers[table])) for table in catalog.captured())
            return [each.schema for each in found if each is not None]

        return self._server.ask(asked)

    def log_end(self) -> LogEnd:
        """See Connector.log_end."""

        def asked(connection: Connection) -> LogEnd:
            end = log_end(connection, self.config)
            for database, lsn in end.lsns:
                self._agent.look(connection, database, lsn)
            return LogEnd(end, self._instances(connection, end))

        return self._server.ask(asked)

    def _instances(self, connection: Connection, end: Reading) -> tuple[Instance, ...]:
        catalog = Catalog(connection, self.config)
        return tuple(each for database, _ in end.lsns for each in catalog.instances(database))

    def begins(self, here: Reached) -> Reading:
        """See Connector.begins."""
        lost = self.lost(here)
        if lost is not None:
            raise lost.error()
        return parse(here.log[BEGINS])

    def first(self, end: LogEnd, *, reads_tables: bool) -> tuple[Reading | None, Mapping[str, Any]]:
        """See Connector.first."""
        log = {BEGINS: end.position.to_text(), INSTANCES: _known({}, end.position, end.instances)}
        # Without a snapshot nobody has told the structure of the tables before the first change.
        return None, log if reads_tables else {**log, UNTOLD: True}

    def again(self, here: Reached, end: LogEnd) -> Mapping[str, Any]:
        """See Connector.again."""
        return self.first(end, reads_tables=True)[1]

    def advanced(self, here: Reached, start: Reading, to: Reading, end: LogEnd | None) -> Mapping[str, Any]:
        """See Connector.advanced."""
        if end is None:
            return here.log
        return {INSTANCES: _known(here.log.get(INSTANCES, {}), to, end.instances)}

    def lost(
        self, here: Reached, end: Reached | None = None, *, position: Reading | None = None, is_routine: bool = False
    ) -> Gap | None:
        """See Connector.lost: clean-up has passed the position in an instance that the pipeline reads."""
        at = position or here.position or (parse(here.log[BEGINS]) if BEGINS in here.log else None)
        if at is None:
            return None
        return self._server.ask(lambda connection: self._gap(connection, at, here.log.get(INSTANCES, {})))

    def _gap(self, connection: Connection, at: Reading, known: Known) -> Gap | None:
        now = log_end(connection, self.config)
        for database, lsn in at.lsns:
            if now.lsn(database) < lsn:
                return Gap(_behind(database, lsn, now.lsn(database)))
        lists = TableFilter.from_config(self.config)
        instances = tuple(each for each in self._instances(connection, at) if lists.captures(each.table))
        for instance in instances:
            database = instance.table.database
            # Clean-up moves the start of an instance, as fn_cdc_get_min_lsn tells it.
            low, lsn = instance.start, at.lsn(database)
            is_read = instance.stop is None or instance.stop > lsn
            if _is_known(known, instance) and is_read and low > lsn:
                # Clean-up keeps what is at its mark: the change right behind the position may be it.
                if connection.value(f"SELECT {_incremented(database, lsn)}") == connection.value(f"SELECT {_hex(low)}"):
                    continue
                return Gap(_cleaned(instance, lsn, low))
        return _replaced(known, at, instances)

    def give_up(self, here: Reached) -> None:
        """See Connector.give_up: nothing keeps the log."""

    def range(self, start: Reached, begin: Reading, end: Reached) -> LogRange:
        """See Connector.range."""
        to: Reading = end.position

        def asked(connection: Connection) -> LogRange:
            found = self._instances(connection, to)
            inside = tuple(each for each in found if _is_in(each, begin, to))
            switches = self._switches(connection, inside, start.log.get(INSTANCES, {}))
            passed = tuple(
                each
                for each in found
                if each.stop is not None and begin.lsn(each.table.database) <= each.stop < to.lsn(each.table.database)
            )
            told = SplitPlanner(connection, self.config).structures() if start.log.get(UNTOLD) else ()
            dropped = (
                _dropped(start.log.get(INSTANCES, {}), found) if self.config.flag("include.schema.changes") else ()
            )
            return LogRange(begin, to, inside, tuple(switches), passed, told, dropped)

        return self._server.ask(asked)

    def _switches(self, connection: Connection, instances: tuple[Instance, ...], known: Known) -> list[Switch]:
        """The new instances with the structures they bring."""
        if not self.config.flag("include.schema.changes"):
            return []
        catalog = Catalog(connection, self.config)
        found = []
        for instance in instances:
            if _is_known(known, instance):
                continue
            older = [each for each in catalog.instances(instance.table.database) if each.table == instance.table]
            before = [each for each in older if each.start < instance.start]
            structure = catalog.at(instance)
            if before and catalog.at(before[-1]) == structure:
                continue
            found.append(Switch(instance, structure, is_new=not before))
        return found

    def execute(self, statement: str) -> None:
        """See Connector.execute."""
        self._server.ask(lambda connection: connection.run(statement))

    def close(self) -> None:
        """See Connector.close."""
        self._server.close()


def _is_in(instance: Instance, begin: Reading, end: Reading) -> bool:
    """Whether an instance has rows of (begin, end]."""
    database = instance.table.database
    is_over = instance.stop is not None and instance.stop <= begin.lsn(database)
    return instance.start <= end.lsn(database) and not is_over


def _known(before: Known, to: Reading, instances: tuple[Instance, ...]) -> dict[str, dict[str, list[Any]]]:
    """The instances that the log up to a position has rows of, those among them that are gone by now left out."""
    found: dict[str, dict[str, list[Any]]] = {}
    for each in instances:
        if each.start <= to.lsn(each.table.database) or _is_known(before, each):
            found.setdefault(each.table.database, {})[each.name] = [each.object_id, each.table.schema, each.table.table]
    return found


def _is_known(known: Known, instance: Instance) -> bool:
    """Whether the offset has the instance, and not another one of its name."""
    found = known.get(instance.table.database, {}).get(instance.name)
    return found is not None and found[0] == instance.object_id


def _replaced(known: Known, at: Reading, instances: Sequence[Instance]) -> Gap | None:
    """The gap where an instance is gone and those there are of its table begin later; with none there is no log."""
    for database, names in known.items():
        for name, (number, schema, table) in names.items():
            mine = [each for each in instances if each.table == TableId(database, schema, table, each.table.shown)]
            is_gone = all(each.object_id != number for each in mine)
            if is_gone and mine and mine[0].start > at.lsn(database):
                return Gap(_gone(f"{database}.{schema}.{table}", name, at.lsn(database), mine[0].start))
    return None


def _hex(lsn: str) -> str:
    return f"CONVERT(binary(10), 0x{lsn.replace(':', '')})"


def _incremented(database: str, lsn: str) -> str:
    return f"[{database.replace(']', ']]')}].sys.fn_cdc_increment_lsn(0x{lsn.replace(':', '')})"


def _cleaned(instance: Instance, lsn: str, low: str) -> OffsetError:
    return OffsetError(
        f"clean-up has removed changes that were not read: from LSN {lsn} to {low}",
        where=f"{instance.table}, capture instance {instance.name}",
        remedy="set snapshot.mode to when_needed for a new snapshot, or begin with a new checkpoint. To keep changes "
        "longer: EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 10080",
    )


def _dropped(known: Known, instances: Sequence[Instance]) -> tuple[TableId, ...]:
    """The tables that had an instance at the start of a range, and have none now."""
    there = {each.table for each in instances}
    tables = (
        TableId(database, schema, table, DATABASE_SCHEMA_TABLE)
        for database, names in known.items()
        for _, schema, table in names.values()
    )
    return tuple(dict.fromkeys(table for table in tables if table not in there))


def _gone(table: str, name: str, lsn: str, start: str) -> OffsetError:
    return OffsetError(
        f"capture was disabled and enabled again: what changed from LSN {lsn} to {start} is lost",
        where=f"{table}, capture instance {name}",
        remedy="set snapshot.mode to when_needed for a new snapshot, or begin with a new checkpoint",
    )


def _behind(database: str, lsn: str, now: str) -> OffsetError:
    return OffsetError(
        f"the log of {database} ends at LSN {now or 'none'}, before the position {lsn}: the database was restored, or "
        "change data capture was disabled and enabled again",
        where=database,
        remedy="set snapshot.mode to when_needed for a new snapshot, or begin with a new checkpoint",
    )
