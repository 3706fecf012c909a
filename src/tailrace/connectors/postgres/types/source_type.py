"""PostgreSQL types as the reference engine's JDBC driver (pgjdbc) reports them: length, scale, character types."""

from __future__ import annotations

from dataclasses import replace

from tailrace.connectors.column_info import SourceType
from tailrace.connectors.postgres.types.pg_type import PgType

_UNLIMITED = 2**31 - 1
_CHARACTERS = ("bpchar", "varchar", "text", "name", "char")
_FIXED = {"bool": 1, "char": 1, "int2": 5, "int4": 10, "oid": 10, "int8": 19, "float4": 8, "float8": 17}
_FRACTIONS = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
_ANY_NUMERIC = 131_089


_SERIAL = {"int2": "smallserial", "int4": "serial", "int8": "bigserial"}


def source_type(pg: PgType, modifier: int) -> SourceType:
    """A column's type as the log describes it, by its type modifier.

    An array has its element's length and scale; the driver knows no limit of a domain's.
    """
    element = pg.element or pg
    length, scale = (_UNLIMITED, 0) if pg.element and element.domain else size(element.name, modifier)
    return SourceType(
        name=pg.own or pg.name,
        printed=pg.printed,
        reported=pg.own or pg.name,
        length=length,
        scale=scale,
        is_character=pg.element is None and (pg.name in _CHARACTERS or bool(pg.labels)),
    )


def driver_type(pg: PgType, modifier: int, default: str | None) -> SourceType:
    """A column's type as the driver describes it, which the reference engine asks when it reads a table."""
    kind = source_type(pg, modifier)
    name = pg.qualified or kind.name
    if default is not None and "nextval(" in default:
        name = _SERIAL.get(kind.name, name)
    if kind.name == "numeric" and modifier < 0:
        return replace(kind, name=name, reported=name, length=0, scale=None)
    return replace(kind, name=name, reported=name)


def size(name: str, modifier: int) -> tuple[int, int]:
    """Length and scale of a type (pgjdbc, TypeInfoCache); the largest int for no limit."""
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
