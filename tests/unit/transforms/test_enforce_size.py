"""EnforceRecordSize. Records and limits are those of the reference's EnforceRecordSizeTest, sizes those of its code."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.capture.heartbeat import KEY, VALUE
from tailrace.errors import ConfigError, TransformError
from tailrace.events.records import Header, RecordPart, Records, struct
from tailrace.model.schema import ConnectSchema, Field
from tailrace.transforms.enforce_size import EnforceRecordSize
from tailrace.transforms.record_size import record_sizes
from tailrace.transforms.settings import Given
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import headers, payload, properties, rows

TEXT, BYTES = ConnectSchema("string", optional=True), ConnectSchema("bytes", optional=True)
STRING = ConnectSchema("string")
NAME = "io.debezium.transforms.EnforceRecordSize"
BARE = 402  # the size of the reference's record of one text, without the text


def transform(most: int, **settings: str) -> EnforceRecordSize:
    """The transform with this limit, which shortens fields of any size."""
    given = {"min.field.size": "0", **{name.replace("_", "."): text for name, text in settings.items()}}
    return EnforceRecordSize.of(Given("", {"max.bytes": str(most), **given}))


def row(fields: dict[str, ConnectSchema], image: dict[str, Any] | None, types: dict[str, pa.DataType]) -> RecordPart:
    """A row image in a column of one row; null for None."""
    given = image or {}
    parts = [(name, RecordPart(schema, pa.array([given.get(name)], types[name]))) for name, schema in fields.items()]
    return struct(ConnectSchema("struct", optional=True), parts, 1, pa.array([image is None]))


def record(
    fields: dict[str, ConnectSchema], after: dict[str, Any] | None, before: dict[str, Any] | None = None
) -> Records:
    """The record of the reference's test: before, after, op and source.db, without key, partition and offset."""
    types: dict[str, pa.DataType] = {
        name: pa.int32() if schema.type == "int32" else pa.string() if schema.type == "string" else pa.binary()
        for name, schema in fields.items()
    }
    types |= {name: pa.decimal128(9, 2) for name, schema in fields.items() if "Decimal" in (schema.name or "")}
    source = struct(ConnectSchema("struct"), [("db", RecordPart(STRING, pa.array(["test"])))], 1)
    images = [(name, row(fields, image, types)) for name, image in (("before", before), ("after", after))]
    envelope = [*images, ("op", RecordPart(STRING, pa.array(["c"]))), ("source", source)]
    return of_value(struct(ConnectSchema("struct"), envelope, 1))


def of_value(value: RecordPart, topic: str = "topic", key: RecordPart | None = None) -> Records:
    """A record of that value."""
    none = pa.nulls(1, pa.timestamp("us", "UTC"))
    return Records(np.arange(1), pa.array([topic]), pa.nulls(1, pa.int32()), none, key=key, value=value)


def image(records: list[Records], side: str = "after") -> Any:
    """A row image of the one record."""
    (made,) = records
    assert made.value is not None
    return made.value.field(side).values.to_pylist()[0]


def size(records: list[Records]) -> int:
    """The size of the one record."""
    return int(record_sizes(records[0])[0])


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (
            ConnectSchema("bytes", name="org.apache.kafka.connect.data.Decimal"),
            pa.array([Decimal("10099999.29")], pa.decimal128(10, 2)),
            105,
        ),
        (ConnectSchema("bytes"), pa.array([b"hello debezium"]), 115),
        (STRING, pa.array(["é"]), 13 + 64 + 58),
        (TEXT, pa.array([None], pa.string()), 13 + 64),
        (ConnectSchema("int64", optional=True), pa.array([None], pa.int64()), 13 + 64 + 24),
        (ConnectSchema("array", items=TEXT), pa.array([["a", None]]), 13 + 64 + 64 + 2 * 8 + 57),
        (ConnectSchema("array", items=STRING), pa.array([None], pa.list_(pa.string())), 13 + 64),
        (
            ConnectSchema("map", keys=STRING, values=TEXT),
            pa.array([[("k", "v"), ("l", None)]], pa.map_(pa.string(), pa.string())),
            13 + 64 + 88 + 2 * 16 + 3 * 57,
        ),
        (
            ConnectSchema("struct", optional=True, fields=(Field("x", STRING),)),
            pa.array([None], pa.struct([("x", pa.string())])),
            13 + 64,
        ),
    ],
)
def test_sizes_are_those_of_the_reference(schema: ConnectSchema, values: pa.Array, expected: int) -> None:
    """The first two are those of ApproximateStructSizeCalculatorTest: 8 for the time, 5 for the topic, 56 + 8 here."""
    value = struct(ConnectSchema("struct"), [("f", RecordPart(schema, values))], 1)
    assert record_sizes(of_value(value, "dummy")).tolist() == [expected]


def test_headers_and_entries_of_offsets_count_a_hundred_each() -> None:
    records = of_value(struct(ConnectSchema("struct"), [], 1), "dummy")
    given = records.with_(headers=(Header.of("a", STRING, "x"),), offset_entries=np.array([7]))
    assert record_sizes(given).tolist() == [13 + 56 + 100 + 700]


def test_small_records_stay_as_they_are() -> None:
    records = record({"t": TEXT}, {"t": "short"})
    assert record_sizes(records).tolist() == [BARE + 5]
    assert transform(10000).apply(records) == [records]
    assert transform(BARE + 5).apply(records) == [records]
    assert image(transform(BARE + 4).apply(records)) == {"t": "shor"}


@pytest.mark.parametrize(("schema", "unit"), [(TEXT, "a"), (BYTES, b"\0")])
def test_a_long_value_is_shortened_to_the_limit(schema: ConnectSchema, unit: Any) -> None:
    records = record({"t": schema}, {"t": unit * 5000})
    shortened = transform(600).apply(records)
    bare = BARE if schema is TEXT else BARE - 32
    assert image(shortened) == {"t": unit * (600 - bare)}
    assert size(shortened) == 600


def test_fields_lose_in_proportion_to_their_length() -> None:
    fields = {"small": TEXT, "large": TEXT}
    shortened = transform(600).apply(record(fields, {"small": "a" * 2000, "large": "b" * 4000}))
    assert image(shortened) == {"small": "a" * 44, "large": "b" * 89}, "a third and two thirds of 5866, rounded up"
    assert size(shortened) == 599


def test_both_images_of_an_update_are_shortened() -> None:
    shortened = transform(2000).apply(record({"t": TEXT}, {"t": "y" * 5000}, {"t": "x" * 5000}))
    assert (image(shortened, "before"), image(shortened)) == ({"t": "x" * 739}, {"t": "y" * 739})
    assert size(shortened) == 2000


def test_numbers_decimals_bits_and_nulls_stay() -> None:
    """The reference stops at decimals and bits, whose values are no ByteBuffers."""
    fields = {
        "i": ConnectSchema("int32", optional=True),
        "d": ConnectSchema("bytes", optional=True, name="org.apache.kafka.connect.data.Decimal"),
        "b": ConnectSchema("bytes", optional=True, name="io.debezium.data.Bits"),
        "n": TEXT,
        "t": TEXT,
    }
    given = {"i": 42, "d": Decimal("1.50"), "b": b"\x01\x02\x03", "n": None, "t": "x" * 5000}
    shortened = transform(600).apply(record(fields, given))
    left = image(shortened)
    assert len(left.pop("t")) == 5000 - (size([record(fields, given)]) - 600)
    assert left == {name: value for name, value in given.items() if name != "t"}
    nothing = record({"t": TEXT}, {"t": None})
    assert transform(100).apply(nothing) == [nothing]


def test_the_ratio_is_of_the_size_and_not_of_what_is_removed() -> None:
    records = record({"t": TEXT}, {"t": "a" * 1000})
    assert transform(600, compression_ratio="0.1").apply(records) == [records]
    assert image(transform(5000, compression_ratio="2.0").apply(record({"t": TEXT}, {"t": "a" * 30000}))) == {"t": ""}
    assert len(image(transform(600, compression_ratio="0.5").apply(records))["t"]) == 1000 - (701 - 600)


def test_lengths_are_those_of_utf_16() -> None:
    """Sizes are those of UTF-8, so more is removed than needed; an emoji has two units, and is not split."""
    three_bytes = record({"t": TEXT}, {"t": "中" * 5000})
    assert image(transform(600).apply(three_bytes)) == {"t": ""}
    emoji = record({"t": TEXT}, {"t": "😀" * 10})
    found = [image(transform(BARE + 40 - less).apply(emoji))["t"] for less in (1, 2, 3, 19, 20)]
    assert found == ["😀" * 9, "😀" * 9, "😀" * 8, "", ""]
    assert transform(1, min_field_size="20").apply(emoji) == [emoji], "it has twenty units"
    assert image(transform(BARE + 38, min_field_size="19").apply(emoji)) == {"t": "😀" * 9}


def test_fields_up_to_the_minimum_stay() -> None:
    fields = {**{f"small_{place}": TEXT for place in range(9)}, "large": TEXT}
    given = dict.fromkeys(fields, "x" * 10) | {"large": "y" * 5000}
    shortened = transform(2000, min_field_size="20").apply(record(fields, given))
    left = image(shortened)
    assert {**left, "large": ""} == {**given, "large": ""}
    assert 0 < len(left["large"]) < 5000
    assert size(shortened) == 2000
    by_default = EnforceRecordSize.of(Given("", {"max.bytes": "100"}))
    kept = record({"t": TEXT}, {"t": "a" * 25000})
    assert by_default.apply(kept) == [kept]


def test_a_default_in_place_of_null_is_shortened_but_not_measured() -> None:
    schema = TEXT.with_(default="d" * 30)
    records = record({"t": schema, "u": TEXT}, {"t": None, "u": "u" * 30})
    bare = int(record_sizes(records)[0])
    assert image(transform(bare - 10).apply(records)) == {"t": "d" * 25, "u": "u" * 25}


def test_values_without_row_images_stay() -> None:
    beat = of_value(
        RecordPart(VALUE, text=pa.array(['{"ts_ms":1}'])), key=RecordPart(KEY, text=pa.array(['{"serverName":"s"}']))
    )
    text = of_value(RecordPart(STRING, pa.array(["plain"])))
    flat = of_value(struct(ConnectSchema("struct"), [("t", RecordPart(TEXT, pa.array(["x" * 100])))], 1))
    for each in (beat, text, flat):
        assert transform(1).apply(each) == [each]


def test_a_key_that_is_no_struct_is_an_error() -> None:
    """The reference casts keys to Struct."""
    records = record({"t": TEXT}, {"t": "a"}).with_(key=RecordPart(STRING, pa.array(["k"])))
    with pytest.raises(TransformError, match=r"(?s)the key is string, not a struct.*before the transforms"):
        transform(10000).apply(records)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, r"max\.bytes: A value is required"),
        ({"max.bytes": "0"}, "A positive, non-zero integer value is expected"),
        ({"max.bytes": "-1"}, "A positive, non-zero integer value is expected"),
        ({"max.bytes": "200", "compression.ratio": "0"}, "Must be a positive number"),
        ({"max.bytes": "200", "compression.ratio": "half"}, "Must be a positive number"),
        ({"max.bytes": "200", "min.field.size": "-1"}, "An non-negative integer is expected"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        EnforceRecordSize.of(Given("", settings))


def test_only_records_that_are_too_large_change() -> None:
    """Sizes are those of the records before JSON; their partition and offset have five entries."""
    small, large = {"id": 1, "code": "a", "note": None}, {"id": 2, "code": "c" * 3000, "note": "n" * 1000}
    batch = changes(table(), {"op": "c", "after": small}, {"op": "d", "before": large}, {"op": "c", "after": large})
    found = rows(batch, properties(NAME, {"max.bytes": "4000", "min.field.size": "0"}))
    created, deleted, tombstone, last = found
    assert payload(created["value"])["after"] == small
    assert tombstone["value"] is None
    before, after = payload(deleted["value"])["before"], payload(last["value"])["after"]
    assert before == after
    assert len(before["code"]) < 3000
    assert len(before["note"]) / len(before["code"]) == pytest.approx(1 / 3, rel=0.01)
    assert [payload(each["key"])["id"] for each in found] == [1, 2, 2, 2]


def test_headers_of_a_record_that_was_shortened_are_not_its_tombstones() -> None:
    image = {"id": 2, "code": "c" * 3000, "note": None}
    small = {"id": 1, "code": "a", "note": None}
    given = {
        **properties(NAME, {"max.bytes": "3000", "min.field.size": "0"}),
        "transforms": "t,h",
        "transforms.h.type": "io.debezium.transforms.ExtractChangedRecordState",
        "transforms.h.header.changed.name": "c",
    }
    batch = changes(table(), {"op": "d", "before": image}, {"op": "d", "before": small})
    assert [headers(each) for each in rows(batch, given)] == [[("c", [])], [], [("c", [])], [("c", [])]]
