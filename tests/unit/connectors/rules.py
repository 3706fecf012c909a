"""Configurations and columns of no database in particular."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.faults import NO_FAULTS
from tailrace.connectors.column_info import ColumnInfo, SourceType
from tailrace.connectors.defaults import Default
from tailrace.connectors.value_type import ValueType, cast_type, text_type

UNLIMITED = 2**31 - 1
INTEGER = cast_type("int32", pa.int32(), 0)
TEXT = text_type(zero="")

_VALUES: dict[str, Any] = {
    "binary.handling.mode": "bytes",
    "compat.faults": NO_FAULTS,
    "converters": (),
    "database.dbname": "shop",
    "decimal.handling.mode": "precise",
    "event.converting.failure.handling.mode": "warn",
    "include.schema.comments": False,
    "table.ignore.builtin": True,
    "value.loss.handling.mode": "event",
}
_LISTS = ("schema", "table", "column")


def config(**properties: object) -> Config:
    """A configuration. A property's dots are written as two underscores, a list of expressions as one text."""
    patterns = {f"{kind}.{side}.list": () for kind in _LISTS for side in ("include", "exclude")}
    patterns |= {"column.propagate.source.type": (), "datatype.propagate.source.type": ()}
    patterns |= {"column.out.of.range.null": (), "column.out.of.range.text": ()}
    patterns |= {"message.key.columns": (), "snapshot.include.collection.list": (), "signal.data.collection": ()}
    given = {name.replace("__", "."): value for name, value in properties.items()}
    masks = {name for name in given if name.startswith("column.")}
    expressions = {
        name: (re.compile(str(value)),) if name in patterns or name in masks else value for name, value in given.items()
    }
    return Config({**_VALUES, **patterns, **expressions}, given={name: str(value) for name, value in given.items()})


def column(
    name: str,
    value: ValueType | None = TEXT,
    *,
    type_name: str = "varchar",
    length: int = UNLIMITED,
    is_character: bool = True,
    required: bool = False,
    default: Default | None = None,
    comment: str | None = None,
) -> ColumnInfo:
    """A column of a table, by default a text that may be null."""
    source = SourceType(
        name=type_name,
        printed=f"the type {type_name}",
        reported=type_name,
        length=length,
        scale=0,
        is_character=is_character,
    )
    return ColumnInfo(name=name, type=source, value=value, required=required, default=default, comment=comment)
