"""Positions in change tables: the last transaction that was read, for each database of a pipeline.

A range is (start, end]. An LSN is a text that sorts as the log does; the empty text is before all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.connectors.ports import Position
from tailrace.errors import OffsetError
from tailrace.override import override

BEGIN = ""
# It becomes part of statements. A plus stands behind one of a place right behind it.
_LSN = re.compile(r"[0-9a-fA-Fx:]*\+?", re.ASCII)


@dataclass(frozen=True)
class LsnPosition(Position):
    """Implements Position: an LSN for each database. Those of one pipeline are ordered, as no database goes back."""

    lsns: tuple[tuple[str, str], ...]

    @staticmethod
    def of(lsns: Mapping[str, str]) -> LsnPosition:
        """From the LSNs by database."""
        return LsnPosition(tuple(sorted(lsns.items())))

    @staticmethod
    def from_text(text: str) -> LsnPosition:
        """The inverse of `to_text`. Raises OffsetError."""
        parts = [part.partition("=") for part in text.split(" ")]
        if not all(separator and _LSN.fullmatch(lsn) for _, separator, lsn in parts):
            what = f"{text!r} is no position in change tables"
            raise OffsetError(what, remedy=NEW_SNAPSHOT)
        return LsnPosition(tuple((unquote(database), lsn) for database, _, lsn in parts))

    @override
    def to_text(self) -> str:
        """`database=lsn`, separated by blanks."""
        return " ".join(f"{quote(database, safe='')}={lsn}" for database, lsn in self.lsns)

    def at_least(self, other: LsnPosition) -> LsnPosition:
        """The later one of both for each of these databases."""
        return LsnPosition(tuple((database, max(lsn, other.lsn(database))) for database, lsn in self.lsns))

    def lsn(self, database: str) -> str:
        """The LSN of a database; that before all where it was not read yet."""
        return dict(self.lsns).get(database, BEGIN)

    @override
    def distance(self, other: Any) -> int | None:
        """LSNs count no bytes."""
        return None

    def __le__(self, other: LsnPosition) -> bool:
        return all(lsn <= other.lsn(database) for database, lsn in self.lsns)

    @override
    def __lt__(self, other: LsnPosition) -> bool:
        return self <= other and self != other

    def __ge__(self, other: LsnPosition) -> bool:
        return other <= self

    def __gt__(self, other: LsnPosition) -> bool:
        return other < self


def behind(lsn: str) -> str:
    """What sorts right behind an LSN: where the log begins that rows as of its commit lack."""
    return lsn + "+"
