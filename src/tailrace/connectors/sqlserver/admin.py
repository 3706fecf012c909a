"""Implements the port Admin for SQL Server: checks, tables, status, drop, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.config.options.databases import DATABASE_HOSTNAME, DATABASE_NAMES
from tailrace.config.options.snapshot import READ_ONLY, SIGNAL_DATA_COLLECTION
from tailrace.connectors.change_tables.admin import ChangeTableAdmin
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Detail, SourceState, TableOverview
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.checks import TableChecks, not_captured, of_jobs, of_running_job
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.connector import SqlServerConnector
from tailrace.connectors.sqlserver.failures import FAILURES, is_forbidden
from tailrace.connectors.sqlserver.log.end import is_agent_running, log_end
from tailrace.connectors.sqlserver.narrower import REMEDY, narrower
from tailrace.connectors.sqlserver.options import (
    AGENT_QUERY,
    DATABASE_SQLSERVER_AGENT_STATUS_QUERY,
    SNAPSHOT_ISOLATION_MODE,
)
from tailrace.connectors.sqlserver.platform import Platform, PlatformKind, enabling_table, platform
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE
from tailrace.override import override

_LAG = """
SELECT MAX(tran_end_time), DATEDIFF(second, MAX(tran_end_time), GETDATE()) FROM {db}.cdc.lsn_time_mapping
"""
_COMMENTS = """
SELECT s.name, t.name, CONVERT(nvarchar(4000), e.value) FROM {db}.sys.extended_properties e
JOIN {db}.sys.tables t ON t.object_id = e.major_id JOIN {db}.sys.schemas s ON s.schema_id = t.schema_id
WHERE e.class = 1 AND e.minor_id = 0 AND e.name = N'MS_Description'
"""


class SqlServerAdmin(ChangeTableAdmin):
    """Implements Admin."""

    connector = SqlServerConnector
    has_databases = True

    @override
    def databases(self) -> tuple[str, ...]:
        return tuple(self.config[DATABASE_NAMES])

    @override
    def findings(self, connection: Connection) -> Iterator[Finding]:
        place = platform(connection)
        where = f"{place.title} at {self.config[DATABASE_HOSTNAME]}"
        kind = place.kind.value if place.kind is not PlatformKind.SERVER else "on Linux" if place.is_linux else None
        yield Finding("server", True, where if kind is None else f"{where} ({kind})")
        names = self.config[DATABASE_NAMES]
        if place.kind is PlatformKind.AZURE_DATABASE and len(names) > 1:
            what = f"{place.kind.value} reads one database over a connection, and database.names has {len(names)}"
            yield Finding("databases", False, what, "give each database a pipeline of its own")
            return
        catalog = Catalog(connection, self.config)
        for database in catalog.databases():
            yield from self._of_database(connection, catalog, place, database)

    def _of_database(
        self, connection: Connection, catalog: Catalog, place: Platform, database: str
    ) -> Iterator[Finding]:
        if not _is_enabled(connection, database):
            what = f"change data capture is not enabled in {database}"
            yield Finding("capture", False, what, place.enabling(database))
            return
        try:
            instances = catalog.instances(database)
        except FAILURES.driver_error as error:
            if not is_forbidden(error):
                raise
            what = f"the user has no access to the schema cdc of {database}: {FAILURES.line(error)}"
            remedy = place.used(database, "GRANT SELECT ON SCHEMA::cdc TO <user>")
            yield Finding("capture", False, what, remedy)
            return
        what = f"change data capture is enabled in {database}, {len(instances)} capture instances"
        yield Finding("capture", True, what)
        is_replica = DIALECT.is_behind(connection, database)
        if is_replica:
            yield from self._of_replica(database)
        else:
            yield from self._of_capture(connection, place, database)
        numbers = {table: number for table, number in catalog.tables().items() if table.database == database}
        captured = [table for table in catalog.captured() if table.database == database]
        yield from _tables(place, database, captured, instances)
        own = {table: numbers[table] for table in captured}
        yield from TableChecks(connection, catalog, place, database, own).findings(instances)
        yield from self.shared_keys(catalog, captured)
        if self.config[SNAPSHOT_ISOLATION_MODE] == "snapshot" and not is_replica:
            yield _isolation(connection, database)
        if self.config[SNAPSHOT_ISOLATION_MODE] == "exclusive" and not place.has_log_stats:
            what = "snapshot.isolation.mode=exclusive needs sys.dm_db_log_stats, which SQL Server has from 2016 SP2 on"
            yield Finding("isolation", False, what, "set snapshot.isolation.mode=repeatable_read, or update the server")

    def _of_replica(self, database: str) -> Iterator[Finding]:
        """What a pipeline can do at a replica that cannot be written to."""
        yield Finding("replica", True, f"{database} is a readable replica: rows are read under SNAPSHOT there")
        if self.config[SIGNAL_DATA_COLLECTION] and not self.config[READ_ONLY]:
            what = f"{database} cannot be written to, so that no window of an incremental snapshot can be marked"
            yield Finding("replica", False, what, "set read.only=true, or connect to the primary replica")

    def _of_capture(self, connection: Connection, place: Platform, database: str) -> Iterator[Finding]:
        """Whether what fills the change tables runs."""
        query = self.config[DATABASE_SQLSERVER_AGENT_STATUS_QUERY]
        if not place.has_agent and query == AGENT_QUERY:
            yield Finding("agent", True, f"{place.kind.value} captures by a scheduler, each 20 seconds")
            return
        yield from of_jobs(connection, place, database)
        try:
            if not is_agent_running(connection, query, database):
                yield Finding("agent", False, "SQL Server Agent is not running", place.starting_agent)
                return
            yield Finding("agent", True, "SQL Server Agent is running")
        except FAILURES.driver_error as error:
            what = f"whether SQL Server Agent runs cannot be queried: {FAILURES.line(error)}"
            remedy = f"{place.granting_state()}, or set database.sqlserver.agent.status.query"
            yield Finding("agent", None, what, remedy)
        yield from of_running_job(connection, place, database)

    @override
    def overview(self) -> list[TableOverview]:
        def tables(connection: Connection) -> list[TableOverview]:
            catalog = Catalog(connection, self.config)
            newest = {each.table for database in catalog.databases() for each in catalog.instances(database)}
            return [
                _overview(connection, catalog, table, number, is_captured=table in newest)
                for table, number in sorted(catalog.tables().items())
            ]

        with self.server() as server:
            return server.ask(tables)

    @override
    def comments(self) -> dict[TableId, str]:
        """The extended property MS_Description, as the tools of SQL Server write it."""

        def comments(connection: Connection) -> dict[TableId, str]:
            catalog, said = Catalog(connection, self.config), {}
            for database in catalog.databases():
                for schema, table, comment in connection.rows(_COMMENTS.format(db=name(database))):
                    said[TableId(database, schema, table, DATABASE_SCHEMA_TABLE)] = str(comment)
            return said

        with self.server() as server:
            return server.ask(comments)

    @override
    def state(self, pipeline: str | None = None) -> SourceState:
        def state(connection: Connection) -> SourceState:
            end = log_end(connection, self.config)
            details = tuple(_lag(connection, database) for database, _ in end.lsns)
            return SourceState(end, details=details)

        with self.server() as server:
            return server.ask(state)

    @override
    def problems(self, *, begun: bool) -> list[Finding]:
        """Tables without a capture instance, an Agent or a capture job that does not run."""

        def unusual(connection: Connection) -> list[Finding]:
            catalog, place = Catalog(connection, self.config), platform(connection)
            problems: list[Finding] = []
            for database in catalog.databases():
                captured = [table for table in catalog.captured() if table.database == database]
                instances = catalog.instances(database)
                mine = [each for each in instances if each.table in captured]
                problems += [*_tables(place, database, captured, instances)]
                problems += [Finding("instances", None, each, REMEDY) for each in narrower(connection, database, mine)]
                problems += [each for each in self._of_capture(connection, place, database) if each.ok is False]
            return [each for each in problems if each.ok is not True]

        with self.server() as server:
            return server.ask(unusual)

    @override
    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """A table without a capture instance gets one."""

        def enabled(connection: Connection) -> list[str]:
            catalog = Catalog(connection, self.config)
            captured = {each.table for each in _all(catalog)}
            new = [table for table in tables if table not in captured]
            for table in new:
                connection.run(_qualified(table))
            return [str(table) for table in new]

        with self.server() as server:
            return server.ask(enabled, "a capture instance cannot be created")

    @override
    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        def missing(connection: Connection) -> list[str]:
            catalog = Catalog(connection, self.config)
            enabled = [each for each in catalog.databases() if _is_enabled(connection, each)]
            captured = {each.table for database in enabled for each in catalog.instances(database)}
            place = platform(connection)
            return [
                *(f"{place.enabling(each)};" for each in catalog.databases() if each not in enabled),
                *(f"{_qualified(table)};" for table in tables if table not in captured),
            ]

        with self.server() as server:
            return server.ask(missing)

    @override
    def extended(self) -> str:
        return "change data capture"


def _qualified(table: TableId) -> str:
    """The statement that creates a capture instance, from any database."""
    return enabling_table(table).replace("EXEC ", f"EXEC {name(table.database)}.", 1)


def _is_enabled(connection: Connection, database: str) -> bool:
    return bool(connection.value(f"SELECT is_cdc_enabled FROM sys.databases WHERE name = {text(database)}"))


def _all(catalog: Catalog) -> list[Instance]:
    return [each for database in catalog.databases() for each in catalog.instances(database)]


def _tables(
    place: Platform, database: str, captured: Sequence[TableId], instances: Sequence[Instance]
) -> Iterator[Finding]:
    yield from not_captured(place, captured, instances)
    if captured:
        yield Finding("tables", True, f"{len(captured)} tables of {database} are captured")
    else:
        remedy = "change table.include.list and schema.include.list, unless the tables come later"
        yield Finding("tables", None, f"no table of {database} is captured", remedy)


def _isolation(connection: Connection, database: str) -> Finding:
    state = connection.value(f"SELECT snapshot_isolation_state FROM sys.databases WHERE name = {text(database)}")
    if state == 1:
        return Finding("isolation", True, f"{database} allows snapshot isolation")
    remedy = f"ALTER DATABASE {name(database)} SET ALLOW_SNAPSHOT_ISOLATION ON, or another snapshot.isolation.mode"
    return Finding("isolation", False, f"{database} does not allow snapshot isolation", remedy)


def _overview(
    connection: Connection, catalog: Catalog, table: TableId, number: int, *, is_captured: bool
) -> TableOverview:
    size, rows = DIALECT.size_of(connection, table, number)
    key = catalog.described(table, number).key
    can_read = connection.value(
        f"SELECT HAS_PERMS_BY_NAME({text('.'.join(map(name, table.parts)))}, N'OBJECT', N'SELECT')"
    )
    remark = "" if is_captured else "no capture instance"
    return TableOverview(table, rows, size, has_key=bool(key), is_readable=can_read != 0, remark=remark)


def _lag(connection: Connection, database: str) -> Detail:
    """When the capture job last wrote something."""
    rows = connection.rows(_LAG.format(db=name(database)))
    if not rows or rows[0][0] is None:
        return Detail("capture", f"{database}: nothing is captured yet", is_fine=False)
    return Detail("capture", f"{database}: the newest captured transaction is {int(rows[0][1]):,} s old")
