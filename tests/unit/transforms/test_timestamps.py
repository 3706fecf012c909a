"""TimestampConverter of Kafka Connect, and the patterns of Java's SimpleDateFormat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, TransformError
from tailrace.events.records import RecordPart
from tailrace.javalike.date_format import DateFormat
from tailrace.model.schema import ConnectSchema
from tests.unit.transforms.transformed import applied, applied_to

LOGICAL = "org.apache.kafka.connect.data."
DAY = 86_400_000
MOMENT = DAY + 1234  # 1970-01-02T00:00:01.234
PATTERN = "yyyy MM dd HH mm ss SSS z"
TEXT = "1970 01 02 00 00 01 234 UTC"
SOURCES = {
    "Timestamp": ("int64", LOGICAL + "Timestamp", MOMENT),
    "Date": ("int32", LOGICAL + "Date", 1),
    "Time": ("int32", LOGICAL + "Time", 1234),
    "unix": ("int64", None, MOMENT),
    "string": ("string", None, TEXT),
}
ARROW = {"int32": pa.int32(), "int64": pa.int64(), "string": pa.string()}


def part(kind: str, *values: Any, **schema: Any) -> RecordPart:
    """A field of one type."""
    return RecordPart(ConnectSchema(kind, **schema), pa.array(values, ARROW[kind]))


def schema_of(kind: str, optional: bool = False) -> ConnectSchema:
    """The schema that a time has after the conversion."""
    connect, name, _ = SOURCES[kind]
    return ConnectSchema(connect, optional=optional, name=name, version=1 if name else None)


def converted(field: RecordPart, target: str, **settings: str) -> tuple[ConnectSchema, list[Any]]:
    """A field's schema and values after a conversion."""
    given = {"field": "f", "target.type": target, **{name.replace("_", "."): text for name, text in settings.items()}}
    made = applied("TimestampConverter$Value", given, f=field, other=part("int32", *range(len(field.values))))
    assert made.field("other").schema == ConnectSchema("int32")
    return made.field("f").schema, made.field("f").values.to_pylist()


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Timestamp", "Timestamp", MOMENT),
        ("Timestamp", "Date", 1),
        ("Timestamp", "Time", 1234),
        ("Timestamp", "unix", MOMENT),
        ("Timestamp", "string", TEXT),
        ("Date", "Timestamp", DAY),
        ("Date", "string", "1970 01 02 00 00 00 000 UTC"),
        ("Time", "Timestamp", 1234),
        ("Time", "Date", 0),
        ("unix", "Timestamp", MOMENT),
        ("unix", "string", TEXT),
        ("string", "Timestamp", MOMENT),
        ("string", "unix", MOMENT),
        ("string", "Date", 1),
    ],
)
def test_each_type_becomes_another(source: str, target: str, expected: Any) -> None:
    kind, name, value = SOURCES[source]
    field = part(kind, value, None, name=name, optional=True)
    assert converted(field, target, format=PATTERN) == (schema_of(target, optional=True), [expected, None])


@pytest.mark.parametrize(
    ("precision", "number", "exact", "before"),
    [
        ("seconds", 86_401, 86_401_000, -1000),
        ("milliseconds", MOMENT, MOMENT, -1),
        ("microseconds", 86_401_234_123, MOMENT, 0),
        ("nanoseconds", 86_401_234_123_456, MOMENT, 0),
    ],
)
def test_numbers_have_a_precision(precision: str, number: int, exact: int, before: int) -> None:
    field = part("int64", number, -1, name="io.debezium.time.MicroTimestamp", version=1)
    assert converted(field, "Timestamp", unix_precision=precision) == (schema_of("Timestamp"), [exact, before])
    back = converted(part("int64", MOMENT, name=LOGICAL + "Timestamp"), "unix", unix_precision=precision)
    assert back == (schema_of("unix"), [_cut(number, precision)])


def _cut(number: int, precision: str) -> int:
    """The number without what is finer than a millisecond."""
    finer = {"microseconds": 1000, "nanoseconds": 1_000_000}.get(precision, 1)
    return number // finer * finer


def test_numbers_out_of_range_end_at_the_last_one() -> None:
    field = part("int64", 2**62, -(2**62))
    assert converted(field, "Timestamp", unix_precision="seconds")[1] == [2**63 - 1, -(2**63)]


def test_times_before_1970() -> None:
    field = part("int64", -1, name=LOGICAL + "Timestamp")
    assert [converted(field, target)[1] for target in ("Date", "Time")] == [[-1], [DAY - 1]]


@pytest.mark.parametrize(("fill", "expected"), [("true", 0), ("false", None)])
def test_null_with_a_default(fill: str, expected: int | None) -> None:
    field = part("int64", None, name=LOGICAL + "Timestamp", default=0, optional=True)
    found = converted(field, "unix", replace_null_with_default=fill)
    assert found == (schema_of("unix", optional=True), [expected])


def test_a_whole_value_and_null_under_a_schema() -> None:
    given = {"target.type": "unix"}
    field = part("int64", 1, None, name=LOGICAL + "Timestamp", optional=True, default=7)
    whole = applied_to(field, "TimestampConverter$Value", given)
    assert (whole.schema, whole.values.to_pylist()) == (schema_of("unix", optional=True), [1, None])
    with pytest.raises(TransformError, match="struct is no time"):
        applied("TimestampConverter$Value", given, f=part("int64", 1))
    gone = pa.array([True, False])
    made = applied(
        "TimestampConverter$Value", {**given, "field": "f"}, gone, f=part("int64", 1, 2, name=LOGICAL + "Timestamp")
    )
    assert (made.schema.fields[0].schema, made.values.to_pylist()) == (schema_of("unix"), [None, {"f": 2}])


def test_a_field_that_is_not_there_is_no_error() -> None:
    made = applied("TimestampConverter$Value", {"field": "gone", "target.type": "unix"}, f=part("int32", 1))
    assert made.schema.fields[0].schema == ConnectSchema("int32")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "A value is required"),
        ({"target.type": "invalid"}, "one of string, unix, Date, Time, Timestamp"),
        ({"target.type": "unix", "unix.precision": "invalid"}, "one of seconds, milliseconds"),
        ({"target.type": "string"}, "A format is required for the target type string"),
        ({"target.type": "string", "format": "bad-format"}, "The pattern b is not known here"),
        ({"target.type": "string", "format": "yyyy 'at"}, "a quote that does not end"),
        ({"target.type": "string", "format": "XXXX"}, "The pattern XXXX is not known here"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        applied("TimestampConverter$Value", settings, f=part("int64", 1))


@pytest.mark.parametrize(
    ("field", "settings", "words"),
    [
        (
            part("int32", 1, name="io.debezium.time.Date"),
            {},
            "io.debezium.time.Date is no time that Kafka Connect knows",
        ),
        (part("string", "2020"), {}, "texts need a format"),
        (part("string", "nonsense"), {"format": PATTERN}, "a text does not match the format yyyy MM"),
    ],
)
def test_values_that_cannot_be_converted(field: RecordPart, settings: dict[str, str], words: str) -> None:
    with pytest.raises(TransformError, match=words):
        converted(field, "unix", **settings)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2020-02-29T13:05:09.007Z"),
        ("EEE, d MMM yyyy HH:mm:ss Z", "Sat, 29 Feb 2020 13:05:09 +0000"),
        ("EEEE MMMM yy", "Saturday February 20"),
        ("h:mm a 'o''clock' ''K", "1:05 PM o'clock '1"),
        ("kk D DDDD u", "13 60 0060 6"),
        ("SSSSSS y M zzzz X", "000007 2020 2 Coordinated Universal Time Z"),
        ("LLL '%d'", "Feb %d"),
    ],
)
def test_formats_are_those_of_java(pattern: str, text: str) -> None:
    values = pa.array([1_582_981_509_007, None], pa.int64())
    assert DateFormat.of(pattern).format(values).to_pylist() == [text, None]


@pytest.mark.parametrize(
    ("pattern", "years"),
    [
        ("yyyy", ["0044", "0001", "0001", "10000"]),
        ("y", ["44", "1", "1", "10000"]),
        ("yy", ["44", "01", "01", "00"]),
        ("G yyyyyy", ["BC 000044", "BC 000001", "AD 000001", "AD 010000"]),
        ("yyyy GGGG", ["0044 BC", "0001 BC", "0001 AD", "10000 AD"]),
    ],
)
def test_years_before_christ_are_years_of_the_era(pattern: str, years: list[str]) -> None:
    ends = np.array(["-0043-03-15", "0000-12-31", "0001-01-01", "10000-01-01"], "datetime64[ms]").astype(np.int64)
    assert DateFormat.of(pattern).format(pa.array(ends)).to_pylist() == years
    if "G" in pattern:
        days = np.array(["-0043-01-01", "0000-01-01", "0001-01-01", "10000-01-01"], "datetime64[ms]").astype(np.int64)
        assert DateFormat.of(pattern).parse(pa.array(years)).to_pylist() == days.tolist()


def test_the_first_three_digits_of_a_fraction_are_milliseconds() -> None:
    given = {"target.type": "unix", "format": "yyyy-MM-dd'T'HH:mm:ss.SSS"}
    field = part("string", "2020-02-29T13:05:09.007912")
    assert applied_to(field, "TimestampConverter$Value", given).values.to_pylist() == [1_582_981_509_007]


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2020-02-29T14:05:09.007+01:00", 1_582_981_509_007),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2020-02-29T13:05:09.007912Z", 1_582_981_509_007),
        ("yyyyMMddHHmmss", "20200229130509", 1_582_981_509_000),
        ("yyyy-MM-dd", "2020-02-30 and more", 1_583_020_800_000),
        ("EEE, d MMM yyyy HH:mm:ss Z", "sat, 29 FEB 2020 08:05:09 -0500", 1_582_981_509_000),
        ("d MMMM yy hh a", "29 February 20 12 AM", 1_582_934_400_000),
        ("yyyy D kk", "2020 60 24", 1_582_934_400_000),
        ("HH:mm", "01:02", 3_720_000),
        ("dd/MM/yyyy", "31/12/1969", -DAY),
    ],
)
def test_texts_are_read_as_in_java(pattern: str, text: str, moment: int) -> None:
    assert DateFormat.of(pattern).parse(pa.array([text, None])).to_pylist() == [moment, None]
