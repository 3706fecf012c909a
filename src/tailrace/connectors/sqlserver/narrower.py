"""Finds columns that capture instances lack: those of the table, and those of the instance before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from tailrace.config.filters import TableFilter
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.sqlserver.added import added_columns
from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.statements import name
from tailrace.model.table import TableId

_LACKING = """
SELECT o.object_id, n.object_id, k.column_name
FROM {db}.cdc.change_tables o
JOIN {db}.cdc.change_tables n ON n.source_object_id = o.source_object_id AND n.object_id <> o.object_id
JOIN {db}.cdc.captured_columns k ON k.object_id = o.object_id
JOIN {db}.sys.columns c ON c.object_id = o.source_object_id AND c.name = k.column_name
WHERE NOT EXISTS (SELECT 1 FROM {db}.cdc.captured_columns m
  WHERE m.object_id = n.object_id AND m.column_name = k.column_name)
"""
# Of a table's columns that an instance lacks; computed ones have no values in any instance. One that was dropped and
# added again is another column: the change table has none but the one that was dropped, which is null from then on.
_UNCAPTURED = """
SELECT ct.object_id, c.name FROM {db}.cdc.change_tables ct
JOIN {db}.sys.columns c ON c.object_id = ct.source_object_id AND c.is_computed = 0
WHERE NOT EXISTS (SELECT 1 FROM {db}.cdc.captured_columns k
  WHERE k.object_id = ct.object_id AND k.column_name = c.name AND k.column_id = c.column_id)
ORDER BY ct.object_id, c.column_id
"""
_COMMANDS = """
SELECT h.object_id, h.ddl_command FROM {db}.cdc.ddl_history h
WHERE h.object_id IN ({numbers}) AND h.ddl_time < DATEADD(second, -{seconds}, GETDATE()) ORDER BY h.ddl_lsn
"""
# Within this time the person who adds a column creates the instance that has it; guessed.
_SOON_S = 30
REMEDY = (
    "if it is not the pipeline's, leave it out by internal.capture.instance.exclude.list; else disable the older one"
)
RENEW = (
    "create a second instance that has them (EXEC sys.sp_cdc_enable_table ..., @capture_instance = N'<another name>'), "
    "or set capture.instance.auto=true for columns that were added; leave out others by column.exclude.list"
)


def narrower(connection: Connection, database: str, instances: Sequence[Instance]) -> list[str]:
    """A sentence for each table whose newest instance lacks columns that the table and its older instance have."""
    pairs = [
        (older, newer)
        for _, mine in groupby(sorted(instances, key=lambda each: each.table), key=lambda each: each.table)
        for older, newer in pairwise(mine)
    ]
    if not pairs:
        return []
    lacking: dict[tuple[int, int], list[str]] = {}
    for older, newer, column in connection.rows(_LACKING.format(db=name(database))):
        lacking.setdefault((int(older), int(newer)), []).append(str(column))
    return [
        _sentence(newer, lacking[older.number, newer.number])
        for older, newer in pairs
        if (older.number, newer.number) in lacking
    ]


def uncaptured(
    connection: Connection, database: str, instances: Sequence[Instance], lists: TableFilter
) -> dict[TableId, str]:
    """A sentence for each table that has columns which its newest instance lacks, and which the lists do not leave out.

    Those that its older instance has are `narrower`'s.
    """
    return {
        newest.table: _lacks(newest, columns) for newest, columns in _lacking(connection, database, instances, lists)
    }


def late(
    connection: Connection, database: str, instances: Sequence[Instance], lists: TableFilter
) -> dict[TableId, str]:
    """Those of `uncaptured` whose columns were added since the instances were created, some time ago.

    Others were kept out by the person who created them.
    """
    lacking = list(_lacking(connection, database, instances, lists))
    if not lacking:
        return {}
    numbers = ", ".join(str(newest.number) for newest, _ in lacking)
    commands: dict[int, list[str]] = {}
    for number, command in connection.rows(_COMMANDS.format(db=name(database), numbers=numbers, seconds=_SOON_S)):
        commands.setdefault(int(number), []).append(str(command))
    found = {}
    for newest, columns in lacking:
        added = added_columns(commands.get(newest.number, ()))
        if mine := [each for each in columns if each.lower() in added]:
            found[newest.table] = f"{_lacks(newest, mine)}; {RENEW}"
    return found


def _lacking(
    connection: Connection, database: str, instances: Sequence[Instance], lists: TableFilter
) -> Iterator[tuple[Instance, list[str]]]:
    """The newest instances of tables that have shown columns which no instance has, and these columns."""
    lacking: dict[int, list[str]] = {}
    for number, column in connection.rows(_UNCAPTURED.format(db=name(database))):
        lacking.setdefault(int(number), []).append(str(column))
    for table, mine in groupby(sorted(instances, key=lambda each: each.table), key=lambda each: each.table):
        *older, newest = mine
        everywhere = {*lacking.get(newest.number, ())}.intersection(*(lacking.get(each.number, ()) for each in older))
        shown = lists.columns(table, [each for each in lacking.get(newest.number, ()) if each in everywhere])
        if shown:
            yield newest, [*shown]


def _lacks(instance: Instance, columns: Sequence[str]) -> str:
    told = ", ".join(columns)
    return f"the capture instance {instance.name} of {instance.table} lacks {told}: no change of them arrives"


def _sentence(newer: Instance, columns: Sequence[str]) -> str:
    since, lacking = f"from LSN {newer.start} on" if newer.has_begun else "once it begins", ", ".join(sorted(columns))
    read = f"{newer.table} is read from the capture instance {newer.name} {since}"
    return f"{read}, which lacks {lacking}: their values end there"
