"""Finds, read-only, what of a database's tables and capture instances a pipeline has to be warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.finding import Finding
from tailrace.connectors.sql_tables.tables import Row
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.failures import FAILURES, is_forbidden
from tailrace.connectors.sqlserver.guard import sees_policies
from tailrace.connectors.sqlserver.narrower import REMEDY, RENEW, narrower, uncaptured
from tailrace.connectors.sqlserver.options import SNAPSHOT_ISOLATION_MODE
from tailrace.connectors.sqlserver.platform import Platform, PlatformKind, enabling_table
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.errors import SourceError
from tailrace.model.table import TableId

# Columns that change tables or snapshots treat otherwise than most, with what a table has beside them.
_COLUMNS = """
SELECT c.object_id, c.name, c.is_computed, c.encryption_type, c.collation_name, CASE
    WHEN c.collation_name <> CONVERT(nvarchar(128), DATABASEPROPERTYEX({database}, N'Collation'))
      AND c.system_type_id IN (35, 167, 175) THEN 1 ELSE 0 END
FROM {db}.sys.columns c JOIN {db}.sys.tables t ON t.object_id = c.object_id
WHERE t.is_ms_shipped = 0 AND (c.is_computed = 1 OR c.encryption_type IS NOT NULL OR c.collation_name IS NOT NULL)
"""
# The row of a job is of the Agent's newest start; a job that is scheduled rests most of the time.
_RUNNING = """
SELECT COUNT(*) FROM msdb.dbo.cdc_jobs j JOIN msdb.dbo.sysjobactivity a ON a.job_id = j.job_id
WHERE j.job_type = N'capture' AND j.database_id = DB_ID({database})
  AND a.session_id = (SELECT MAX(session_id) FROM msdb.dbo.syssessions)
  AND (j.continuous = 0 OR a.start_execution_date IS NOT NULL AND a.stop_execution_date IS NULL)
"""
_SWITCHED = """
SELECT ct.object_id FROM {db}.cdc.change_tables ct WHERE ct.partition_switch = 1
AND EXISTS (SELECT 1 FROM {db}.sys.partitions p WHERE p.object_id = ct.source_object_id AND p.partition_number > 1)
"""
_DEFAULTS = """
SELECT DISTINCT d.parent_object_id FROM {db}.sys.default_constraints d WHERE d.definition IS NULL
"""
_IN_MEMORY = "SELECT t.object_id FROM {db}.sys.tables t WHERE t.is_memory_optimized = 1"


class TableChecks:
    """The findings of one database, whose captured tables have these numbers."""

    def __init__(
        self,
        connection: Connection,
        catalog: Catalog,
        place: Platform,
        database: str,
        captured: Mapping[TableId, int],
    ) -> None:
        self._connection, self._catalog, self._place = connection, catalog, place
        self._database, self._captured = database, captured
        self._tables = {number: table for table, number in captured.items()}

    def findings(self, instances: Sequence[Instance]) -> Iterator[Finding]:
        """What is to be told. May raise the driver's errors."""
        yield from self._of_instances(instances)
        yield from self._of_columns()
        yield from self._of_rows()
        mine = {each.number: each.table for each in instances if each.table in self._captured}
        for (number,) in self._rows(_SWITCHED):
            if number in mine:
                yield Finding(
                    "partitions",
                    None,
                    f"{mine[int(number)]}: ALTER TABLE ... SWITCH PARTITION is allowed, and changes rows without a "
                    "change in the log: a replica reads the table again then, and after its index was rebuilt",
                    "create the capture instance with @allow_partition_switch = 0, unless partitions are to be "
                    "switched; other sinks than a replica need a snapshot by a signal after each switch",
                )

    def _of_instances(self, instances: Sequence[Instance]) -> Iterator[Finding]:
        mine = [each for each in instances if each.table in self._captured]
        waiting = [each for each in mine if not each.has_begun]
        for each in waiting:
            what = f"the capture instance {each.name} of {each.table} has not begun: the capture job has not met it yet"
            yield Finding("tables", None, what, self._starting())
        newest = {each.table: each for each in mine if each.has_begun}
        yield from (finding for each in newest.values() for finding in self._without_key(each))
        for sentence in narrower(self._connection, self._database, mine):
            yield Finding("instances", None, sentence, REMEDY)
        for sentence in uncaptured(self._connection, self._database, mine, self._catalog.filter).values():
            yield Finding("columns", None, sentence, RENEW)
        for table, group in groupby(sorted(mine, key=lambda each: each.table), key=lambda each: each.table):
            names = [each.name for each in group if each.has_begun]
            if len(names) > 1:
                what = f"{table} has several capture instances ({', '.join(names)}), of which {names[-1]} is read"
                drop = (
                    f"EXEC sys.sp_cdc_disable_table @source_schema = {text(table.schema)}, "
                    f"@source_name = {text(table.table)}, @capture_instance = {text(names[0])}"
                )
                remedy = (
                    f"once it is read and nobody else needs the older one: {self._place.used(table.database, drop)}"
                )
                yield Finding("instances", None, what, remedy)

    def _without_key(self, instance: Instance) -> Iterator[Finding]:
        """Whether the log may not tell which row of a table without a key was updated or deleted."""
        described = self._catalog.at(instance)
        captured = self._catalog.capture(described)
        if captured is None or captured.schema.key:
            return
        names = {column.name for column in captured.schema.columns}
        large = [column.name for column in described.columns if column.type.is_large and column.name in names]
        if large:
            what = (
                f"{instance.table} has no key, and change tables lack old values of {', '.join(large)}: where others "
                "do not tell which row was updated or deleted, a replica reads the table again"
            )
            yield Finding("tables", None, what, "create a primary key, or leave them out by column.exclude.list")

    def _starting(self) -> str:
        if not self._place.has_agent:
            return "wait for the scheduler of Azure SQL Database, which captures each 20 seconds"
        start = "EXEC sys.sp_cdc_start_job @job_type = N'capture'"
        return f"start SQL Server Agent, and the job: {self._place.used(self._database, start)}"

    def _of_columns(self) -> Iterator[Finding]:
        columns_of: dict[tuple[str, int], list[str]] = {}
        for number, column, is_computed, encryption, _, is_other in self._rows(_COLUMNS):
            kinds = {"computed": is_computed, "encrypted": encryption is not None, "collation": is_other}
            for kind in (kind for kind, is_so in kinds.items() if is_so and number in self._tables):
                columns_of.setdefault((kind, int(number)), []).append(str(column))
        for (kind, number), columns in sorted(columns_of.items()):
            what, remedy = _TOLD[kind]
            yield Finding("columns", None, f"{self._tables[number]}: {what.format(', '.join(columns))}", remedy)
        hidden = sorted(str(self._tables[number]) for (number,) in self._rows(_DEFAULTS) if number in self._tables)
        if hidden:
            what = f"the login may not see the defaults of {', '.join(hidden)}: schemas have none"
            remedy = self._place.used(self._database, "GRANT VIEW DEFINITION TO <user>")
            yield Finding("columns", None, what, remedy)

    def _of_rows(self) -> Iterator[Finding]:
        if not sees_policies(self._connection, self._database):
            what = f"the login may not see the security policies of {self._database}: one may hide rows from snapshots"
            yield Finding("rows", None, what, self._place.used(self._database, "GRANT VIEW DEFINITION TO <user>"))
        in_memory = {int(number) for (number,) in self._rows(_IN_MEMORY)}
        mode = self._catalog.config[SNAPSHOT_ISOLATION_MODE]
        for table, number in self._captured.items():
            if number in in_memory and mode != "snapshot":
                what = f"{table} is memory-optimized, and cannot be read under snapshot.isolation.mode={mode}"
                yield Finding("isolation", False, what, "set snapshot.isolation.mode=snapshot, or leave the table out")
            captured = self._catalog.table(table)
            try:
                if captured is not None:
                    self._catalog.guard(captured, number)
            except SourceError as error:
                yield Finding("rows", False, f"{table}: {error.what}", error.remedy)
            except FAILURES.driver_error as error:
                if not is_forbidden(error):
                    raise  # a table that may not be read is another finding

    def _rows(self, statement: str) -> list[Row]:
        return self._connection.rows(statement.format(db=name(self._database), database=text(self._database)))


_TOLD = {
    "computed": (
        "{} are computed: change tables have null for them, and replicas leave them out",
        "leave them out of events as well by computed.columns=exclude, or compute them where they are needed",
    ),
    "encrypted": (
        "{} are encrypted (Always Encrypted): they are left out, as the server does not know their values",
        "leave them out by column.exclude.list, which ends this warning",
    ),
    "collation": (
        "{} have another collation than the database: of characters beyond ASCII capture may keep others "
        "(Microsoft, Known issues of change data capture)",
        "use nvarchar, or the database's collation",
    ),
}


def not_captured(place: Platform, captured: Sequence[TableId], instances: Sequence[Instance]) -> Iterator[Finding]:
    """The captured tables that have no capture instance."""
    with_instance = {each.table for each in instances}
    for table in captured:
        if table not in with_instance:
            remedy = place.used(table.database, enabling_table(table))
            yield Finding("tables", False, f"{table} has no capture instance: its changes are not captured", remedy)


def _has_job(place: Platform, database: str) -> str:
    jobs = place.jobs(database)
    return f"SELECT COUNT(*) FROM {jobs} WHERE job_type = N'capture' AND database_id = DB_ID({text(database)})"


def of_jobs(connection: Connection, place: Platform, database: str) -> Iterator[Finding]:
    """That a database has no capture job, as after a failover; nothing where jobs cannot be seen."""
    if place.kind is PlatformKind.AZURE_DATABASE:
        return
    try:
        has_job = connection.value(_has_job(place, database))
    except FAILURES.driver_error:
        return
    if not has_job:
        remedy = place.used(database, "EXEC sys.sp_cdc_add_job @job_type = N'capture', and the same with N'cleanup'")
        what = f"{database} has no capture job on this server: with the first table, or after a failover, it needs one"
        yield Finding("agent", None, what, remedy)


def of_running_job(connection: Connection, place: Platform, database: str) -> Iterator[Finding]:
    """That a capture job which is to run all the time does not; nothing where the Agent's tables cannot be seen."""
    try:
        if connection.value(_RUNNING.format(database=text(database))):
            return
        if not connection.value(_has_job(place, database)):
            return  # which is another finding
    except FAILURES.driver_error:
        return
    what = f"the capture job of {database} is not running, so changes do not come"
    remedy = place.used(database, "EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    yield Finding("agent", False, what, f"{remedy}; msdb.dbo.sysjobhistory says why it ended")
