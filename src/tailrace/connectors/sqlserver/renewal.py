"""Creates capture instances for new columns, and drops them after they are read (`capture.instance.auto`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tailrace.config import Config
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sqlserver.added import added_columns
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.failures import FAILURES
from tailrace.connectors.sqlserver.options import CAPTURE_INSTANCE_AUTO
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.model.table import TableId

log = logging.getLogger(__name__)

# A table was altered while the instance was there, and has columns that the instance lacks.
_BEHIND = """
SELECT ct.object_id, (SELECT MAX(h.ddl_lsn) FROM {db}.cdc.ddl_history h WHERE h.object_id = ct.object_id),
  ct.role_name, CASE WHEN i.is_primary_key = 1 THEN NULL ELSE ct.index_name END, ct.filegroup_name, ct.partition_switch
FROM {db}.cdc.change_tables ct
LEFT JOIN {db}.sys.indexes i ON i.object_id = ct.source_object_id AND i.name = ct.index_name
WHERE EXISTS (SELECT 1 FROM {db}.cdc.ddl_history h WHERE h.object_id = ct.object_id)
AND EXISTS (SELECT 1 FROM {db}.sys.columns c WHERE c.object_id = ct.source_object_id AND c.is_computed = 0
  AND NOT EXISTS (
    SELECT 1 FROM {db}.cdc.captured_columns k
    WHERE k.object_id = ct.object_id AND k.column_name = c.name AND k.column_id = c.column_id))
"""
_COLUMNS = """
SELECT c.name, CASE WHEN k.column_name IS NULL THEN 0 ELSE 1 END, CASE WHEN k.column_id = c.column_id THEN 1 ELSE 0 END
FROM {db}.sys.columns c
LEFT JOIN {db}.cdc.captured_columns k ON k.object_id = {instance} AND k.column_name = c.name
WHERE c.object_id = {source} AND (c.is_computed = 0 OR k.column_name IS NOT NULL) ORDER BY c.column_id
"""
_COMMANDS = "SELECT ddl_command FROM {db}.cdc.ddl_history WHERE object_id = {instance} ORDER BY ddl_lsn"
# SQL Server allows a table so many.
_MOST = 2
_OURS = re.compile(r"_tailrace(\d+)$")


class Renewal:
    """Finds new columns if configured. What cannot be done is logged once for each table."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._is_wanted = config[CAPTURE_INSTANCE_AUTO]
        self._logged: set[tuple[str, str]] = set()
        # By instance that lacks only columns which were kept out: the last change of its table's structure.
        self._altered: dict[int, Any] = {}

    def create(self, connection: Connection, databases: Sequence[str]) -> None:
        """Create an instance for each captured table whose newest one lacks new columns."""
        for database in databases if self._is_wanted else ():
            behind = {row[0]: row[1:] for row in connection.rows(_BEHIND.format(db=name(database)))}
            new = {number: rest for number, (lsn, *rest) in behind.items() if self._altered.get(number) != lsn}
            if not new:
                continue
            catalog = Catalog(connection, self._config)
            for table, instances in _by_table(catalog.instances(database)):
                newest = instances[-1]
                if newest.number not in new or not catalog.filter.captures(table):
                    continue
                columns = _renewed(connection, newest)
                if columns is None:
                    # What it lacks was kept out of it on purpose.
                    self._altered[newest.number] = behind[newest.number][0]
                elif len(instances) >= _MOST:
                    self._tell(table, f"{instances[0].name} has to be disabled first: it was not created by Tailrace")
                else:
                    created = _enabling(table, _next_name(instances), columns, *new[newest.number])
                    self._run(connection, table, created)

    def drop(self, connection: Connection, read: LsnPosition, instances: Sequence[Instance]) -> None:
        """Drop own instances whose rows are read, where a newer one has taken over."""
        for each in instances if self._is_wanted else ():
            if _OURS.search(each.name) and each.stop is not None and each.stop <= read.lsn(each.table.database):
                self._run(connection, each.table, _disabling(each))

    def _run(self, connection: Connection, table: TableId, statement: str) -> None:
        try:
            connection.run(statement)
            log.info("capture.instance.auto: %s", statement)
        except FAILURES.driver_error as error:
            if FAILURES.is_transient(error):
                raise
            self._tell(table, f"{FAILURES.line(error)}; let a member of db_owner run {statement}")

    def _tell(self, table: TableId, what: str) -> None:
        if (str(table), what) not in self._logged:
            self._logged.add((str(table), what))
            log.warning("capture.instance.auto: %s has new columns that are not captured: %s", table, what)


def _by_table(instances: Sequence[Instance]) -> Iterator[tuple[TableId, list[Instance]]]:
    """The instances of each table, in their order."""
    in_order = sorted(instances, key=lambda each: each.table)
    for table, mine in groupby(in_order, key=lambda each: each.table):
        yield table, list(mine)


def _next_name(instances: Sequence[Instance]) -> str:
    """The next name of an instance for the table of these; SQL Server's limit is 100 characters."""
    matches = [_OURS.search(each.name) for each in instances]
    number = 1 + max((int(match[1]) for match in matches if match), default=0)
    table = instances[0].table
    return f"{table.schema}_{table.table}"[:80] + f"_tailrace{number}"


def _renewed(connection: Connection, instance: Instance) -> list[str] | None:
    """The columns of a new instance: those of this one and what the table got since. None if it got nothing.

    Empty if these are all that the table has. A column that was there when the instance was created was kept out of
    it by its creator, and stays so; also if it was dropped and added again. One that the instance had then has
    no values in it any more.
    """
    database, number = name(instance.table.database), instance.number
    rows = connection.rows(_COLUMNS.format(db=database, instance=number, source=instance.source))
    commands = [str(row[0]) for row in connection.rows(_COMMANDS.format(db=database, instance=number))]
    added = added_columns(commands)
    wanted = [column for column, is_named, _ in rows if is_named or column.lower() in added]
    if len(wanted) == sum(is_captured for *_, is_captured in rows):
        return None
    return wanted if len(wanted) < len(rows) else []


def _enabling(
    table: TableId, instance: str, columns: Sequence[str], role: Any, index: Any, filegroup: Any, switch: Any
) -> str:
    given = {
        "source_schema": text(table.schema),
        "source_name": text(table.table),
        "role_name": "NULL" if role is None else text(role),
        "capture_instance": text(instance),
        "supports_net_changes": "0",
        **({"captured_column_list": text(", ".join(map(name, columns)))} if columns else {}),
        **({} if index is None else {"index_name": text(index)}),
        **({} if filegroup is None else {"filegroup_name": text(filegroup)}),
        **({} if switch else {"allow_partition_switch": "0"}),
    }
    listed = ", ".join(f"@{each} = {value}" for each, value in given.items())
    return f"EXEC {name(table.database)}.sys.sp_cdc_enable_table {listed}"


def _disabling(instance: Instance) -> str:
    table = instance.table
    return (
        f"EXEC {name(table.database)}.sys.sp_cdc_disable_table @source_schema = {text(table.schema)}, "
        f"@source_name = {text(table.table)}, @capture_instance = {text(instance.name)}"
    )
