"""Implements the port Admin for SQL Server: checks, tables, status, drop, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.connectors.change_tables.admin import ChangeTableAdmin
from tailrace.connectors.change_tables.dialect import Instance
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Detail, SourceState, TableOverview
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.connector import SqlServerConnector
from tailrace.connectors.sqlserver.failures import FAILURES
from tailrace.connectors.sqlserver.log.end import is_agent_running, log_end
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.model.table import TableId

_LAG = """
SELECT MAX(tran_end_time), DATEDIFF(second, MAX(tran_end_time), GETDATE()) FROM {db}.cdc.lsn_time_mapping
"""


class SqlServerAdmin(ChangeTableAdmin):
    """Implements Admin."""

    connector = SqlServerConnector

    def findings(self, connection: Connection) -> Iterator[Finding]:
        """See ChangeTableAdmin.findings."""
        version = str(connection.value("SELECT @@VERSION")).partition("\n")[0]
        yield Finding("server", True, f"{version.strip()} at {self.config.text('database.hostname')}")
        catalog = Catalog(connection, self.config)
        for database in catalog.databases():
            yield from self._of_database(connection, catalog, database)

    def _of_database(self, connection: Connection, catalog: Catalog, database: str) -> Iterator[Finding]:
        if not _is_enabled(connection, database):
            remedy = f"USE {name(database)}; EXEC sys.sp_cdc_enable_db"
            yield Finding("capture", False, f"change data capture is not enabled in {database}", remedy)
            return
        try:
            instances = catalog.instances(database)
        except FAILURES.driver_error as error:
            what = f"the user has no access to the schema cdc of {database}: {FAILURES.line(error)}"
            yield Finding("capture", False, what, f"USE {name(database)}; GRANT SELECT ON SCHEMA::cdc TO <user>")
            return
        yield Finding(
            "capture", True, f"change data capture is enabled in {database}, {len(instances)} capture instances"
        )
        yield self._agent(connection, database)
        captured = [table for table in catalog.captured() if table.database == database]
        yield from _tables(database, captured, instances)
        yield from self.shared_keys(catalog, captured)
        if self.config.text("snapshot.isolation.mode") == "snapshot":
            yield _isolation(connection, database)

    def _agent(self, connection: Connection, database: str) -> Finding:
        """Whether what fills the change tables runs."""
        query = self.config.text("database.sqlserver.agent.status.query")
        try:
            if is_agent_running(connection, query, database):
                return Finding("agent", True, "SQL Server Agent is running")
            remedy = "start the service SQL Server Agent: it runs the capture job"
            return Finding("agent", False, "SQL Server Agent is not running", remedy)
        except FAILURES.driver_error as error:
            remedy = "GRANT VIEW SERVER STATE TO <login>, or set database.sqlserver.agent.status.query"
            return Finding(
                "agent", None, f"whether SQL Server Agent runs cannot be queried: {FAILURES.line(error)}", remedy
            )

    def overview(self) -> list[TableOverview]:
        """See Admin.overview."""

        def found(connection: Connection) -> list[TableOverview]:
            catalog = Catalog(connection, self.config)
            newest = {each.table for database in catalog.databases() for each in catalog.instances(database)}
            return [
                _overview(connection, catalog, table, number, is_captured=table in newest)
                for table, number in sorted(catalog.tables().items())
            ]

        with self.server() as server:
            return server.ask(found)

    def state(self, pipeline: str | None = None) -> SourceState:
        """See Admin.state."""

        def found(connection: Connection) -> SourceState:
            end = log_end(connection, self.config)
            details = tuple(_lag(connection, database) for database, _ in end.lsns)
            return SourceState(end, details=details)

        with self.server() as server:
            return server.ask(found)

    def problems(self, *, begun: bool) -> list[Finding]:
        """See Admin.problems: tables without a capture instance."""

        def found(connection: Connection) -> list[Finding]:
            catalog = Catalog(connection, self.config)
            return [
                each
                for database in catalog.databases()
                for each in _tables(
                    database,
                    [table for table in catalog.captured() if table.database == database],
                    catalog.instances(database),
                )
                if each.ok is not True
            ]

        with self.server() as server:
            return server.ask(found)

    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """See Admin.extend: a table without a capture instance gets one."""

        def enabled(connection: Connection) -> list[str]:
            catalog = Catalog(connection, self.config)
            there = {each.table for each in _all(catalog)}
            new = [table for table in tables if table not in there]
            for table in new:
                connection.run(f"EXEC {name(table.database)}.{_enabling(table)}")
            return [str(table) for table in new]

        with self.server() as server:
            return server.ask(enabled, "a capture instance cannot be created")

    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        """See Admin.preparation."""

        def missing(connection: Connection) -> list[str]:
            catalog = Catalog(connection, self.config)
            enabled = [each for each in catalog.databases() if _is_enabled(connection, each)]
            there = {each.table for database in enabled for each in catalog.instances(database)}
            return [
                *(f"EXEC {name(each)}.sys.sp_cdc_enable_db;" for each in catalog.databases() if each not in enabled),
                *(f"EXEC {name(table.database)}.{_enabling(table)};" for table in tables if table not in there),
            ]

        with self.server() as server:
            return server.ask(missing)

    def extended(self) -> str:
        """See Admin.extended."""
        return "change data capture"


def _is_enabled(connection: Connection, database: str) -> bool:
    return bool(connection.value(f"SELECT is_cdc_enabled FROM sys.databases WHERE name = {text(database)}"))


def _all(catalog: Catalog) -> list[Instance]:
    return [each for database in catalog.databases() for each in catalog.instances(database)]


def _enabling(table: TableId) -> str:
    return (
        f"sys.sp_cdc_enable_table @source_schema = {text(table.schema)}, @source_name = {text(table.table)}, "
        "@role_name = NULL, @supports_net_changes = 0"
    )


def _tables(database: str, captured: Sequence[TableId], instances: Sequence[Instance]) -> Iterator[Finding]:
    known = {each.table for each in instances}
    for table in captured:
        if table not in known:
            remedy = f"USE {name(database)}; EXEC {_enabling(table)}"
            yield Finding("tables", False, f"{table} has no capture instance: its changes are not captured", remedy)
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
