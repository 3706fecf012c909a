"""Converts positions in change tables to Debezium's offsets, and back.

Debezium stores the change that it has sent last: `commit_lsn` is its transaction, of which there may be more changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.config import Config
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.debezium_offset import PROPERTY, OffsetEntry, lacking, taken_over
from tailrace.errors import ConfigError

_COMMIT, _CHANGE = "commit_lsn", "change_lsn"


def reading_of(config: Config, databases: Iterable[str]) -> LsnPosition | None:
    """The position of `offset.takeover`: before the transaction that Debezium sent last, of which the rest may lack.

    None if the property is not set. Raises ConfigError, OffsetError.
    """
    entries = taken_over(config)
    if not entries:
        return None
    # Of one database alone the partition does not name it, or somebody has given the offset without a partition.
    by_database = {str(entry.partition.get("database") or "").lower(): entry for entry in entries}
    lsns = {}
    for database in databases:
        entry = by_database.get(database.lower()) or by_database.get("")
        if entry is None:
            what = f"there is no offset of the database {database}"
            raise ConfigError(what, where=PROPERTY, remedy="take the offsets of all databases of the connector")
        lsns[database] = _lsn(entry)
    return LsnPosition.of(lsns)


def _lsn(entry: OffsetEntry) -> str:
    commit, change = (str(entry.offset.get(name) or "").lower() for name in (_COMMIT, _CHANGE))
    if commit in ("", "null"):
        raise lacking(_COMMIT)
    if change in ("", "null"):  # of a snapshot: the transaction is part of what was read
        return commit
    return before(commit)


def before(lsn: str) -> str:
    """What sorts right before an LSN. Raises ConfigError for what is none."""
    return _moved(lsn, -1)


def after(lsn: str) -> str:
    """The inverse of `before`."""
    return _moved(lsn, 1)


def _moved(lsn: str, by: int) -> str:
    groups = [len(group) for group in lsn.split(":")]
    try:
        digits = f"{int(lsn.replace(':', ''), 16) + by:0{sum(groups)}x}"
    except ValueError as error:
        raise ConfigError(f"{lsn!r} is no LSN", where=PROPERTY, remedy="take Debezium's offset as it is") from error
    ends = [sum(groups[: at + 1]) for at in range(len(groups))]
    return ":".join(digits[end - length : end] for end, length in zip(ends, groups, strict=True))


def entries_of(config: Config, position: LsnPosition, *, has_databases: bool) -> list[OffsetEntry]:
    """The position as Debezium's offsets: as behind a snapshot, so that it begins with the next transaction."""
    prefix = config[TOPIC_PREFIX]
    entries = []
    for database, lsn in position.lsns:
        partition = {"server": prefix, **({"database": database} if has_databases else {})}
        offset = {_COMMIT: lsn.rstrip("+"), _CHANGE: None, "snapshot": "INITIAL", "snapshot_completed": True}
        entries.append(OffsetEntry(partition, offset))
    return entries
