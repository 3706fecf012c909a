"""Masks on PostgreSQL columns: which types they reach, and the lengths that Debezium's JDBC driver gives them."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa

from tailrace.config.masks import Mask, Propagate, Stars, Truncate
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import ValueType
from tailrace.errors import ConfigError
from tailrace.events.masks import cut_bytes, masked

log = logging.getLogger(__name__)

_UNLIMITED = 2**31 - 1
_CHARACTERS = ("bpchar", "varchar", "text", "name", "char")
_FIXED = {"bool": 1, "char": 1, "int2": 5, "int4": 10, "oid": 10, "int8": 19, "float4": 8, "float8": 17}
_FRACTIONS = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
_ANY_NUMERIC = 131_089


def size(name: str, modifier: int) -> tuple[int, int]:
    """Length and scale of a type as pgjdbc reports them (TypeInfoCache); the largest int for no limit."""
    if name in _FIXED:
        return _FIXED[name], {"float4": 8, "float8": 17}.get(name, 0)
    if name == "numeric":
        packed = modifier - 4
        return (_ANY_NUMERIC, 0) if modifier < 0 else ((packed >> 16) & 0xFFFF, packed & 0xFFFF)
    if name in ("bpchar", "varchar"):
        return (_UNLIMITED if modifier < 0 else modifier - 4), 0
    if name in ("bit", "varbit"):
        return (_UNLIMITED if modifier < 0 else modifier), 0
    if name in _FRACTIONS:
        digits = 6 if modifier < 0 else modifier
        # The point takes a place of its own; one digit is shown as two.
        return _FRACTIONS[name] + (digits + 1 if digits > 1 else 3 * digits), digits
    if name == "interval":
        return 49, 6 if modifier < 0 else modifier & 0xFFFF
    return (13 if name == "date" else _UNLIMITED), 0


def check_key(mask: Mask, column: str) -> None:
    """Keys are masked as values are, so that they have to stay apart. Raises ConfigError for asterisks."""
    if isinstance(mask, Stars):
        raise ConfigError(
            "asterisks would make all keys of the table the same",
            where=column,
            remedy="hash the column (column.mask.hash.v2.<alg>.with.salt.<salt>), leave it out of the expression, or "
            "name another key in message.key.columns",
        )
    if isinstance(mask, Truncate):
        log.warning("%s is part of a key: keys that have the same first %d characters are one", column, mask.length)


def altered(
    kind: ValueType,
    mask: Mask,
    pg: PgType,
    modifier: int,
    *,
    column: str,
    required: bool,
    faults: bool,
    comment: str | None = None,
) -> ValueType:
    """The column's type with a mask put on it: conversion and parameters of its schema.

    Debezium masks character types alone and lets JSON, UUIDs and the like through; here all that becomes a text is
    masked, unless `faults` asks for the reference's way.
    """
    length, scale = size(pg.name, modifier)
    if isinstance(mask, Propagate):
        return _with_parameters(kind, *_source_type(pg, length, scale, column.rpartition(".")[2], comment))
    if isinstance(mask, Truncate):
        return _truncated(kind, mask) if length > mask.length else kind
    kind = _with_parameters(kind, ("masked", "true"))
    is_character = pg.element is None and (pg.name in _CHARACTERS or bool(pg.labels))
    if is_character or (not faults and kind.arrow == pa.string()):
        convert = kind.convert
        return replace(kind, convert=lambda text: masked(convert(text), mask, required, length), binary=None)
    log.warning("%s is NOT masked: a mask does not reach type %s; use column.exclude.list", column, pg.printed)
    return kind


def _truncated(kind: ValueType, mask: Truncate) -> ValueType:
    convert = kind.convert
    marked = replace(_with_parameters(kind, ("truncateLength", str(mask.length))), binary=None)
    if kind.arrow == pa.string():
        return replace(marked, convert=lambda text: masked(convert(text), mask, False, mask.length))
    if kind.schema.type == "bytes" and kind.schema.name is None:
        return replace(marked, convert=lambda text: cut_bytes(convert(text), mask.length))
    return marked


def _source_type(pg: PgType, length: int, scale: int, column: str, comment: str | None) -> list[tuple[str, str]]:
    name = pg.printed if pg.domain else pg.name
    said = {"comment": comment} if comment else {}
    values = {"type": name.upper(), "length": length, "scale": scale, **said, "name": column}
    return [(f"__debezium.source.column.{key}", str(value)) for key, value in values.items()]


def _with_parameters(kind: ValueType, *parameters: tuple[str, str]) -> ValueType:
    return replace(kind, schema=kind.schema.with_(parameters=(*kind.schema.parameters, *parameters)))
