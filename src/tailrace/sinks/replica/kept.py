"""What a table keeps of its source, its newest rows, their history or the changes: the protocol of its writers."""

from __future__ import annotations

from typing import Protocol

from tailrace.sinks.replica.marks import Extent, Record
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.writing import Work


class Contents(Protocol):
    """What a table keeps. Methods make one commit, and raise what a table raises, and TableError."""

    def bring(
        self,
        work: Work,
        part: Part,
        *,
        replaces: bool,
        beside: Table | None,
        is_copy: bool,
    ) -> TableReport:
        """Bring changes that the table does not hold into it; the first rows of a snapshot `replace` its rows.

        `beside` is another table of the same rows, for values that neither the changes nor the table have. `is_copy`:
        the table does not have all rows yet.
        """

    def clear(
        self,
        work: Work,
        extent: Extent | None,
        at: int | None,
    ) -> None:
        """Note that the source has no rows any more, by a change at some time; None for an extent or time that the log
        does not have.
        """

    def move(
        self,
        work: Work,
        source: Table,
        extent: Extent,
        at: int | None,
    ) -> Table:
        """Note that a table has the rows that another one had, as its name changed to this one; the table."""

    def swap(
        self,
        work: Work,
        copy: Table | None,
        held: Record,
    ) -> None:
        """Note that the source has the rows of a copy, whose record is `held`, and no others; None: no rows."""
