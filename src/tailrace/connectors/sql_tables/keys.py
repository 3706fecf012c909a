"""Row keys as texts: how SQL selects them, compares them and writes them in conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.connectors.snapshots import PagingKey
from tailrace.connectors.sql_tables.dialect import SqlDialect
from tailrace.connectors.sql_tables.tables import Described


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key, its type (a CatalogType), and whether it may be null."""

    name: str
    type: Any
    is_nullable: bool = False


def key_columns(described: Described, names: Sequence[str]) -> tuple[KeyColumn, ...]:
    """These columns of a table, in their order; none if one of them is missing."""
    by_name = {column.name: column for column in described.columns}
    if not set(names) <= set(by_name):
        return ()
    return tuple(KeyColumn(each, by_name[each].type, not by_name[each].required) for each in names)


def printed(dialect: SqlDialect, key: Sequence[KeyColumn]) -> str:
    """The key of a row as texts k0, k1, ..."""
    return ", ".join(
        f"{dialect.key_text(dialect.name(column.name), column.type)} AS k{place}" for place, column in enumerate(key)
    )


def literal(dialect: SqlDialect, column: KeyColumn, value: str) -> str:
    """The value of a text, in the column's type."""
    return dialect.literal(column.type, value)


def after(dialect: SqlDialect, key: Sequence[KeyColumn], values: PagingKey) -> str:
    """That a row comes after these values in the order of the key: true or false, never unknown."""
    alternatives = []
    for place, (column, value) in enumerate(zip(key, values, strict=True)):
        same = [
            _equal(dialect, key_column, given) for key_column, given in zip(key[:place], values[:place], strict=True)
        ]
        own = _above(dialect, column, value)
        if own is not None:
            alternatives.append(" AND ".join([*same, own]))
    return "(" + " OR ".join(f"({each})" for each in alternatives or ["1 = 0"]) + ")"


def _above(dialect: SqlDialect, column: KeyColumn, value: str | None) -> str | None:
    """That a row's value comes after another one; None if nothing does."""
    name = dialect.name(column.name)
    if value is None:
        return f"{name} IS NOT NULL" if dialect.nulls_first else None
    above = f"{name} > {literal(dialect, column, value)}"
    if not column.is_nullable:
        return above
    return f"({above} AND {name} IS NOT NULL)" if dialect.nulls_first else f"({above} OR {name} IS NULL)"


def _equal(dialect: SqlDialect, column: KeyColumn, value: str | None) -> str:
    name = dialect.name(column.name)
    if value is None:
        return f"{name} IS NULL"
    same = f"{name} = {literal(dialect, column, value)}"
    return f"({same} AND {name} IS NOT NULL)" if column.is_nullable else same


def order(dialect: SqlDialect, key: Sequence[KeyColumn], direction: str = "") -> str:
    """The order of the key, or the opposite one."""
    return ", ".join(f"{dialect.name(column.name)}{direction}" for column in key)
