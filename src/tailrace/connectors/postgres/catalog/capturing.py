"""Remembers in the offset since when the tables are captured that are captured now, by the number of a transaction.

A table that was made by a later transaction, under a name that is captured, has all of its rows in the log that the
pipeline reads. Of any other table that a replica meets for the first time rows may be missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import psycopg

from tailrace.config import Config

# The entry of an offset's `log`.
ENTRY = "tables"
_LISTS = ("schema.include.list", "schema.exclude.list", "table.include.list", "table.exclude.list")
# The first transaction that has not begun yet; as such numbers are counted, beyond 32 bits.
NEXT = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


@dataclass(frozen=True, slots=True)
class Capturing:
    """The lists of tables as a digest, and the first transaction (`since`) that began after they took effect.

    `epoch` counts how often the lists have changed. `next` is the first transaction that had not begun when the offset
    was planned: its changes are not read yet.
    """

    since: int
    lists: str
    epoch: int
    next: int

    @staticmethod
    def of(log: Mapping[str, Any]) -> Capturing | None:
        """What an offset has; None in one without it, as at the begin of a pipeline."""
        node = log.get(ENTRY)
        return None if node is None else Capturing(**node)

    @staticmethod
    def at(config: Config, log: Mapping[str, Any], next_: int) -> Capturing:
        """What holds for the log behind an offset; `next_` is the first transaction that has not begun now."""
        known, lists = Capturing.of(log), _digest(config)
        if known is None:
            return Capturing(next_, lists, 0, next_)
        if known.lists == lists:
            return replace(known, next=next_)
        return Capturing(known.next, lists, known.epoch + 1, next_)

    def to_json(self) -> dict[str, Any]:
        """For an offset."""
        return asdict(self)


def next_transaction(connection: psycopg.Connection) -> int:
    """The first transaction that has not begun. Raises psycopg.Error."""
    row = connection.execute(f"SELECT {NEXT}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _digest(config: Config) -> str:
    lists = [config.given.get(name) for name in _LISTS]
    return hashlib.sha256(json.dumps(lists).encode()).hexdigest()[:16]
