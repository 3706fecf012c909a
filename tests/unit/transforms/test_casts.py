"""Cast of Kafka Connect: values and defaults as other primitive types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tailrace.config.faults import ALL_FAULTS
from tailrace.errors import ConfigError, TransformError
from tailrace.events.records import RecordPart
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.binary import shortest
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import applied, applied_to, properties, rows

LOGICAL = "org.apache.kafka.connect.data."
DAY = 86_400_000
FIELDS = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float": pa.float32()}
ARROW = {**FIELDS, "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "bytes": pa.binary()}
OTHERS = {"replace.null.with.default": "false"}


def part(kind: str, *values: Any, arrow: pa.DataType | None = None, **schema: Any) -> RecordPart:
    """A field of one type."""
    return RecordPart(ConnectSchema(kind, **schema), pa.array(values, arrow or ARROW[kind]))


def decimals(scale: int, *values: str) -> RecordPart:
    """Decimals of up to 38 digits."""
    found = [Decimal(value) for value in values]
    schema = ConnectSchema("bytes", name=LOGICAL + "Decimal", version=1, parameters=(("scale", str(scale)),))
    return RecordPart(schema, pa.array(found, pa.decimal128(38, scale)))


def cast(field: RecordPart, kind: str, **settings: str) -> tuple[ConnectSchema, list[Any]]:
    """A field's schema and values after a cast."""
    made = applied("Cast$Value", {"spec": f"f:{kind}", **settings}, f=field)
    return made.field("f").schema, made.field("f").values.to_pylist()


@pytest.mark.parametrize(
    ("field", "kind", "expected"),
    [
        (part("int32", 42), "int8", [42]),
        (part("int32", 200, -129), "int8", [-56, 127]),
        (part("int64", 2**40 + 5), "int16", [5]),
        (part("int16", 16), "int32", [16]),
        (part("int32", 42), "float32", [42.0]),
        (part("int32", 42, 0), "boolean", [True, False]),
        (part("boolean", True, False), "int8", [1, 0]),
        (part("boolean", True, False), "float64", [1.0, 0.0]),
        (part("boolean", True, False), "string", ["true", "false"]),
        (part("double", 3.9, -3.9, 1e30, float("nan")), "int32", [3, -3, 2**31 - 1, 0]),
        (part("double", 1e30, -1e30, 2.0**63), "int64", [2**63 - 1, -(2**63), 2**63 - 1]),
        (part("double", 1e30, 300.0), "int8", [-1, 44]),
        (part("double", -64.0, 0.5, float("nan")), "boolean", [True, False, False]),
        (part("double", 1e300), "float32", [float("inf")]),
        (part("double", 1.0, 1e10, float("inf")), "string", ["1.0", "1.0E10", "Infinity"]),
        (part("float", 32.5), "float64", [32.5]),
        (part("int64", -7), "string", ["-7"]),
        (part("string", "42", "+7", "-0008", "-0"), "int32", [42, 7, -8, 0]),
        (
            part("string", " 1.5 ", "1e400", "-Infinity", "2f", ".5"),
            "float64",
            [1.5, float("inf"), -float("inf"), 2, 0.5],
        ),
        (part("string", "TRUE", "yes"), "boolean", [True, False]),
        (part("bytes", bytes.fromhex("fedcba9876543210")), "string", ["/ty6mHZUMhA="]),
        (decimals(0, "42"), "string", ["42"]),
        (decimals(8, "0.00000012", "1.5"), "string", ["1.2E-7", "1.50000000"]),
        (decimals(1, "2147483648.9", "-1.9"), "int32", [-(2**31), -1]),
        (decimals(0, str(2**64 + 3)), "int64", [3]),
        (decimals(2, "0.99", "1.00"), "boolean", [False, True]),
        (decimals(2, "0.10"), "float64", [0.1]),
    ],
)
def test_values_are_cast_as_java_does(field: RecordPart, kind: str, expected: list[Any]) -> None:
    assert cast(field, kind)[1] == expected


def test_decimals_of_more_digits_than_an_arrow_decimal_has() -> None:
    number = 10**80 + 7
    schema = ConnectSchema("bytes", name=LOGICAL + "Decimal", parameters=(("scale", "0"),))
    wide = RecordPart(schema, pa.array([number.to_bytes(40, "big"), None], pa.binary()))
    assert cast(wide, "string")[1] == [str(number), None]
    low = number % 2**64
    assert cast(wide, "int64")[1] == [low - 2**64 if low >= 2**63 else low, None]
    assert cast(wide, "float64")[1] == [1e80, None]


@pytest.mark.parametrize(
    ("kind", "name", "value", "number", "text"),
    [
        ("int32", "Date", 1, 1, "1970-01-02"),
        ("int32", "Date", -1, -1, "1969-12-31"),
        ("int32", "Time", 3_600_001, 3_600_001, "01:00:00.001Z"),
        ("int64", "Timestamp", DAY + 1, DAY + 1, "1970-01-02T00:00:00.001Z"),
        ("int64", "Timestamp", 2 * DAY, 2 * DAY, "1970-01-03"),
        ("int64", "Timestamp", -1, -1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_numbers_or_iso_8601(kind: str, name: str, value: int, number: int, text: str) -> None:
    field = part(kind, value, None, name=LOGICAL + name, version=1, optional=True)
    assert cast(field, "int64") == (ConnectSchema("int64", optional=True), [number, None])
    assert cast(field, "string") == (ConnectSchema("string", optional=True), [text, None])


def test_the_reference_leaves_out_dates_before_its_second_day() -> None:
    stamps = part("int64", -1, 5, DAY, DAY + 1, name=LOGICAL + "Timestamp")
    found = applied_to(stamps, "Cast$Value", {"spec": "string"}, faults=ALL_FAULTS).values.to_pylist()
    assert found == ["23:59:59.999Z", "00:00:00.005Z", "1970-01-02", "1970-01-02T00:00:00.001Z"]
    days = applied_to(part("int32", -1, 1, name=LOGICAL + "Date"), "Cast$Value", {"spec": "string"}, faults=ALL_FAULTS)
    assert days.values.to_pylist() == ["00:00:00.000Z", "1970-01-02"]


def test_years_before_christ_are_years_of_the_era() -> None:
    assert cast(part("int32", -735_160, name=LOGICAL + "Date", version=1), "string")[1] == ["0044-03-15"]


def test_a_decimal_of_thousands_of_digits_becomes_text() -> None:
    """Python turns no integer of more than 4300 digits into text."""
    schema: dict[str, Any] = {"name": LOGICAL + "Decimal", "version": 1, "parameters": (("scale", "2"),)}
    field = RecordPart(ConnectSchema("bytes", **schema), pa.array([shortest(10**5000 + 25)], pa.binary()))
    assert cast(field, "string")[1] == ["1" + 4997 * "0" + "0.25"]


def test_times_of_debezium_are_plain_numbers() -> None:
    assert cast(part("int32", 3, name="io.debezium.time.Date", version=1), "string")[1] == ["3"]


@pytest.mark.parametrize(
    ("field", "kind", "default"),
    [
        (part("int32", 1, default=10, optional=True), "string", "10"),
        (part("double", 1.0, default=-1.125), "boolean", True),
        (part("double", 1.0, default=0.1), "float32", 0.1),
        (part("float", 1.0, default=-42.125), "int32", -42),
        (part("string", "1", default="7"), "int64", 7),
        (part("bytes", b"a", default="YQ=="), "string", "YQ=="),
        (part("int32", 1, name=LOGICAL + "Date", default=1), "string", "1970-01-02"),
    ],
)
def test_defaults_are_cast(field: RecordPart, kind: str, default: Any) -> None:
    schema = cast(field, kind)[0]
    assert (schema.default, schema.optional) == (default, field.schema.optional)


def test_a_decimal_default_is_cast() -> None:
    of = decimals(2, "1.00")
    field = RecordPart(of.schema.with_(default="AN4="), of.column)
    assert cast(field, "string")[0].default == "2.22"
    assert cast(field, "int32")[0].default == 2


@pytest.mark.parametrize(("settings", "expected"), [({}, "10"), (OTHERS, None)])
def test_null_with_a_default(settings: dict[str, str], expected: str | None) -> None:
    field = part("int32", None, default=10, optional=True)
    assert cast(field, "string", **settings)[1] == [expected]


def test_other_fields_and_null_stay() -> None:
    made = applied("Cast$Value", {"spec": "f:int8, gone:string"}, f=part("int32", 1), g=part("int32", 2, default=3))
    assert [name for name, _ in made.fields()] == ["f", "g"]
    assert made.field("g").schema == ConnectSchema("int32", default=3)
    before = RecordPart(ConnectSchema("struct", optional=True), pa.nulls(1, pa.struct([])))
    assert cast(before, "string") == (ConnectSchema("string", optional=True), [None])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("other", ConnectSchema("int32", name="other", version=2, doc="d", default=-42)), (LOGICAL + "Timestamp", None)],
)
def test_a_whole_value_keeps_its_name_unless_that_says_its_type(name: str, expected: ConnectSchema | None) -> None:
    default = None if expected is None else -42.125
    field = part("float" if expected else "int64", 42, name=name, version=2, doc="d", default=default)
    made = applied_to(field, "Cast$Value", {"spec": "int32"})
    assert (made.schema, made.values.to_pylist()) == (expected or ConnectSchema("int32"), [42])


def test_a_whole_key_is_cast() -> None:
    of = table()
    given = {
        **properties("Cast$Key"),
        "transforms": "x,t",
        "transforms.x.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.x.field": "id",
        "transforms.t.type": "org.apache.kafka.connect.transforms.Cast$Key",
        "transforms.t.spec": "string",
    }
    (row,) = rows(changes(of, {"op": "c", "after": {"id": 1, "code": "a", "note": None}}), given)
    assert row["key"] == '{"schema":{"type":"string","optional":false,"default":"0"},"payload":"1"}'


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "A value is required"),
        ("foo:faketype", "faketype is no type to cast to"),
        ("foo:array", "array is no type to cast to"),
        ("array", "array is no type to cast to"),
        ("foo:bytes", "the types are int8, int16"),
        ("foo:int8:extra", "Invalid cast: foo:int8:extra"),
        ("foo:int8,int32", "cannot be given with other casts"),
    ],
)
def test_specs_that_cannot_be(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        applied("Cast$Value", {"spec": spec}, f=part("int32", 1))


@pytest.mark.parametrize(
    ("field", "kind", "words"),
    [
        (part("string", "128"), "int8", "a value of the type string is no int8, or out of its range"),
        (part("string", "0x1F"), "int32", "string is no int32"),
        (part("string", " 1"), "int32", "string is no int32"),
        (part("string", "one"), "float64", "string is no double"),
        (part("bytes", b"a"), "int8", "bytes can be cast to string only"),
        (
            RecordPart(ConnectSchema("array", items=ConnectSchema("string")), pa.array([["a"]])),
            "string",
            "array cannot be cast",
        ),
    ],
)
def test_values_that_cannot_be_cast(field: RecordPart, kind: str, words: str) -> None:
    with pytest.raises(TransformError, match=words):
        cast(field, kind)
