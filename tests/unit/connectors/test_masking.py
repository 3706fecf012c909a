"""Which columns a mask applies to, and how it changes their schemas."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.masks import Hash, Mask, Propagate, Stars, Truncate
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.masking import altered, check_key
from tailrace.connectors.types.binary import binary_type
from tailrace.connectors.value_type import text_type
from tailrace.errors import ConfigError
from tests.unit.connectors.rules import INTEGER, TEXT, UNLIMITED, column, config

JSON = column("c", text_type("io.debezium.data.Json"), type_name="json", is_character=False)
NUMBER = column("c", INTEGER, type_name="integer", length=10, is_character=False)
BYTES = column("c", binary_type(config()), type_name="varbinary", is_character=False)


def under(mask: Mask, of: ColumnInfo) -> Any:
    assert of.value is not None
    return altered(of.value, mask, of, "s.t.c")


def values(kind: Any, *texts: str | None) -> Any:
    return kind.convert(pa.array(texts, pa.string())).to_pylist()


def parameters(kind: Any) -> dict[str, str]:
    return dict(kind.schema.parameters)


def test_masks_reach_characters() -> None:
    kind = under(Stars(2), column("c"))
    assert values(kind, "abc", None) == ["**", "**"]
    assert parameters(kind) == {"masked": "true"}


@pytest.mark.parametrize("mask", [Truncate(3), Hash("MD5", "s", False)])
def test_what_replaces_null_in_a_required_column_is_masked(mask: Mask) -> None:
    kind = text_type()
    shown = replace(kind, schema=kind.schema.with_(default="secret"))
    columns = (column("c", required=required) for required in (True, False))
    found, left = (altered(shown, mask, each, "s.t.c") for each in columns)
    assert values(found, None) == values(found, "secret")
    assert values(left, None) == [None]


def test_masks_reach_all_text() -> None:
    kind = under(Hash("MD5", "s", False), JSON)
    (hidden,) = values(kind, "abc")
    assert len(hidden) == 32
    assert parameters(kind) == {"masked": "true"}


def test_a_number_is_not_masked_and_that_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        kind = under(Stars(3), NUMBER)
    assert "s.t.c is NOT masked" in caplog.text
    assert values(kind, "17") == [17]


def test_a_hash_is_cut_to_the_columns_length() -> None:
    assert [len(value) for value in values(under(Hash("SHA-256", "s", False), column("c", length=5)), "abc")] == [5]


@pytest.mark.parametrize(("required", "hashed"), [(False, [None]), (True, ["03c7c0ace395d80182db07ae2c30f034"])])
def test_the_hash_of_null(required: bool, hashed: list[str | None]) -> None:
    assert values(under(Hash("MD5", "s", False), column("c", required=required)), None) == hashed


@pytest.mark.parametrize(("of", "cut"), [(column("c"), "abc"), (column("c", length=10), "abc"), (JSON, "abc")])
def test_truncation(of: ColumnInfo, cut: str) -> None:
    kind = under(Truncate(3), of)
    assert values(kind, "abcdef") == [cut]
    assert parameters(kind) == {"truncateLength": "3"}


def test_truncation_of_bytes() -> None:
    kind = under(Truncate(3), BYTES)
    assert kind.convert(pa.array([b"\1\2\3\4\5", None], pa.binary())).to_pylist() == [b"\1\2\3", None]


def test_truncation_leaves_what_cannot_be_longer() -> None:
    assert parameters(under(Truncate(10), column("c", length=10))) == {}
    wide = under(Truncate(3), NUMBER)
    assert parameters(wide)["truncateLength"] == "3"
    assert values(wide, "12345678") == [12345678]


def test_the_source_type_is_propagated() -> None:
    of = column("c", type_name="varchar", length=50, comment="what it is")
    assert parameters(under(Propagate(), of)) == {
        "__debezium.source.column.type": "VARCHAR",
        "__debezium.source.column.length": "50",
        "__debezium.source.column.scale": "0",
        "__debezium.source.column.comment": "what it is",
        "__debezium.source.column.name": "c",
    }
    without = parameters(under(Propagate(), column("c")))
    assert without["__debezium.source.column.length"] == str(UNLIMITED)
    assert "__debezium.source.column.comment" not in without


def test_a_masked_column_is_not_read_in_binary_form() -> None:
    assert under(Stars(1), column("c", TEXT)).binary is None


def test_keys_stay_distinct(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r"s\.t\.c: asterisks would make all keys of the table the same"):
        check_key(Stars(1), "s.t.c")
    with caplog.at_level(logging.WARNING):
        check_key(Truncate(3), "s.t.c")
    assert "keys that have the same first 3 characters are one" in caplog.text
