"""PostgreSQL types: from the text the server prints to Connect values, a column at a time.

Both roads bring text in the same session settings (see connect.py), the log by pgoutput and the snapshot by COPY, so
there is one conversion a type. A ValueType says what a column becomes: its Connect schema (required form, no
default), the Arrow type that holds it and the conversion of an Arrow string array. Conversions raise pa.ArrowInvalid
or DecodeError when a value does not fit; who calls them names the column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.postgres import numbers, temporal
from tailrace.connectors.postgres.catalog_types import PgType
from tailrace.errors import DecodeError
from tailrace.events.encode.arrow import literal
from tailrace.events.encode.binary import base64
from tailrace.model.schema import ConnectSchema

Convert = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class ValueType:
    """What a PostgreSQL type becomes. `zero` is the JSON value a function default of a required column reads as."""

    schema: ConnectSchema
    arrow: pa.DataType
    convert: Convert
    zero: object = ""


def _same(text: pa.Array) -> pa.Array:
    return text if text.type == pa.string() else pc.cast(text, pa.string())


def converted(text: pa.Array, kind: ValueType, where: str) -> pa.Array:
    """A column's text as values. Raises DecodeError, naming the place, for text that is not UTF-8 or does not fit."""
    try:
        if kind.arrow == pa.string():
            text.validate(full=True)
        return kind.convert(text)
    except (ValueError, ArithmeticError, DecodeError) as error:  # pa.ArrowInvalid is a ValueError
        raise DecodeError(
            f"a value cannot be read: {error}",
            where=where,
            remedy="exclude the column with column.exclude.list to go on, and report the type and value",
        ) from error


def text_type(name: str | None = None, parameters: tuple[tuple[str, str], ...] = ()) -> ValueType:
    """A type that stays text, under a semantic schema name or none."""
    version = None if name is None else 1
    return ValueType(ConnectSchema("string", name=name, version=version, parameters=parameters), pa.string(), _same)


def _cast(connect: str, arrow: pa.DataType, zero: object) -> ValueType:
    return ValueType(ConnectSchema(connect), arrow, lambda text: pc.cast(text, arrow), zero)


_BOOLEAN = ValueType(ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("t")), False)
_BIT = ValueType(ConnectSchema("boolean"), pa.bool_(), lambda text: pc.equal(text, literal("1")), False)

_PLAIN: dict[str, ValueType] = {
    "bool": _BOOLEAN,
    "int2": _cast("int16", pa.int16(), 0),
    "int4": _cast("int32", pa.int32(), 0),
    "int8": _cast("int64", pa.int64(), 0),
    "oid": _cast("int64", pa.int64(), 0),
    "float4": _cast("float", pa.float32(), 0.0),
    "float8": _cast("double", pa.float64(), 0.0),
    "json": text_type("io.debezium.data.Json"),
    "jsonb": text_type("io.debezium.data.Json"),
    "xml": text_type("io.debezium.data.Xml"),
    "uuid": text_type("io.debezium.data.Uuid"),
    "ltree": text_type("io.debezium.data.Ltree"),
    "tsvector": text_type("io.debezium.data.Tsvector"),
    **{
        name: text_type()
        for name in (
            *("text", "varchar", "bpchar", "char", "name", "citext"),
            *("inet", "cidr", "macaddr", "macaddr8"),
            *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "isbn"),
        )
    },
}


def value_type(pg: PgType, modifier: int, config: Config) -> ValueType | None:
    """What a column of that type becomes, None for a type without a mapping (it is then carried as its text)."""
    if pg.labels:
        return text_type("io.debezium.data.Enum", (("allowed", ",".join(pg.labels)),))
    if pg.name in _PLAIN:
        return _PLAIN[pg.name]
    if pg.name in ("bit", "varbit"):
        return _BIT if modifier == 1 else None
    if pg.name == "bytea":
        return _binary(config.text("binary.handling.mode"))
    if pg.name in ("numeric", "money"):
        return ValueType(*numbers.numeric(pg.name, modifier, config))
    if pg.name in temporal.TYPES:
        return ValueType(*temporal.temporal(pg.name, modifier, config))
    return None


def _binary(mode: str) -> ValueType:
    if mode == "bytes":
        return ValueType(ConnectSchema("bytes"), pa.binary(), numbers.hex_to_bytes)
    if mode == "hex":
        return ValueType(ConnectSchema("string"), pa.string(), lambda text: pc.utf8_slice_codeunits(text, 2))
    if mode == "base64":
        return ValueType(ConnectSchema("string"), pa.string(), lambda text: base64(numbers.hex_to_bytes(text)))
    return ValueType(ConnectSchema("string"), pa.string(), _url_safe)


def _url_safe(text: pa.Array) -> pa.Array:
    encoded = base64(numbers.hex_to_bytes(text))
    return pc.replace_substring(pc.replace_substring(encoded, "+", "-"), "/", "_")
