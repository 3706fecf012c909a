"""What the double knows of tables and views while it translates a statement."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..datatypes import SqlType

_NATURAL_ORDER = (
    *("database_id", "schema_id", "object_id", "index_id", "index_column_id", "column_id"),
    *("TABLE_SCHEMA", "TABLE_NAME", "ORDINAL_POSITION"),
)


@dataclass(frozen=True)
class Column:
    """One column; `physical` is its name in PostgreSQL."""

    name: str
    column_id: int
    kind: SqlType
    nullable: bool = True
    identity: tuple[int, int] | None = None
    computed: str | None = None
    default: str | None = None
    default_name: str | None = None
    rowguid: bool = False
    masked: bool = False

    @property
    def physical(self) -> str:
        """The column's name in PostgreSQL."""
        return f"c{self.column_id}"

    @property
    def writable(self) -> bool:
        """Whether INSERT and UPDATE may give it a value."""
        return self.computed is None and self.kind.name != "timestamp"


@dataclass(frozen=True)
class Index:
    """One index: its key columns with their direction, True for descending."""

    name: str
    index_id: int
    clustered: bool
    unique: bool
    primary_key: bool
    constraint: bool
    keys: tuple[tuple[int, bool], ...]
    included: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table or view of a database."""

    object_id: int
    database_id: int
    database: str
    schema: str
    name: str
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    kind: str = "U"
    definition: str | None = None
    captured: bool = False
    shipped: bool = False
    physical_name: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    _by_name: dict[str, Column] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update((column.name.lower(), column) for column in self.columns)

    @property
    def physical(self) -> str:
        """The table's name in PostgreSQL."""
        return self.physical_name or f"u.t{self.object_id}"

    def column(self, name: str) -> Column | None:
        """A column by its name, whatever the case."""
        return self._by_name.get(name.lower())

    def by_id(self, column_id: int) -> Column:
        """A column by its number."""
        return next(column for column in self.columns if column.column_id == column_id)

    @property
    def clustered(self) -> Index | None:
        """The index in whose order the table's rows lie."""
        return next((index for index in self.indexes if index.clustered), None)

    @property
    def primary_key(self) -> Index | None:
        """The index of the primary key."""
        return next((index for index in self.indexes if index.primary_key), None)

    @property
    def identity(self) -> Column | None:
        """The identity column."""
        return next((column for column in self.columns if column.identity is not None), None)

    def index_id(self, name: str) -> Index | None:
        """An index by its name."""
        return next((index for index in self.indexes if index.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Database:
    """A database and its switches."""

    database_id: int
    name: str
    collation: str
    cdc: bool
    snapshot: bool
    read_committed_snapshot: bool


@dataclass(frozen=True)
class SystemView:
    """A view of the schemas sys and INFORMATION_SCHEMA: its columns, and whether each database has one of its own."""

    schema: str
    name: str
    physical: str
    columns: tuple[tuple[str, SqlType, bool], ...]
    per_database: bool

    @property
    def natural_order(self) -> list[str]:
        """The columns by which the rows of the view come if nobody asks for an order."""
        names = [name for name, _, _ in self.columns]
        return [name for name in _NATURAL_ORDER if name in names]
