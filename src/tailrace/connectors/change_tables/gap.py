"""Detects changes that were removed before they were read: by clean-up, or with a dropped change table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.connectors.shared_log import LogGap
from tailrace.errors import OffsetError, SourceError
from tailrace.model.table import TableId

# By database and name of each change table: its number, schema and name of its source table, its version, and `types`
# and `rest` of an Instance when it was seen first.
Known = Mapping[str, Mapping[str, list[Any]]]


def is_in(instance: Instance, begin: LsnPosition, end: LsnPosition) -> bool:
    """Whether an instance has rows of (begin, end]."""
    database = instance.table.database
    is_over = instance.stop is not None and instance.stop <= begin.lsn(database)
    return instance.has_begun and instance.start <= end.lsn(database) and not is_over


def is_passed(instance: Instance, begin: LsnPosition, end: LsnPosition) -> bool:
    """Whether an instance that had rows stops in [begin, end)."""
    database, stop = instance.table.database, instance.stop
    return stop is not None and instance.start < stop and begin.lsn(database) <= stop < end.lsn(database)


def known_up_to(before: Known, to: LsnPosition, instances: Sequence[Instance]) -> dict[str, dict[str, list[Any]]]:
    """The instances that the log up to a position has rows of, those among them that are gone by now left out."""
    by_database: dict[str, dict[str, list[Any]]] = {}
    for each in instances:
        has_rows = each.has_begun and each.start <= to.lsn(each.table.database)
        if has_rows or is_known(before, each):
            names = by_database.setdefault(each.table.database, {})
            columns = _first_columns(before, each)
            names[each.name] = [each.number, each.table.schema, each.table.table, each.version, *columns]
    return by_database


def _first_columns(stored: Known, instance: Instance) -> tuple[int, int]:
    """`types` and `rest` when an instance was seen first, as far as the offset has them."""
    entry = stored.get(instance.table.database, {}).get(instance.name, [])[4:] if is_known(stored, instance) else []
    first = [int(each) for each in entry]
    now = [instance.types, instance.rest]
    types, rest, *_ = [*first, *now[len(first) :]]
    return types, rest


def is_retyped(stored: Known, instance: Instance) -> bool:
    """Whether an instance's columns were altered since it was seen first: their types, defaults, or being required."""
    return _first_columns(stored, instance) != (instance.types, instance.rest)


def is_known(stored: Known, instance: Instance) -> bool:
    """Whether the offset has the instance, and not another one of its name."""
    entry = stored.get(instance.table.database, {}).get(instance.name)
    return entry is not None and entry[0] == instance.number


def is_reported(stored: Known, instance: Instance) -> bool:
    """Whether the offset has the instance with the columns of now."""
    entry = stored.get(instance.table.database, {}).get(instance.name, [])
    return is_known(stored, instance) and (len(entry) < 4 or entry[3] == instance.version)


def replaced(stored: Known, at: LsnPosition, instances: Sequence[Instance]) -> list[tuple[str, str, Instance]]:
    """The instances that are gone where those there are of their tables begin later: name, position, and the new one.

    With none there is no log.
    """
    by_table: dict[tuple[str, str, str], list[Instance]] = {}
    for each in instances:
        by_table.setdefault((each.table.database, each.table.schema, each.table.table), []).append(each)
    gone = []
    for database, names in stored.items():
        for name, (number, schema, table, *_) in names.items():
            mine = by_table.get((database, schema, table), [])
            is_gone = all(each.number != number for each in mine)
            # Where nothing tells since when the other one has changes (it may not have begun yet), it may lack some.
            if is_gone and mine and (mine[0].start > at.lsn(database) or not mine[0].start):
                gone.append((name, at.lsn(database), mine[0]))
    return gone


def new_tables(stored: Known, waiting: Mapping[str, Sequence[int]], instances: Sequence[Instance]) -> list[Instance]:
    """The instances whose tables the log has had no changes of, under their names; but those that a snapshot awaits."""
    new = []
    for each in instances:
        met = {(schema, table) for _, schema, table, *_ in stored.get(each.table.database, {}).values()}
        is_awaited = each.number in waiting.get(each.table.database, ())
        if (each.table.schema, each.table.table) not in met and not is_awaited:
            new.append(each)
    return new


def cleaned(instance: Instance, lsn: str, longer: str) -> LogGap:
    """The gap where clean-up has passed the position; `longer` says how changes are kept longer."""
    return LogGap(
        OffsetError(
            f"clean-up has removed changes that were not read: from LSN {lsn} to {instance.start}",
            where=f"{instance.table}, capture instance {instance.name}",
            remedy=f"{NEW_SNAPSHOT}. To keep changes longer: {longer}",
        )
    )


def cleaned_meanwhile(instance: Instance, lsn: str, left: int, expected: int) -> OffsetError:
    """The error where clean-up has passed a range while it was read."""
    return OffsetError(
        f"clean-up has removed changes while they were read: {left:,} of {expected:,} rows from LSN {lsn} on are left",
        where=f"{instance.table}, capture instance {instance.name}",
        remedy=f"{NEW_SNAPSHOT}. Keep changes longer than the pipeline is behind",
    )


class InstanceGone(SourceError):
    """A change table was dropped after it was listed."""


def dropped_meanwhile(instance: Instance, lsn: str) -> str:
    """What is lost where a change table was dropped before its rows behind a position were read."""
    return (
        f"the capture instance {instance.name} of {instance.table} was dropped before its changes from LSN {lsn} on "
        "were read: they are lost"
    )


def dropped(stored: Known, instances: Sequence[Instance], shown: tuple[str, ...]) -> tuple[TableId, ...]:
    """The tables that had an instance at the start of a range, and have none now."""
    captured = {each.table for each in instances}
    tables = (
        TableId(database, schema, table, shown)
        for database, names in stored.items()
        for _, schema, table, *_ in names.values()
    )
    return tuple(dict.fromkeys(table for table in tables if table not in captured))


def disabled(name: str, lsn: str, new: Instance) -> OffsetError:
    """The error where capture of a table was disabled and enabled again, with a new instance."""
    return OffsetError(
        f"capture was disabled and enabled again: what changed from LSN {lsn} to {new.start or 'its start'} is lost",
        where=f"{new.table}, capture instance {name}",
        remedy=NEW_SNAPSHOT,
    )


def another(database: str, lsn: str, was: str, now: str | None) -> LogGap:
    """The gap where the commit at a position is another one than that which was read."""
    return LogGap(
        OffsetError(
            f"the log of {database} is not the one that was read: its commit at LSN {lsn} was {was}, and is "
            f"{now or 'gone'}. The database was restored to an older point, or is another one of this name",
            where=database,
            remedy=NEW_SNAPSHOT,
        )
    )


def behind(database: str, lsn: str, now: str) -> LogGap:
    """The gap where the log ends before the position."""
    return LogGap(
        OffsetError(
            f"the log of {database} ends at LSN {now or 'none'}, before the position {lsn}: the database was restored, "
            "or change data capture was disabled and enabled again",
            where=database,
            remedy=NEW_SNAPSHOT,
        )
    )
