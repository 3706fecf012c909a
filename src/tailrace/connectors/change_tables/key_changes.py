"""Finds the changes of the log that may be older than the key that a replica tells rows apart by.

No log tells that a key was dropped or made over other columns. So the keys are read whenever the end of the log is, and
behind it: no change up to there was made under a newer one, and each range is read by the keys that were read with its
end. But its changes may be older, as a log of change tables is late, and a stopped pipeline reads it late. Rows that
shared a value of what is the key by now were several rows then. That holds until all is captured that was committed
when the key was seen first. A table without a key has no such changes: its rows are told apart by all of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tailrace.connectors.change_tables.tables import Catalog, Instance, TableKey
from tailrace.model.structure import CHANGED_KEY
from tailrace.model.table import TableId

# In the `log` of an offset, by database and number of the table: which key it has, as TableKey.digest.
KEYS = "keys"
# And of keys that are newer than some of the log that is still to come: the server's time when they were seen first.
NEW_KEYS = "keys_new"
_NONE = TableKey(())


class SeenKeys:
    """The keys of tables, and when this process saw them first."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], TableKey] = {}

    def given(self, catalog: Catalog, database: str, now_us: Callable[[], int]) -> list[Instance]:
        """The change tables of a database with the keys of their tables. `now_us` asks for the server's time."""
        instances, keys = catalog.instances(database), catalog.keys(database)
        now: int | None = None
        for number in {each.source for each in instances}:
            place, key = (database, number), keys.get(number, _NONE)
            if self._seen.get(place) != key:
                now = now_us() if now is None else now
                self._seen[place] = replace(key, seen_us=now)
        return [replace(each, key=self._seen[database, each.source]) for each in instances]


def noted_keys(log: Mapping[str, Any], instances: Sequence[Instance], captured_us: int | None) -> dict[str, Any]:
    """The entries KEYS and NEW_KEYS of the next offset, where the one before has `log`.

    `captured_us`: all commits up to that time lie before the next offset; None: nobody knows.
    """
    keys: dict[str, dict[str, str]] = {}
    new: dict[str, dict[str, int]] = {}
    for database, number, key in _with_keys(instances):
        keys.setdefault(database, {})[number] = key.digest
        since = key.seen_us if _is_another(log, database, number, key) else _since(log, database, number)
        if since is not None and (captured_us is None or captured_us < since):
            new.setdefault(database, {})[number] = since
    return {name: entry for name, entry in ((KEYS, keys), (NEW_KEYS, new)) if entry}


def older_rows(
    rows: Mapping[Instance, int], start: Mapping[str, Any], end: Mapping[str, Any]
) -> list[tuple[TableId, str]]:
    """The tables whose rows in a range may be older than their key, and why that matters; see `is_older`."""
    tables = [each.table for each, count in rows.items() if count and is_older(each, start, end)]
    return [(table, CHANGED_KEY) for table in dict.fromkeys(tables)]


def is_older(instance: Instance, start: Mapping[str, Any], end: Mapping[str, Any]) -> bool:
    """Whether rows of an instance, in a range between two offsets' `log`, may be older than the key of its table."""
    return any(
        bool(key.columns)
        and (
            _is_another(start, database, number, key)
            or _since(start, database, number) is not None
            or _since(end, database, number) is not None
        )
        for database, number, key in _with_keys([instance])
    )


def _with_keys(instances: Iterable[Instance]) -> Iterable[tuple[str, str, TableKey]]:
    return [(each.table.database, str(each.source), each.key) for each in instances if each.key is not None]


def _is_another(log: Mapping[str, Any], database: str, number: str, key: TableKey) -> bool:
    """Whether a table has another key than an offset says; nothing is known of one that was not captured there."""
    stored: str = log.get(KEYS, {}).get(database, {}).get(number, key.digest)
    return stored != key.digest


def _since(log: Mapping[str, Any], database: str, number: str) -> int | None:
    since: int | None = log.get(NEW_KEYS, {}).get(database, {}).get(number)
    return since
