"""Describes a column of a database's catalog in terms that every connector shares."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.connectors.defaults import Default
from tailrace.connectors.value_type import ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceType:
    """A column's type as its database names it.

    `name` is the short name that expressions over types match, `printed` the name for people and converters, `reported`
    the name in the parameters of `*.propagate.source.type`. `length` and `scale` are those that the reference engine's
    JDBC driver reports; a type without a scale has None. The reference engine masks columns of a character type and no
    others.
    """

    name: str
    printed: str
    reported: str
    length: int
    scale: int | None
    is_character: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInfo:
    """A column of a table.

    `value` is what its type becomes, None for a type without a mapping. `text` is the SQL expression that prints a
    value ({}) for a user-supplied converter. `missing` is that of Column, in the form that conversions
    take. `exact` is what the type becomes in the key of a replica's table where `value` makes one of two values.
    """

    name: str
    type: SourceType
    value: ValueType | None
    required: bool
    default: Default | None = None
    comment: str | None = None
    text: str = "{}"
    missing: str | None = None
    exact: ValueType | None = None
