"""Which columns a mask reaches, and the lengths and scales that are told of types."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.masks import Hash, Mask, Propagate, Stars, Truncate
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.types.masking import altered, size
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tests.unit.postgres.test_values import REQUIRED, numeric, read

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


def under(mask: Mask, pg: PgType, modifier: int = -1, *, faults: bool = False, required: bool = False) -> Any:
    config = resolve({**REQUIRED, "compat.faults": str(faults).lower()})
    kind = value_type(pg, modifier, config)
    assert kind is not None
    return altered(kind, mask, pg, modifier, column="s.t.c", required=required, faults=faults)


def read_text(*texts: str | None) -> Any:
    return pa.array(texts, pa.string())


def parameters(kind: Any) -> dict[str, str]:
    return dict(kind.schema.parameters)


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("name", ["text", "varchar", "bpchar", "name", "char"])
def test_masks_reach_characters(name: str, faults: bool) -> None:
    kind = under(Stars(2), PgType(name, name), faults=faults)
    assert kind.convert(read_text("abc", None)).to_pylist() == ["**", "**"]
    assert parameters(kind) == {"masked": "true"}


@pytest.mark.parametrize("name", ["json", "uuid", "inet", "int4range", "timestamptz"])
def test_masks_reach_all_text_but_not_under_the_references_faults(name: str, caplog: pytest.LogCaptureFixture) -> None:
    text = "2018-06-20 15:13:16+00" if name == "timestamptz" else "abc"
    kind = under(Hash("MD5", "s", False), PgType(name, name))
    with caplog.at_level(logging.WARNING):
        shown = under(Hash("MD5", "s", False), PgType(name, name), faults=True)
    assert "NOT masked" in caplog.text
    (hidden,), (bare,) = (each.convert(read_text(text)).to_pylist() for each in (kind, shown))
    assert len(hidden) == 32
    assert bare.startswith(text[:3])
    assert parameters(kind) == parameters(shown) == {"masked": "true"}


def test_a_number_is_not_masked_and_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        kind = under(Stars(3), PgType("int4", "integer"))
    assert "s.t.c is NOT masked" in caplog.text
    assert read(kind, "17") == [17]


def test_a_hash_is_cut_to_the_columns_length() -> None:
    kind = under(Hash("SHA-256", "s", False), PgType("varchar", "character varying"), 9)
    assert len(read(kind, "abc")[0]) == 5


@pytest.mark.parametrize(
    ("name", "modifier", "text", "value"),
    [
        ("text", -1, "abcdef", "abc"),
        ("varchar", 14, "abcdef", "abc"),
        ("json", -1, '{"a": 1}', '{"a'),
        ("bytea", -1, "\\x0102030405", b"\1\2\3"),
        ("uuid", -1, "a0eebc99", "a0e"),
    ],
)
def test_truncation(name: str, modifier: int, text: str, value: object) -> None:
    kind = under(Truncate(3), PgType(name, name), modifier)
    assert read(kind, text) == [value]
    assert parameters(kind) == {"truncateLength": "3"}


def test_truncation_leaves_what_cannot_be_longer() -> None:
    kind = under(Truncate(10), PgType("varchar", "character varying"), 14)
    assert parameters(kind) == {}
    wide = under(Truncate(3), PgType("numeric", "numeric"), numeric(10, 2))
    assert parameters(wide)["truncateLength"] == "3"
    assert [str(value) for value in read(wide, "12345678.90")] == ["12345678.90"]


@pytest.mark.parametrize(
    ("pg", "modifier", "told"),
    [
        (PgType("varchar", "character varying"), 54, ("VARCHAR", "50", "0")),
        (PgType("numeric", "numeric"), numeric(10, 2), ("NUMERIC", "10", "2")),
        (PgType("numeric", "amount", domain=True), numeric(6, 2), ("AMOUNT", "6", "2")),
        (PgType("_int4", "integer[]", (), PgType("int4", "integer")), -1, ("_INT4", str(UNLIMITED), "0")),
    ],
)
def test_the_source_type_is_told(pg: PgType, modifier: int, told: tuple[str, str, str]) -> None:
    found = parameters(under(Propagate(), pg, modifier))
    prefix = "__debezium.source.column."
    assert tuple(found[prefix + key] for key in ("type", "length", "scale")) == told
    assert found[prefix + "name"] == "c"
