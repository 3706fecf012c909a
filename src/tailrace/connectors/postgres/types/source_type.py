"""PostgreSQL types as the reference engine's JDBC driver (pgjdbc) reports them: length, scale, character types."""

from __future__ import annotations

from tailrace.connectors.column_info import SourceType
from tailrace.connectors.postgres.types.pg_type import PgType

_UNLIMITED = 2**31 - 1
_CHARACTERS = ("bpchar", "varchar", "text", "name", "char")
_FIXED = {"bool": 1, "char": 1, "int2": 5, "int4": 10, "oid": 10, "int8": 19, "float4": 8, "float8": 17}
_FRACTIONS = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
_ANY_NUMERIC = 131_089


def source_type(pg: PgType, modifier: int) -> SourceType:
    """A column's type by its type modifier."""
    length, scale = size(pg.name, modifier)
    return SourceType(
        name=pg.name,
        printed=pg.printed,
        reported=pg.printed if pg.domain else pg.name,
        length=length,
        scale=scale,
        is_character=pg.element is None and (pg.name in _CHARACTERS or bool(pg.labels)),
    )


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
