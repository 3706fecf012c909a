"""Keys of rows as texts: how they are selected, written in conditions, and compared by the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.connectors.base import Key
from tailrace.connectors.sqlserver.catalog import Described
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.connectors.sqlserver.types.values import BINARIES, SqlType

_STYLES = {"date": 23, "time": 121, "datetime": 121, "datetime2": 121, "smalldatetime": 121, "datetimeoffset": 121,
           "real": 3, "float": 3, "money": 2, "smallmoney": 2}  # fmt: skip

_READ_AS_THEY_ARE = ("real", "float", "money", "smallmoney")


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key, its type, and whether it may be null."""

    name: str
    type: SqlType
    is_nullable: bool = False

    @property
    def printed(self) -> str:
        """The expression that gives its text."""
        column = name(self.name)
        if self.type.name in BINARIES:
            return f"CONVERT(varchar(max), CAST({column} AS varbinary(max)), 1)"
        style = _STYLES.get(self.type.name)
        return f"CONVERT(nvarchar(max), {column}{'' if style is None else f', {style}'})"

    def literal(self, value: str) -> str:
        """The value of a text, in the column's type, so that the server compares by its rules."""
        kind = "varbinary(8)" if self.type.name in ("timestamp", "rowversion") else self.type.declared
        if self.type.name in BINARIES:
            return f"CONVERT({kind}, {text(value)}, 1)"
        style = None if self.type.name in _READ_AS_THEY_ARE else _STYLES.get(self.type.name)
        return f"CONVERT({kind}, {text(value)}{'' if style is None else f', {style}'})"


def key_columns(found: Described, names: Sequence[str]) -> tuple[KeyColumn, ...]:
    """These columns of a table, in their order; none if one of them is missing."""
    known = {column.name: column for column in found.columns}
    if not set(names) <= set(known):
        return ()
    return tuple(KeyColumn(each, known[each].type, not known[each].required) for each in names)


def after(key: Sequence[KeyColumn], values: Sequence[str | None]) -> str:
    """That a row comes after these values in the order of the key; nulls come first."""
    alternatives = []
    for place, (column, value) in enumerate(zip(key, values, strict=True)):
        same = [equal(one, given) for one, given in zip(key[:place], values[:place], strict=True)]
        own = f"{name(column.name)} IS NOT NULL" if value is None else f"{name(column.name)} > {column.literal(value)}"
        alternatives.append(" AND ".join([*same, own]))
    return "(" + " OR ".join(f"({each})" for each in alternatives) + ")"


def equal(column: KeyColumn, value: str | None) -> str:
    """That a row has the value in the column."""
    return f"{name(column.name)} IS NULL" if value is None else f"{name(column.name)} = {column.literal(value)}"


def above(key: Sequence[KeyColumn]) -> str:
    """The order of the key."""
    return "ORDER BY " + ", ".join(name(column.name) for column in key)


def any_of(key: Sequence[KeyColumn], keys: Sequence[Key]) -> str:
    """That a row has one of these keys."""
    rows = (" AND ".join(equal(column, value) for column, value in zip(key, values, strict=True)) for values in keys)
    return "(" + " OR ".join(f"({row})" for row in rows) + ")"
