"""Protocols of a table format for the engine `spark`: what of a table Spark writes, and how the rest is written."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from tailrace.model.table import TableSchema
from tailrace.sinks.replica.reshape import Reshaping
from tailrace.sinks.replica.table import Mark, Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.writing import Work


@dataclass(frozen=True)
class Folded:
    """A net effect whose rows are a frame; the fields are those of Net. `types`: of its columns; none without rows.

    `slices` are the same rows, as Arrow streams in one column of bytes.
    """

    rows: DataFrame
    slices: DataFrame
    names: list[str]
    schema: pa.Schema
    _: KW_ONLY
    key: list[str]
    kept: list[str]
    moves: bool
    cleared: bool
    types: dict[str, str]

    @property
    def fields(self) -> pa.Schema:
        """The source's columns."""
        return pa.schema([self.schema.field(name) for name in self.names])


class SparkMerge(Protocol):
    """One MERGE into a version of a table."""

    @property
    def rows(self) -> DataFrame:
        """The rows of that version."""

    def run(self, source: DataFrame, mark: Mark, condition: str, updates: dict[str, str] | None, inserted: str) -> int:
        """Merge in one commit; without updates, matched rows are deleted ones. How many rows were put."""


class SparkTables(Protocol):
    """The tables of a format, as Spark writes them. Methods raise what Spark raises and what those of Table do."""

    def overwrite(self, work: Work, net: Folded, mark: Mark, *, reshapes: bool) -> None:
        """Replace all rows by those of a net effect in one commit, and the columns if it reshapes; or make the table.

        A value that the log did not repeat is null then.
        """

    def evolve(self, work: Work, fields: pa.Schema, described: TableSchema | None) -> str | None:
        """Give a table the columns of a batch; why its rows may differ from the source's, if they may.

        `described` is the source's table where its columns' types are not all there is to know.
        """

    def merge(self, place: Target, target: Table) -> SparkMerge:
        """A MERGE into a table as it is now."""

    def reshape(self, place: Target, target: Table, shape: Reshaping, mark: Mark) -> None:
        """Rename and drop columns in one commit."""

    def copy(self, work: Work, source: Target, mark: Mark) -> None:
        """Replace the rows and columns of a table by those of another in one commit; or make the table."""

    def clear(self, place: Target, target: Table, mark: Mark) -> None:
        """Take all rows away in one commit."""

    def is_conflict(self, error: Exception) -> bool:
        """Whether an error of Spark's says that another program has written the table meanwhile."""

    def is_away(self, error: Exception) -> bool:
        """Whether an error of Spark's says that the storage or catalog does not answer."""

    def is_of_the_table(self, error: Exception) -> bool:
        """Whether an error of Spark's concerns what the table holds."""

    def remedy(self, error: Exception) -> str | None:
        """What to do about an error of Spark's, None where nothing better is known than to look at the session."""
