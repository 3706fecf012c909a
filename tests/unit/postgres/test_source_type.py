"""The lengths, scales and names that are reported of PostgreSQL's types."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.source_type import driver_type, size, source_type
from tests.unit.postgres.test_values import numeric

UNLIMITED = 2**31 - 1


@pytest.mark.parametrize(
    ("name", "modifier", "length", "scale"),
    [
        ("bool", -1, 1, 0),
        ("int2", -1, 5, 0),
        ("int4", -1, 10, 0),
        ("int8", -1, 19, 0),
        ("float4", -1, 8, 8),
        ("float8", -1, 17, 17),
        ("numeric", numeric(10, 2), 10, 2),
        ("numeric", -1, 131089, 0),
        ("varchar", 54, 50, 0),
        ("bpchar", 7, 3, 0),
        ("text", -1, UNLIMITED, 0),
        ("varchar", -1, UNLIMITED, 0),
        ("bit", 9, 9, 0),
        ("varbit", -1, UNLIMITED, 0),
        ("date", -1, 13, 0),
        ("time", -1, 15, 6),
        ("time", 0, 8, 0),
        ("time", 1, 11, 1),
        ("timetz", -1, 21, 6),
        ("timestamp", -1, 29, 6),
        ("timestamp", 3, 26, 3),
        ("timestamptz", -1, 35, 6),
        ("interval", -1, 49, 6),
        ("json", -1, UNLIMITED, 0),
    ],
)
def test_sizes_are_the_drivers(name: str, modifier: int, length: int, scale: int) -> None:
    assert size(name, modifier) == (length, scale)


@pytest.mark.parametrize(
    ("pg", "modifier", "reported"),
    [
        (PgType("varchar", "character varying"), 54, ("varchar", 50, 0)),
        (PgType("numeric", "numeric"), numeric(10, 2), ("numeric", 10, 2)),
        (PgType("numeric", "amount", domain=True, own="amount"), numeric(6, 2), ("amount", 6, 2)),
        (PgType("_int4", "integer[]", (), PgType("int4", "integer")), -1, ("_int4", 10, 0)),
        (PgType("_a", "a[]", (), PgType("int4", "integer", domain=True, own="a")), -1, ("_a", UNLIMITED, 0)),
    ],
)
def test_what_is_reported(pg: PgType, modifier: int, reported: tuple[str, int, int]) -> None:
    found = source_type(pg, modifier)
    assert (found.reported, found.length, found.scale) == reported
    assert found.name == reported[0]


@pytest.mark.parametrize(
    ("pg", "default", "reported"),
    [
        (PgType("int4", "integer"), "nextval('s'::regclass)", ("serial", 10, 0)),
        (PgType("int8", "bigint"), "1", ("int8", 19, 0)),
        (PgType("numeric", "numeric"), None, ("numeric", 0, None)),
        (PgType("mood", "o.mood", ("ok",), qualified='"o"."mood"'), None, ('"o"."mood"', UNLIMITED, 0)),
    ],
)
def test_what_the_driver_reports(pg: PgType, default: str | None, reported: tuple[str, int, int | None]) -> None:
    found = driver_type(pg, -1, default)
    assert (found.name, found.reported, found.length, found.scale) == (reported[0], *reported)


@pytest.mark.parametrize("name", ["text", "varchar", "bpchar", "name", "char"])
def test_character_types(name: str) -> None:
    assert source_type(PgType(name, name), -1).is_character
    assert not source_type(PgType(f"_{name}", f"{name}[]", (), PgType(name, name)), -1).is_character


@pytest.mark.parametrize("name", ["json", "uuid", "inet", "int4range", "timestamptz", "int4"])
def test_other_types_are_no_character_types(name: str) -> None:
    assert not source_type(PgType(name, name), -1).is_character


def test_an_enum_is_a_character_type() -> None:
    assert source_type(PgType("mood", "mood", ("sad", "ok")), -1).is_character
