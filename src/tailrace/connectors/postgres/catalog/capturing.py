"""Remembers in the offset since when the tables are captured that are captured now, by the number of a transaction.

A table that was made by a later transaction, under a name that is captured, has all of its rows in the log that the
pipeline reads. Of any other table that a replica meets for the first time rows may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.captured_lists import CapturedLists

# The entry of an offset's `log`.
ENTRY = "tables"
# The first transaction that has not begun yet; as such numbers are counted, beyond 32 bits.
NEXT = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


@dataclass(frozen=True, slots=True)
class Capturing:
    """The first transaction (`since`) that began after the lists of tables took effect, and how often these changed.

    `next` is the first transaction that had not begun when the offset was planned: its changes are not read yet.
    """

    since: int
    next: int
    epoch: int = 0

    @staticmethod
    def of(log: Mapping[str, Any]) -> Capturing | None:
        """What an offset has; None in one without it, as at the begin of a pipeline."""
        node, lists = log.get(ENTRY), CapturedLists.of(log)
        return None if node is None else Capturing(node["since"], node["next"], 0 if lists is None else lists.epoch)

    @staticmethod
    def at(config: Config, log: Mapping[str, Any], next_: int) -> Capturing:
        """What holds for the log behind an offset; `next_` is the first transaction that has not begun now."""
        stored, epoch = Capturing.of(log), CapturedLists.at(config, log).epoch
        if stored is None:
            return Capturing(next_, next_, epoch)
        return Capturing(stored.since if stored.epoch == epoch else stored.next, next_, epoch)

    def to_json(self) -> dict[str, Any]:
        """For an offset, which has `epoch` in another entry."""
        return {"since": self.since, "next": self.next}


def next_transaction(connection: psycopg.Connection) -> int:
    """The first transaction that has not begun. Raises psycopg.Error."""
    row = connection.execute(f"SELECT {NEXT}".encode()).fetchone()
    assert row is not None
    return int(row[0])
