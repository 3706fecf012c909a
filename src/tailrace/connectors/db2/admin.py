"""Implements the port Admin for Db2: checks, tables, status, drop, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from tailrace.config.options.databases import DATABASE_HOSTNAME
from tailrace.connectors.change_tables.admin import ChangeTableAdmin
from tailrace.connectors.db2 import checks
from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.client import Connection
from tailrace.connectors.db2.connector import Db2Connector
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.log.end import captured_time, control, intervals, log_end, server_time
from tailrace.connectors.db2.options import CDC_CHANGE_TABLES_SCHEMA, DB2_PLATFORM, LUW, ZOS
from tailrace.connectors.db2.registering import control_tables, grants, registration, reinit, reinit_statement
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.db2.statements import control_schema, folded, qualified, text
from tailrace.connectors.db2.statements import table as table_name
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Detail, SourceState, TableOverview
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.override import override

_ACTIVE = "A"
_CONTROLS = ("IBMSNAP_REGISTER", "IBMSNAP_UOW", "IBMSNAP_CAPPARMS", "IBMSNAP_PRUNE_SET")
# A capture program that has read nothing for so many of its intervals has stopped.
_LATE = 3
_UNLOGGED = "SELECT TABSCHEMA, TABNAME FROM SYSCAT.TABLES WHERE TYPE = 'T' AND DATACAPTURE = 'N'"


class Db2Admin(ChangeTableAdmin):
    """Implements Admin."""

    connector = Db2Connector

    @override
    def findings(self, connection: Connection) -> Iterator[Finding]:
        name, version = connection.product()
        yield Finding("server", True, f"{name} {version} at {self.config[DATABASE_HOSTNAME]}")
        yield from checks.platform(name, self.config)
        schema = control_schema(self.config)
        if not _is_readable(connection, qualified(schema, "IBMSNAP_REGISTER")):
            remedy = f"set cdc.control.schema, or GRANT SELECT ON {schema}.IBMSNAP_REGISTER TO the user"
            yield Finding("capture", False, f"the control tables in {schema} are missing or cannot be read", remedy)
            return
        yield self._program(connection)
        if not _is_readable(connection, qualified(schema, "IBMSNAP_UOW")):
            what = f"{schema}.IBMSNAP_UOW is unreadable: it has the times of commits, and tells what was pruned"
            yield Finding("capture", False, what, f"GRANT SELECT ON {schema}.IBMSNAP_UOW TO the user")
            return
        yield from checks.apply(connection, self.config)
        yield from self._tables(connection)
        yield from self._columns(connection)

    def _columns(self, connection: Connection) -> Iterator[Finding]:
        """What the log, or the server's rules, keep of the captured tables from the events."""
        catalog = Catalog(connection, self.config)
        captured, newest, numbers = catalog.captured(), catalog.newest(), catalog.tables()
        yield from checks.controlled(connection, captured)
        if self.config[DB2_PLATFORM] != ZOS:
            yield from checks.history(connection, captured)
        for table in captured:
            if table in newest:
                yield from checks.columns(catalog, newest[table], catalog.described(table, numbers[table]))

    def _program(self, connection: Connection) -> Finding:
        """Whether what fills the change tables runs."""
        remedy = f"start it: VALUES {control(self.config)}.ASNCDCSERVICES('start', 'asncdc'), or asncap on the server"
        read = captured_time(connection, self.config)
        if read is None:
            return Finding("capture", False, "the capture program has never run", remedy)
        late = server_time(connection) - read
        if late > timedelta(seconds=_LATE * intervals(connection, self.config)):
            return Finding("capture", False, f"the capture program has read nothing for {_shown(late)}", remedy)
        return Finding("capture", True, "the capture program is running")

    def _tables(self, connection: Connection) -> Iterator[Finding]:
        """The captured tables: registered, active, readable, with both images of updates."""
        catalog = Catalog(connection, self.config)
        states = {(owner, table): state for owner, table, _, _, state in catalog.registered()}
        newest, captured = catalog.newest(), catalog.captured()
        is_luw = self.config[DB2_PLATFORM] == LUW
        unlogged = set(connection.rows(_UNLOGGED)) if is_luw else set()
        for table in captured:
            place = (table.schema, table.table)
            if place not in states:
                what = f"{table} has no registration for capture: its changes are not captured"
                yield Finding("tables", False, what, self._registering(table))
            elif place in unlogged:
                what = f"the log does not have whole rows of {table}"
                yield Finding("tables", False, what, f"ALTER TABLE {table_name(table)} DATA CAPTURE CHANGES")
            elif states[place] != _ACTIVE:
                remedy = (
                    f"UPDATE {control(self.config)}.IBMSNAP_REGISTER SET STATE = 'A' WHERE SOURCE_OWNER = "
                    f"{text(table.schema)} AND SOURCE_TABLE = {text(table.table)}; {reinit(self.config)}"
                )
                what = f"the registration of {table} is not active (STATE {states[place]}): its changes are lost"
                yield Finding("tables", False, what, remedy)
            elif table not in newest or not _is_readable(connection, newest[table].changes):
                what = f"the change table of {table} is missing or cannot be read"
                yield Finding("tables", False, what, "GRANT SELECT ON the change table TO the user")
            elif table in catalog.single:
                remedy = "register it with CHG_UPD_TO_DEL_INS = 'Y'"
                what = f"updates of {table} are captured without old values"
                zos = f"{what}: a replica keeps the row of the old key where an update changes a key"
                yield Finding("tables", False, what, remedy) if is_luw else Finding("tables", None, zos, remedy)
        yield from self.shared_keys(catalog, captured)
        if captured:
            yield Finding("tables", True, f"{len(captured)} tables are captured")
        else:
            remedy = "change table.include.list and schema.include.list, unless the tables come later"
            yield Finding("tables", None, "no table is captured", remedy)

    def _registering(self, table: TableId) -> str:
        call = f"CALL {control(self.config)}.ADDTABLE({text(table.schema)}, {text(table.table)})"
        return f"run the statements that `tailrace init` prints for it, or {call}; {reinit(self.config)}"

    @override
    def overview(self) -> list[TableOverview]:
        def tables(connection: Connection) -> list[TableOverview]:
            catalog = Catalog(connection, self.config)
            newest = catalog.newest()
            return [_overview(connection, catalog, table, table in newest) for table in sorted(catalog.tables())]

        with self.server() as server:
            return server.ask(tables)

    @override
    def state(self, pipeline: str | None = None) -> SourceState:
        def state(connection: Connection) -> SourceState:
            read = captured_time(connection, self.config)
            late = None if read is None else server_time(connection) - read
            shown = "nothing is captured yet" if late is None else f"the log is read up to {_shown(late)} ago"
            detail = Detail("capture", shown, is_fine=late is not None)
            return SourceState(log_end(connection, self.config), details=(detail,))

        with self.server() as server:
            return server.ask(state)

    @override
    def problems(self, *, begun: bool) -> list[Finding]:
        def unusual(connection: Connection) -> list[Finding]:
            return [self._program(connection), *self._tables(connection)]

        with self.server() as server:
            problems = server.ask(unusual)
        return [each for each in problems if each.ok is not True]

    @override
    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        """What the connection shows to be missing."""
        config, schema = self.config, control_schema(self.config)
        controls = [qualified(schema, each) for each in _CONTROLS]

        def missing(connection: Connection) -> list[str]:
            hidden = [each for each in controls if not _is_readable(connection, each)]
            is_set_up = controls[0] not in hidden
            catalog = Catalog(connection, config)
            newest = catalog.newest() if is_set_up else {}
            new = [table for table in tables if table not in newest]
            changes = [qualified(folded(config[CDC_CHANGE_TABLES_SCHEMA]), f"CDC_{t.schema}_{t.table}") for t in new]
            sources = [each for each in map(table_name, tables) if not _is_readable(connection, each)]
            return [
                *([] if is_set_up else control_tables(config)),
                *(f"{statement};" for table in new for statement in _registering(catalog, table)),
                *(f"{statement};" for statement in grants(config, [*hidden, *changes, *sources])),
                *([reinit(config)] if new else []),
            ]

        with self.server() as server:
            return server.ask(missing)

    @override
    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """Debezium's function makes the capture program read its registrations."""
        config = self.config

        def registered(connection: Connection) -> list[str]:
            catalog = Catalog(connection, config)
            newest = catalog.newest()
            new = [table for table in tables if table not in newest]
            for table in new:
                connection.run(*_registering(catalog, table))
            if new:
                try:
                    connection.rows(reinit_statement(config))
                except FAILURES.driver_error as error:
                    what = "the tables are registered, but the capture program cannot be made to read that"
                    raise SourceError(f"{what}: {FAILURES.line(error)}", remedy=f"run {reinit(config)}") from error
            return [str(table) for table in new]

        with self.server() as server:
            return server.ask(registered, "a table cannot be registered")

    @override
    def extended(self) -> str:
        return "the registrations for capture"


def _registering(catalog: Catalog, table: TableId) -> list[str]:
    return registration(catalog.config, table, catalog.described(table, 0).columns)


def _is_readable(connection: Connection, table: str) -> bool:
    try:
        connection.rows(f"SELECT 1 FROM {table} WHERE 1 = 0")
    except FAILURES.driver_error as error:
        if FAILURES.is_transient(error):
            raise
        return False
    return True


def _overview(connection: Connection, catalog: Catalog, table: TableId, is_captured: bool) -> TableOverview:
    size, rows = DIALECT.size_of(connection, table, 0)
    return TableOverview(
        table,
        rows,
        size,
        has_key=bool(catalog.key(table)),
        is_readable=_is_readable(connection, table_name(table)),
        remark="" if is_captured else "no registration for capture",
    )


def _shown(late: timedelta) -> str:
    return f"{max(0, int(late.total_seconds())):,} s"
