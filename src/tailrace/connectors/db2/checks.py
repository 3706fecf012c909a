"""Looks, without writing, for what makes a pipeline's events or replicas differ from its tables: for `check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.config import Config
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.client import LARGEST
from tailrace.connectors.db2.failures import FAILURES, is_missing
from tailrace.connectors.db2.log.end import control
from tailrace.connectors.db2.options import DB2_PLATFORM, LUW, ZOS
from tailrace.connectors.db2.structures import loads
from tailrace.connectors.finding import Finding
from tailrace.connectors.sql_tables.tables import Connection, Described
from tailrace.model.table import TableId

# What servers call themselves to IBM's driver.
_I, _Z = "AS", "DB2"
_APPLY = "SELECT COUNT(*) FROM {control}.IBMSNAP_PRUNE_SET"
# Row permissions and column masks; from Db2 10.1 on.
_CONTROLS = "SELECT DISTINCT TABSCHEMA, TABNAME FROM SYSCAT.CONTROLS WHERE ENABLE = 'Y'"


def platform(name: str, config: Config) -> Iterator[Finding]:
    """Whether the server is of a platform that can be read, by its name."""
    told = config[DB2_PLATFORM]
    if name == _I or name.startswith("QSQ"):
        yield Finding("server", False, "this is Db2 for i, which has journals and no change tables", "use another tool")
    elif name == _Z and told == LUW:
        yield Finding("server", False, "this is Db2 for z/OS", "set db2.platform=ZOS")
    elif told == ZOS:
        what = "Db2 for z/OS is read by queries that were never run on one; `reconcile` does not work there"
        yield Finding("server", None, what, "compare what arrives with the tables before you rely on it")


def apply(connection: Connection, config: Config) -> Iterator[Finding]:
    """Whether Apply copies from the same change tables, so that they are pruned when it has read them."""
    try:
        sets = int(connection.value(_APPLY.format(control=control(config))) or 0)
    except FAILURES.driver_error as error:
        if FAILURES.is_transient(error):
            raise
        if not is_missing(error):
            what = "whether the program Apply prunes the change tables cannot be seen"
            yield Finding("capture", None, what, f"GRANT SELECT ON {control(config)}.IBMSNAP_PRUNE_SET TO the user")
        return
    if sets:
        what = (
            f"{sets} subscription sets of the program Apply use these change tables: what all of them have copied is "
            "pruned, also if this pipeline was stopped and has not read it"
        )
        yield Finding("capture", None, what, "register the pipeline's tables under a capture schema of their own")


def controlled(connection: Connection, tables: Sequence[TableId]) -> Iterator[Finding]:
    """The tables whose rows or values the server shows to some users alone."""
    try:
        rows = {(schema.rstrip(), table) for schema, table in connection.rows(_CONTROLS)}
    except FAILURES.driver_error as error:
        if FAILURES.is_transient(error):
            raise
        return
    for table in tables:
        if (table.schema, table.table) in rows:
            what = f"{table} has row permissions or column masks: they apply to its snapshots, and not to its changes"
            yield Finding("tables", None, what, "let the permissions and masks show everything to the pipeline's user")


def history(connection: Connection, tables: Sequence[TableId]) -> Iterator[Finding]:
    """Whether the user sees which tables LOAD has filled, which the log does not show."""
    if tables and loads(connection, {each.schema for each in tables}) is None:
        what = "whether LOAD has filled a table cannot be seen, so that a replica does not read it again then"
        yield Finding("tables", None, what, "GRANT SELECT ON SYSIBMADM.DB_HISTORY TO the user")


def columns(catalog: Catalog, instance: Instance, whole: Described) -> Iterator[Finding]:
    """What the change table of a captured table does not have of its columns."""
    table, captured, large = instance.table, catalog.at(instance), catalog.indicated(instance)
    names = {column.name for column in captured.columns}
    missing = [column.name for column in whole.columns if column.name not in names and column.name not in large]
    if missing:
        what = f"the change table of {table} lacks the columns {', '.join(missing)}: they are in no event"
        yield Finding("tables", None, what, "register the table again, with these columns, unless they are not wanted")
    if large and not captured.key:
        what = f"{table} has no key, so its large objects {', '.join(sorted(large))} are in no event"
        yield Finding("tables", None, what, "create a primary key, or a unique index")
    elif large:
        what = (
            f"the log has no large objects: the events of {table} have the values of {', '.join(sorted(large))} that "
            "the row has when they are read"
        )
        yield Finding("tables", None, what)
    huge = [column.name for column in whole.columns if column.type.is_large and column.type.bytes > LARGEST]
    if huge:
        what = f"{', '.join(huge)} of {table} may have values of more than {LARGEST:,} bytes, which end the pipeline"
        yield Finding("tables", None, what, "leave them out by column.exclude.list, unless no value is as large")
