"""Array columns: elements of every kind, what has no mapping, and what the reference engine makes of some."""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.errors import DecodeError
from tailrace.model.text.json import encode
from tests.unit.postgres.test_values import REQUIRED, STRING, kind, numeric, read

UNKNOWN = {"include.unknown.datatypes": "true"}
FAULTS = {"compat.faults": "true"}


def array(
    name: str,
    modifier: int = -1,
    properties: dict[str, str] | None = None,
    labels: tuple[str, ...] = (),
    domain: bool = False,
) -> Any:
    element = PgType(name, name, labels, domain=domain)
    return value_type(
        PgType(f"_{name}", f"{name}[]", (), element), modifier, resolve({**REQUIRED, **(properties or {})})
    )


@pytest.mark.parametrize(
    ("name", "modifier", "text", "value"),
    [
        ("int4", -1, "{1,NULL,-3}", [1, None, -3]),
        ("int4", -1, "[0:1]={1,2}", [1, 2]),
        ("int4", -1, "{}", []),
        ("bool", -1, "{t,f,NULL}", [True, False, None]),
        ("text", -1, r'{a,"b c",NULL,"NULL","q\"u\\",""}', ["a", "b c", None, "NULL", 'q"u\\', ""]),
        ("bpchar", 7, '{"a  "}', ["a  "]),
        ("bytea", -1, r'{"\\x01ff","\\x"}', [b"\x01\xff", b""]),
        ("numeric", numeric(10, 2), "{1.10,NULL}", [Decimal("1.10"), None]),
        ("numeric", -1, "{1.10,NULL}", [{"scale": 1, "value": b"\x0b"}, None]),
        ("date", -1, '{2018-06-20,infinity,"0044-03-15 BC"}', [17702, -2147472692, -735160]),
        ("time", -1, "{15:13:16.945104}", [54796945104]),
        ("timetz", -1, "{15:13:16.945+02}", ["13:13:16.945Z"]),
        ("timestamp", 3, '{"2018-06-20 15:13:16.945"}', [1529507596945]),
        ("bit", 3, "{101,000,NULL}", [b"\x05", b"", None]),
        ("bit", 1, "{1,0}", [True, False]),
        ("int4range", -1, '{"[1,5)",empty}', ["[1,5)", "empty"]),
        ("hstore", -1, r'{"\"a\"=>\"1\"",NULL}', ['{"a":"1"}', None]),
        ("vector", -1, '{"[1,2.5]",NULL}', [[1.0, 2.5], None]),
        ("sparsevec", -1, '{"{1:1.5}/3"}', [{"dimensions": 3, "vector": [(1, 1.5)]}]),
    ],
)
def test_elements(name: str, modifier: int, text: str, value: list[Any]) -> None:
    assert read(array(name, modifier), text, "{}", None, text) == [value, [], None, value]


REQUIRED_THERE: tuple[tuple[str, tuple[str, ...], str, list[Any]], ...] = (
    ("mood", ("sad", "ok"), "{sad,NULL}", ["sad", None]),
    ("tsvector", (), "{'a',NULL}", ["'a'", None]),
    ("vector", (), '{"[1,2]",NULL}', [[1.0, 2.0], None]),
    ("pair", (), '{"(1,2)",NULL}', [b"(1,2)", None]),
)


@pytest.mark.parametrize(("name", "labels", "text", "value"), REQUIRED_THERE)
def test_null_elements_are_null(name: str, labels: tuple[str, ...], text: str, value: list[Any]) -> None:
    of = array(name, -1, UNKNOWN, labels)
    assert of.schema.items.optional
    assert read(of, text, "{}", None) == [value, [], None]
    written = json.loads(encode(pa.array([value], of.arrow), of.schema)[0].as_py())
    assert written[-1] is None


@pytest.mark.parametrize(("name", "labels", "text", "value"), REQUIRED_THERE)
def test_an_array_with_null_elements_is_null_in_the_reference(
    name: str, labels: tuple[str, ...], text: str, value: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    properties = {**UNKNOWN, **FAULTS}
    of = array(name, -1, properties, labels)
    assert not of.schema.items.optional
    whole = text.replace(",NULL", "")
    with caplog.at_level(logging.WARNING):
        assert read(of, whole, text, "{}", None, whole) == [value[:1], None, [], None, value[:1]]
    assert "1 arrays with a null element" in caplog.text
    with pytest.raises(DecodeError, match="null element"):
        read(array(name, -1, {**properties, "event.converting.failure.handling.mode": "fail"}, labels), text)


def test_elements_that_are_optional_there_as_well() -> None:
    for name in ("int4", "citext", "ltree"):
        assert array(name, -1, FAULTS).schema.items.optional
        assert array(name).schema.items.optional


@pytest.mark.parametrize("name", ["money", "name", "interval", "varbit", "xml", "point", "refcursor"])
def test_arrays_without_a_mapping(name: str) -> None:
    assert array(name) is None
    assert read(array(name, -1, UNKNOWN), '{x,NULL,"y z"}') == [[b"x", None, b"y z"]]


def test_boxes_are_separated_by_semicolons() -> None:
    of = array("box", -1, UNKNOWN)
    assert read(of, "{(3,4),(1,2);(7,8),(5,6)}") == [[b"(3,4),(1,2)", b"(7,8),(5,6)"]]


def test_inner_arrays(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(array("int4"), "{{1,2},{3,4}}", "{5}") == [[None, None], [5]]
    assert "2 inner arrays" in caplog.text
    with pytest.raises(DecodeError, match="more than one dimension"):
        read(array("int4", -1, {"event.converting.failure.handling.mode": "fail"}), "{{1,2},{3,4}}")


@pytest.mark.parametrize(
    ("name", "modifier", "text", "value"),
    [
        ("time", -1, "{15:13:16.945104,15:13:16}", [54796945000, 54796000000]),
        ("timetz", -1, "{15:13:16.945+02}", ["13:13:16Z"]),
        ("bit", 3, "{101}", None),
    ],
)
def test_faults_of_the_reference(name: str, modifier: int, text: str, value: Any) -> None:
    assert read(array(name, modifier, FAULTS), text) == [value]


def test_an_array_may_have_a_number_that_is_none() -> None:
    assert read(array("numeric", -1, STRING), "{1.5,NaN}") == [["1.5", "NAN"]]


def test_the_arrays_of_the_catalog_are_types_of_their_own() -> None:
    for name, item in (("oidvector", "int64"), ("int2vector", "int16")):
        of = kind(name)
        assert (of.schema.type, of.schema.items.type, of.schema.items.optional) == ("array", item, False)
        assert read(of, "1 22", "", "3", None) == [[1, 22], [], [3], None]


def test_arrays_of_domains_are_left_out_there() -> None:
    assert array("int4", -1, FAULTS, domain=True) is None
    assert array("bit", 3, FAULTS, domain=True) is None
    assert not array("text", -1, {**FAULTS, **UNKNOWN}, domain=True).placeholder
    assert array("text", -1, UNKNOWN, domain=True).placeholder
    assert read(array("int4", domain=True), "{1}") == [[1]]
