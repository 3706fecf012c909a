"""Finds tables whose rows do not have event keys of their own, as message.key.columns names columns that repeat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.filters import key_columns
from tailrace.connectors.finding import Finding
from tailrace.model.table import TableId


@dataclass(frozen=True, slots=True)
class Indexed:
    """A table, its columns, and the columns of each of its unique keys."""

    id: TableId
    columns: Sequence[str]
    unique: Sequence[Sequence[str]]


def is_unique(key: Sequence[str], unique: Iterable[Sequence[str]]) -> bool:
    """Whether a key holds one of the unique keys."""
    return any({*columns} <= {*key} for columns in unique)


def key_not_unique(key: Sequence[str]) -> str:
    """The reason for not comparing a table whose replica's key is not unique at the source."""
    return f"the replica's key ({', '.join(key)}) does not tell the table's rows apart (message.key.columns)"


def shared_keys(config: Config, tables: Iterable[Indexed]) -> list[Finding]:
    """A warning for each table where the named columns contain no unique key."""
    findings = []
    for table in tables:
        named = key_columns(config, table.id, table.columns)
        if named is None or is_unique(named, table.unique):
            continue
        what = (
            f"{table.id}: the columns of message.key.columns ({', '.join(named)}) contain no unique key, so rows may "
            "share an event key: a replica or a compacted topic keeps one of them"
        )
        findings.append(
            Finding("key", None, what, "add the columns of a unique key, unless no two rows have equal values in them")
        )
    return findings
