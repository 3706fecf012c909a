"""Gives a SELECT of the user's, which a snapshot reads in place of a table, the columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.failure_handling import FailureHandling
from tailrace.config.options.snapshot import TABLE_WATCH_INTERVAL_MS
from tailrace.errors import SourceError
from tailrace.model.table import TableId


@dataclass(frozen=True)
class UserSelect:
    """The columns of a SELECT, and those of its table, in order; `captured` are those of the table that are sent.

    They belong together by their names, in any case; of columns of one name the last one counts. `origin` is where the
    user corrects the SELECT.
    """

    table: TableId
    selected: Sequence[str]
    columns: Sequence[str]
    captured: Collection[str]
    origin: str

    def as_table(
        self,
        config: Config,
        source: str,
        name: Callable[[str], str],
        null: Callable[[str], str],
        has_rows: Callable[[], bool],
    ) -> str:
        """A SELECT of the captured columns from `source`, the user's one in FROM: those that it leaves out are null.

        A row ends at its last column, as in the reference engine: what the table has behind cannot be sent. `name`
        quotes a name, `null` gives a column's null. Raises SourceError.
        """
        self._check_known()
        lost = self._behind()
        is_lost = bool(lost) and has_rows()
        if is_lost and config[TABLE_WATCH_INTERVAL_MS]:
            raise self._lacks(lost)  # a sink that keeps the table's content would keep none
        if is_lost:
            FailureHandling.of(config).left_out(self._lacks(lost), f"{self.table}, snapshot row 0 and all others")
        is_double = len(set(self.selected)) < len(self.selected)
        given = [f"c{place}" if is_double else name(each) for place, each in enumerate(self.selected)]
        exact = dict(zip(self.selected, given, strict=True))
        by_name = {each.lower(): value for each, value in exact.items()} | exact
        listed = ", ".join(
            f"{by_name.get(each) or by_name.get(each.lower()) or null(each)} AS {name(each)}"
            for each in self.columns
            if each in self.captured
        )
        aliases = f" ({', '.join(given)})" if is_double else ""
        return f"SELECT {listed} FROM {source}{aliases}{' WHERE 1 = 0' if is_lost else ''}"

    def _check_known(self) -> None:
        names = {each.lower() for each in self.columns}
        for each in self.selected:
            if each.lower() not in names:
                raise SourceError(
                    f"the snapshot's SELECT has a column that the table does not have: {each}",
                    where=str(self.table),
                    remedy=f"take it out of {self.origin}, or give it the name of the table's column: ... AS name",
                )

    def _behind(self) -> list[str]:
        """The captured columns behind the last one that the SELECT has."""
        in_lower_case = {each.lower() for each in self.selected}
        end = max((place for place, each in enumerate(self.columns) if each.lower() in in_lower_case), default=-1)
        return [each for each in self.columns[end + 1 :] if each in self.captured]

    def _lacks(self, lost: Sequence[str]) -> SourceError:
        return SourceError(
            f"the snapshot's SELECT leaves out the table's last columns: {', '.join(lost)}; "
            "only columns before one that it has can be left out",
            where=str(self.table),
            remedy=f"add NULL AS {lost[-1]} to {self.origin}, or name the columns in column.exclude.list",
        )
