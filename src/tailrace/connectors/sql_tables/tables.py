"""Describes relational tables: columns and structures; and has the protocols of connections and catalog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.columns import CapturedTable, ColumnRules
from tailrace.model.schema_change import DescribedColumn
from tailrace.model.table import TableId

T = TypeVar("T")
Row = tuple[Any, ...]
Block = Sequence[pa.Array]
"""The columns of some rows, in the types that the driver gives them."""


class CatalogType(Protocol):
    """A column's type as the catalog has it, and as the database's JDBC driver tells of it."""

    @property
    def name(self) -> str:
        """Its name, without a size."""

    @property
    def declared(self) -> str:
        """As a column definition has it."""

    @property
    def length(self) -> int:
        """The length that the driver reports."""

    @property
    def digits(self) -> int | None:
        """The scale that the driver reports, None for types without one."""

    @property
    def jdbc(self) -> int:
        """The number in java.sql.Types, or the driver's own."""

    def printed(self, *, is_identity: bool) -> str:
        """The name that the driver reports."""


@dataclass(frozen=True)
class SqlColumn:
    """A column as the catalog has it."""

    name: str
    type: Any  # a CatalogType; those of a dialect know more
    required: bool
    is_identity: bool = False
    _: KW_ONLY
    is_computed: bool = False
    default: str | None = None
    comment: str | None = None

    def shown(self, place: int) -> DescribedColumn:
        """The column as schema changes describe it."""
        printed = self.type.printed(is_identity=self.is_identity)
        return DescribedColumn(
            name=self.name,
            jdbc_type=self.type.jdbc,
            type_name=printed,
            position=place,
            type_expression=printed,
            length=self.type.length,
            scale=self.type.digits,
            optional=not self.required,
            auto_incremented=self.is_identity,
            generated=self.is_computed,
            comment=self.comment,
            default=self.default,
        )


@dataclass(frozen=True)
class Described:
    """A table as the catalog has it: its columns, and the columns of its key."""

    id: TableId
    columns: tuple[SqlColumn, ...]
    key: tuple[str, ...]

    def only(self, names: Collection[str], *, part_of_key: bool = False) -> Described:
        """The table with these of its columns. A key that lacks a column is none, or with `part_of_key` the rest."""
        kept = tuple(column for column in self.columns if column.name in names)
        key = tuple(name for name in self.key if name in names)
        return replace(self, columns=kept, key=key if part_of_key or key == self.key else ())

    def shows_all_of(self, other: Described) -> bool:
        """Whether it has the columns of the other one, and no more."""
        return [column.name for column in self.columns] == [column.name for column in other.columns]

    def shown(self) -> tuple[DescribedColumn, ...]:
        """The columns as schema changes describe them."""
        return tuple(column.shown(place) for place, column in enumerate(self.columns, 1))


class Connection(Protocol):
    """A connection; what a SELECT returns comes as rows, or as columns. Methods raise the driver's errors."""

    def rows(self, statement: str) -> list[Row]:
        """All rows of a statement, none for one without a result."""

    def value(self, statement: str) -> Any:
        """The first column of the first row, None without one."""

    def names(self, statement: str) -> list[str]:
        """The names of the columns that a statement returns."""

    def run(self, *statements: str) -> None:
        """Run statements without looking at results."""

    def blocks(self, statement: str, size: int) -> Iterator[Block]:
        """The columns of so many rows of a statement at a time. Nothing else can be asked meanwhile."""

    def close(self) -> None:
        """Close it."""


class Server(Protocol):
    """Asks one server over a connection that is kept; a server that is away is waited for, as the options say."""

    config: Config

    def ask(self, question: Callable[[Any], T], doing: str = "the server cannot be queried") -> T:
        """The result of a question, which is given the connection. Raises SourceError."""

    @property
    def connection(self) -> Connection:
        """The connection."""

    def close(self) -> None:
        """Close the connection."""


class SqlCatalog(Protocol):
    """Reads the catalogs of the databases over one connection. Methods raise the driver's errors."""

    filter: TableFilter
    columns: ColumnRules

    def databases(self) -> list[str]:
        """The names of the databases, as the server writes them. Raises SourceError for one that is not there."""

    def tables(self) -> dict[TableId, int]:
        """All tables of the databases, with their numbers."""

    def described(self, table: TableId, number: int) -> Described:
        """A table with all of its columns."""

    def unique(self, table: TableId, number: int) -> list[tuple[str, ...]]:
        """The columns of each unique index of a table, the primary key first."""

    def info(self, column: SqlColumn) -> ColumnInfo:
        """A column in the terms that every connector has."""

    def captured(self) -> list[TableId]:
        """The captured tables, in snapshot order."""
        return self.filter.order(table for table in self.tables() if self.filter.captures(table))

    def is_unique_at_commit(self, table: TableId) -> bool:
        """Whether keys are verified when a statement ends, not by each row; TableSchema.unique_at_commit then."""
        return False

    def read_first(self) -> list[TableId]:
        """Those of the captured tables that a first snapshot reads."""
        return [table for table in self.captured() if self.filter.snapshots(table)]

    def guard(self, captured: CapturedTable, number: int) -> None:
        """Raise SourceError for a table whose rows the login cannot read as they are. May raise the driver's errors."""
        return

    def descriptions(self) -> Callable[[TableId, int], Described]:
        """What describes tables as snapshots read them, by id and number: with the columns that the log has.

        Where the log does not have all columns, it asks once which ones it has.
        """
        return self.described

    def table(self, table: TableId) -> CapturedTable | None:
        """A captured table as it is now, None if it is gone."""
        number = self.tables().get(table)
        return None if number is None else self.capture(self.descriptions()(table, number))

    def capture(self, described: Described) -> CapturedTable | None:
        """What is captured of a table."""
        infos = [self.info(column) for column in described.columns]
        names = [column.name for column in described.columns]
        is_late = self.is_unique_at_commit(described.id)
        return self.columns.captured(described.id, infos, described.key, names, unique_at_commit=is_late)
