"""Transforms of documents: the struct that a document becomes, and what becomes of updates and deletions."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bson import Int64, ObjectId, json_util
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.position import BLOCK
from tailrace.errors import TransformError
from tailrace.events.payload import array
from tailrace.events.records import RecordPart, Records, struct
from tailrace.events.rows import RowWriter
from tailrace.model.schema import STRING, ConnectSchema
from tailrace.transforms.mongodb.documents import DocumentConverter, parse
from tailrace.transforms.mongodb.outbox import MongoEventRouter
from tailrace.transforms.mongodb.unwrap import ExtractNewDocumentState
from tailrace.transforms.settings import Given, SettingsError
from tailrace.transforms.timezone import TimezoneConverter

NAMES = st.text("abcdefgh", min_size=1, max_size=4)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.binary(max_size=4),
    st.binary(min_size=12, max_size=12).map(ObjectId),
)
DOCUMENTS = st.recursive(
    st.dictionaries(NAMES, SCALARS, min_size=1, max_size=4),
    lambda inner: st.dictionaries(NAMES, st.one_of(SCALARS, inner, st.lists(st.booleans(), max_size=3)), max_size=4),
    max_leaves=8,
)
TEXT = ConnectSchema("string", optional=True)


def plain(value: Any) -> Any:
    """A value as Arrow gives it back."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, ObjectId) else value


@given(DOCUMENTS)
def test_a_document_is_a_struct_of_its_fields(document: dict[str, Any]) -> None:
    text = json_util.dumps(document, json_options=json_util.CANONICAL_JSON_OPTIONS)
    converter = DocumentConverter()
    schema = converter.struct(parse(text), "t")
    (found,) = array([converter.value(parse(text), schema)], schema).to_pylist()
    assert [field.name for field in schema.fields] == list(document)
    assert found == plain(document)


@given(st.lists(SCALARS, min_size=1, max_size=4))
def test_an_array_as_a_document_has_a_field_for_each_item(items: list[Any]) -> None:
    text = json_util.dumps({"a": items}, json_options=json_util.CANONICAL_JSON_OPTIONS)
    converter = DocumentConverter(as_documents=True)
    schema = converter.struct(parse(text), "t")
    (found,) = array([converter.value(parse(text), schema)], schema).to_pylist()
    assert found == {"a": {f"_{place}": plain(item) for place, item in enumerate(items)}}


def test_types_of_documents() -> None:
    text = (
        '{"i": 1, "l": {"$numberLong": "1"}, "big": 3000000000, "d": {"$date": 1582979696789}, '
        '"t": {"$timestamp": {"t": 5, "i": 1}}, "n": {"$numberDecimal": "1.50"}, '
        '"r": {"$regex": "^a", "$options": "i"}, "min": {"$minKey": 1}, "empty": {}, "none": []}'
    )
    schema = DocumentConverter().struct(parse(text), "t")
    assert {field.name: (field.schema.type, field.schema.name) for field in schema.fields} == {
        "i": ("int32", None),
        "l": ("int64", None),
        "big": ("int64", None),
        "d": ("int64", "org.apache.kafka.connect.data.Timestamp"),
        "t": ("int64", "org.apache.kafka.connect.data.Timestamp"),
        "n": ("string", None),
        "r": ("struct", "io.debezium.mongodb.regex"),
        "empty": ("struct", None),
        "none": ("array", None),
    }
    value = DocumentConverter().value(parse(text), schema)
    assert (value["d"], value["t"], value["n"]) == (1582979696789, 5000, "1.50")
    assert value["r"] == {"regex": "^a", "options": "i"}


def test_a_reference_is_a_document_and_undefined_is_left_out() -> None:
    document = parse('{"r": {"$ref": "c", "$id": {"$oid": "5f1a2b3c4d5e6f7a8b9c0d1e"}}, "u": {"$undefined": true}}')
    schema = DocumentConverter().struct(document, "t")
    (found,) = array([DocumentConverter().value(document, schema)], schema).to_pylist()
    assert found == {"r": {"$ref": "c", "$id": "5f1a2b3c4d5e6f7a8b9c0d1e"}}


def test_documents_in_an_array_share_a_schema() -> None:
    converter = DocumentConverter()
    document = parse('{"a": [{"x": 1}, {"y": "b", "x": 2}]}')
    schema = converter.struct(document, "t")
    (found,) = array([converter.value(document, schema)], schema).to_pylist()
    assert found == {"a": [{"x": 1, "y": None}, {"x": 2, "y": "b"}]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a": [{"x": []}, {"x": [1]}, {"x": []}]}', {"x": "int32"}),
        ('{"a": [{"x": []}, {"x": []}]}', {"x": "string"}),
        ('{"a": [{"x": {"y": 1}}, {"x": {"z": 1, "y": 2}}]}', {"x": ["z", "y"]}),
        ('{"a": [{"x": {"y": 1, "z": 1}}, {"x": {"z": 2}}, {"x": {}}]}', {"x": ["z", "y"]}),
        ('{"a": [{"x": [{"y": 1}]}, {"x": [{"z": 1, "y": 2}]}]}', {"x": ["z", "y"]}),
    ],
)
def test_a_field_of_documents_in_an_array_is_as_the_last_one_has_it(text: str, names: dict[str, Any]) -> None:
    """Debezium: MongoDataConverter.mergeSchemas."""
    document = parse(text)
    schema = DocumentConverter().struct(document, "t")
    array([DocumentConverter().value(document, schema)], schema)
    items = schema.fields[0].schema.items
    assert items is not None
    (field,) = items.fields
    found = field.schema if field.schema.items is None else field.schema.items
    assert {field.name: [each.name for each in found.fields] or found.type} == names


def test_an_empty_array_stays_under_adjusted_names() -> None:
    converter = DocumentConverter(adjustment="avro")
    document = parse('{"e": [], "d": {"e": []}, "a": [{"e": [], "x": 1}]}')
    found = converter.value(document, converter.struct(document, "t"))
    assert found == {"e": [], "d": {"e": []}, "a": [{"e": [], "x": 1}]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"ts": [], "d": {"d": []}}', ["t.ts", "t.d", "t.d.d"]),
        ('{"a": [{"e": [], "d": {}, "x": {"d": {}}}]}', ["t.a", "t.a._0", "t.a._0.e", "t.a._0.d", "t.a._0.x", None]),
    ],
)
def test_names_of_what_is_empty_in_arrays_as_documents(text: str, names: list[str | None]) -> None:
    """Debezium: MongoDataConverter.schema and parseMapLists."""
    found: list[str | None] = []

    def collect(schema: ConnectSchema) -> None:
        for field in schema.fields:
            found.append(field.schema.name)
            collect(field.schema)

    collect(DocumentConverter(as_documents=True).struct(parse(text), "t"))
    assert found == names


def test_the_name_of_what_is_empty_in_an_item_is_adjusted_whole() -> None:
    converter = DocumentConverter(as_documents=True, adjustment="avro")
    (array,) = converter.struct(parse('{"a": [{"e-": []}]}'), "p.t").fields
    assert array.schema.fields[0].schema.fields[0].schema.name == "p_t_a__0_e_"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"a": [{"x": 1}, null]}', [{"x": 1}, None]),
        ('{"a": [null, [1], []]}', [None, [1], []]),
        ('{"a": [[], []]}', [[], []]),
    ],
)
def test_nulls_and_empty_arrays_beside_other_items(text: str, kept: Any) -> None:
    converter, document = DocumentConverter(), parse(text)
    schema = converter.struct(document, "t")
    (found,) = array([converter.value(document, schema)], schema).to_pylist()
    assert found == {"a": kept}


def test_an_empty_array_beside_a_number_is_of_another_type() -> None:
    with pytest.raises(TransformError):
        DocumentConverter().struct(parse('{"a": [[], 1.5]}'), "t")


def test_documents_in_an_array_of_arrays_have_no_name() -> None:
    """Debezium: MongoDataConverter.handleNestedArray."""
    items = DocumentConverter().struct(parse('{"a": [[{"x": {"y": 1}}]]}'), "t").fields[0].schema.items
    assert items is not None
    assert items.items is not None
    assert (items.items.name, items.items.fields[0].schema.name) == (None, "null.x")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, "b"]}',
        '{"a": [{"x": 1}, {"x": "b"}]}',
        '{"a": [1, {"x": 1}]}',
        '{"a": [{"x": 1}, {"x": []}]}',
        '{"a": [{"x": ["b"]}, {"x": [1]}]}',
    ],
)
def test_an_array_of_several_types_is_an_error_with_its_remedy(text: str) -> None:
    with pytest.raises(TransformError) as caught:
        DocumentConverter().struct(parse(text), "t")
    assert "array.encoding" in (caught.value.remedy or "")


def records(
    *events: tuple[str, str | None, dict[str, Any] | None], key: str = "1", before: str | None = None
) -> Records:
    """Change events of one document: op, the text of `after`, the update description; all with one `before`."""
    count = len(events)
    described = pa.struct([("removedFields", pa.list_(pa.string())), ("updatedFields", pa.string())])
    changes = pa.array([change for _, _, change in events], described)
    description = ConnectSchema("struct", optional=True)
    parts = [
        ("before", RecordPart(TEXT, pa.array([before] * count, pa.string()))),
        (
            "after",
            RecordPart(
                TEXT.with_(name="io.debezium.data.Json"), pa.array([text for _, text, _ in events], pa.string())
            ),
        ),
        ("updateDescription", RecordPart(description, changes)),
        ("ts_ms", RecordPart(ConnectSchema("int64", optional=True), pa.array([0] * count, pa.int64()))),
        ("op", RecordPart(STRING, pa.array([op for op, _, _ in events], pa.string()))),
    ]
    value = struct(ConnectSchema("struct", name="p.db.docs.Envelope"), parts, count)
    ids = struct(
        ConnectSchema("struct", name="p.db.docs.Key"), [("id", RecordPart(STRING, pa.array([key] * count)))], count
    )
    nothing = pa.nulls(count, pa.int32())
    order = np.arange(count, dtype=np.int64) * 2
    return Records(order, pa.array(["p.db.docs"] * count), nothing, pa.nulls(count, pa.int64()), key=ids, value=value)


def unwrapped(found: Records, **settings: str) -> list[tuple[Any, Any]]:
    """Keys and values, in order, as a transform with these settings leaves them."""
    transform = ExtractNewDocumentState.of(
        Given("", {name.replace("__", "."): text for name, text in settings.items()})
    )
    out: dict[int, tuple[Any, Any]] = {}
    for group in transform.apply(found):
        keys = [None] * len(group) if group.key is None else group.key.values.to_pylist()
        values = [None] * len(group) if group.value is None else group.value.values.to_pylist()
        out.update(zip(group.order.tolist(), zip(keys, values, strict=True), strict=True))
    return [out[place] for place in sorted(out)]


UPDATE = {"removedFields": ["gone"], "updatedFields": '{"a.b": 2}'}


def test_an_update_without_its_document_has_what_changed() -> None:
    found = unwrapped(records(("u", None, UPDATE)))
    assert found == [({"id": 1}, {"a.b": 2, "_id": 1})]
    assert unwrapped(records(("u", None, UPDATE)), flatten__struct="true") == [({"id": 1}, {"a_b": 2, "_id": 1})]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [({"id": "x"}, None)]),
        ({"delete.tombstone.handling.mode": "drop"}, []),
        ({"delete.tombstone.handling.mode": "rewrite"}, [({"id": "x"}, {"__deleted": True})]),
        (
            {
                "delete.tombstone.handling.mode": "rewrite",
                "delete.tombstone.handling.mode.rewrite-with-id": "true",
            },
            [({"id": "x"}, {"__deleted": True, "_id": "x"})],
        ),
    ],
)
def test_deletions_by_mode(settings: dict[str, str], expected: list[Any]) -> None:
    given = {name.replace(".", "__"): text for name, text in settings.items()}
    assert unwrapped(records(("d", None, None), key='"x"'), **given) == expected


def test_a_rewritten_deletion_has_the_document_before_it() -> None:
    found = records(("d", None, None), before='{"_id": 1, "a": 2}')
    for mode in ("rewrite", "rewrite-with-tombstone"):
        assert unwrapped(found, delete__tombstone__handling__mode=mode) == [
            ({"id": 1}, {"_id": 1, "a": 2, "__deleted": True})
        ]
    assert unwrapped(found) == [({"id": 1}, None)]
    update = records(("u", None, UPDATE), before='{"_id": 1, "a": 2}')
    assert unwrapped(update) == [({"id": 1}, {"a.b": 2, "_id": 1})]


def test_documents_of_several_schemas_keep_their_order() -> None:
    found = unwrapped(records(("c", '{"a": 1}', None), ("c", '{"b": "x"}', None), ("c", '{"a": 2}', None)))
    assert [value for _, value in found] == [{"a": 1}, {"b": "x"}, {"a": 2}]


def test_a_removed_field_is_not_one_that_was_set() -> None:
    change = {"removedFields": ["a"], "updatedFields": '{"a": 2, "b": 3}'}
    assert unwrapped(records(("u", None, change))) == [({"id": 1}, {"b": 3, "_id": 1})]


def test_an_empty_document_is_an_empty_row() -> None:
    found = records(("c", "{}", None), ("d", None, None))
    (group,) = ExtractNewDocumentState.of(Given("", {"delete.tombstone.handling.mode": "drop"})).apply(found)
    assert group.value is not None
    assert group.value.values.to_pylist() == [{}]


@pytest.mark.parametrize(
    ("transform", "name", "said"),
    [
        (ExtractNewDocumentState, "array.encodin", "did you mean array.encoding?"),
        (ExtractNewDocumentState, "sanitize.field.names", "known settings: "),
        (MongoEventRouter, "collection.field.event.ids", "did you mean collection.field.event.id?"),
        (MongoEventRouter, "debezium", "known settings: "),
    ],
)
def test_an_unknown_setting_is_an_error_that_names_the_transforms_own(transform: Any, name: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        transform.of(Given("transforms.u.", {name: "true"}))
    (problem,) = error.value.problems
    assert problem.name == f"transforms.u.{name}"
    assert str(problem.remedy).startswith(said)
    if said.startswith("known"):
        names = str(problem.remedy).removeprefix(said).split(", ")
        own = {
            ExtractNewDocumentState: {"add.fields", "array.encoding", "flatten.struct", "field.name.adjustment.mode"},
            MongoEventRouter: {"collection.field.event.id", "collection.expand.json.payload", "route.by.field"},
        }
        assert own[transform] <= set(names)
        assert len(names) == len(set(names))
        assert "table.field.event.id" not in names


def test_an_outbox_document_becomes_a_message() -> None:
    text = (
        '{"_id": "1", "aggregatetype": "Order", "aggregateid": "7", "type": "Made", "payload": {"id": 7, "name": "é"}}'
    )
    (message,) = MongoEventRouter.of(Given("", {})).apply(records(("c", text, None), ("d", None, None)))
    assert message.topic.to_pylist() == ["outbox.event.Order"]
    assert message.value is not None
    assert json.loads(message.value.values[0].as_py()) == {"id": {"$numberInt": "7"}, "name": "é"}
    assert {header.name for header in message.headers} == {"id"}


@pytest.mark.parametrize("at", ['{"$numberLong": "1600000000123"}', '{"$date": 1600000000123}'])
def test_the_time_of_a_message_is_that_of_a_field(at: str) -> None:
    text = f'{{"_id": "1", "aggregatetype": "Order", "aggregateid": "7", "payload": "x", "at": {at}}}'
    router = MongoEventRouter.of(Given("", {"collection.field.event.timestamp": "at"}))
    (message,) = router.apply(records(("c", text, None)))
    assert message.timestamp.to_pylist() == [1600000000123000]


def test_an_expanded_payload_is_a_struct() -> None:
    text = '{"_id": "1", "aggregatetype": "Order", "aggregateid": "7", "payload": {"id": 7, "lines": [1, 2]}}'
    router = MongoEventRouter.of(Given("", {"collection.expand.json.payload": "true"}))
    (message,) = router.apply(records(("c", text, None)))
    assert message.value is not None
    assert message.value.values.to_pylist() == [{"id": 7, "lines": [1, 2]}]


def test_times_of_documents_stay_in_other_zones() -> None:
    """Debezium: TimezoneConverter.getStruct."""
    zone = TimezoneConverter.of(Given("", {"converted.timezone": "+02:00"}))
    text = '{"_id": 1, "d": {"$date": 1582979696789}}'
    _, made = zone.apply(records(("c", text, None)))
    assert made.value is not None
    assert made.value.field("after").values.to_pylist() == [text]


@pytest.fixture
def narrow() -> None:
    """Python's own limit of frames, whatever was read before."""
    sys.setrecursionlimit(1000)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("inner", ["1", '[{"$oid": "5d0000000000000000000000"}]'])
def test_a_document_has_as_many_levels_as_the_server_takes(inner: str) -> None:
    depth = 190
    text = '{"_id":{"$oid":"5d0000000000000000000000"},"payload":' + '{"a":' * depth + inner + "}" * depth
    text += ',"aggregatetype":"x","aggregateid":"y","type":"z"}'
    config = resolve({"mongodb.connection.string": "mongodb://h", "topic.prefix": "t"})
    transforms: list[Any] = [ExtractNewDocumentState.of(Given("", {}))]
    transforms += [
        MongoEventRouter.of(Given("", {"collection.expand.json.payload": each})) for each in ("true", "false")
    ]
    for transform in transforms:
        made = transform.apply(records(("c", text, None)))
        assert sum(map(len, RowWriter(config, BLOCK).rows(made))) == 1
