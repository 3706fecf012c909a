"""Transforms that move fields between headers, keys and values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, TransformError
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.schema import STRING, ConnectSchema, Field
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.classes import TRANSFORMS
from tailrace.transforms.settings import Given
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import UNWRAP, fields, headers, payload, properties, rows, values

CONNECT = "org.apache.kafka.connect.transforms."
TO_VALUE = "io.debezium.transforms.HeaderToValue"
IMAGE = {"id": 1, "code": "a", "note": None}


def created(**image: Any) -> ChangeBatch:
    """One insert."""
    return changes(table(), {"op": "c", "after": {**IMAGE, **image}})


def unwrapped(kind: str, settings: dict[str, str], batch: ChangeBatch | None = None) -> list[dict[str, Any]]:
    """The rows after unwrap and another transform."""
    given = {"transforms": "u,t", "transforms.u.type": UNWRAP, "transforms.t.type": CONNECT + kind}
    more = {f"transforms.t.{name}": text for name, text in settings.items()}
    return rows(batch or created(), {**given, **more})


def test_fields_are_kept_dropped_and_renamed() -> None:
    (row,) = unwrapped("ReplaceField$Value", {"exclude": "note", "renames": "code:kind"})
    assert payload(row["value"]) == {"id": 1, "kind": "a"}
    (row,) = unwrapped("ReplaceField$Value", {"include": "note,code", "exclude": "note"})
    assert payload(row["value"]) == {"code": "a"}
    (row,) = unwrapped("ReplaceField$Key", {"renames": "id:number"})
    assert payload(row["key"]) == {"number": 1}


def test_metadata_is_inserted_optional_unless_it_is_marked() -> None:
    settings = {
        "topic.field": "t",
        "static.field": "s!",
        "static.value": "v",
        "timestamp.field": "at",
        "partition.field": "p?",
    }
    (row,) = unwrapped("InsertField$Value", settings)
    assert payload(row["value"]) == {
        **IMAGE, "t": "server1.public.things", "p": None, "at": None, "s": "v"
    }  # fmt: skip
    schemas = fields(row)
    assert [schemas[name]["optional"] for name in ("t", "p", "at", "s")] == [True, True, True, False]
    with pytest.raises(ConfigError, match="No value specified for static field"):
        unwrapped("InsertField$Value", {"static.field": "s"})


def test_a_time_that_the_outbox_has_set_is_inserted() -> None:
    """Kafka: InsertField; Debezium's records have no time of their own."""
    records = Records(
        order=np.arange(1),
        topic=pa.array(["t"]),
        partition=pa.nulls(1, pa.int32()),
        timestamp=pa.array([1_795_268_705_393_000], pa.timestamp("us", "UTC")),
        key=None,
        value=struct(ConnectSchema("struct"), [("a", RecordPart(STRING, pa.array(["x"])))], 1),
    )
    insert = TRANSFORMS[CONNECT + "InsertField$Value"](Given("t.", {"timestamp.field": "at"}))
    for timed, at in ((False, None), (True, 1_795_268_705_393)):
        (made,) = insert.apply(replace(records, timed=timed))
        assert made.value is not None
        assert made.value.values.to_pylist() == [{"a": "x", "at": at}]


def test_a_key_is_made_of_fields_and_of_one_alone() -> None:
    (row,) = unwrapped("ValueToKey", {"fields": "code,id"})
    assert payload(row["key"]) == {"code": "a", "id": 1}
    (row,) = rows(created(), properties(CONNECT + "ExtractField$Key", {"field": "id"}))
    assert json.loads(row["key"]) == {"schema": {"type": "int32", "optional": False, "default": 0}, "payload": 1}
    nested = {"field": "source.table", "field.syntax.version": "V2"}
    assert values(created(), properties(CONNECT + "ExtractField$Value", nested)) == ["things"]
    with pytest.raises(TransformError, match="no field 'colour'"):
        unwrapped("ValueToKey", {"fields": "colour"})


def test_records_and_headers_are_dropped_and_values_hoisted() -> None:
    assert unwrapped("Filter", {}) == []
    (row,) = unwrapped("HoistField$Value", {"field": "row"})
    assert payload(row["value"]) == {"row": IMAGE}
    chain = {"transforms": "u,t", "transforms.u.type": UNWRAP, "transforms.t.type": CONNECT + "HoistField$Value"}
    deleted = changes(table(key=()), {"op": "d", "before": IMAGE})
    assert values(deleted, {**chain, "transforms.t.field": "row"}) == [{"row": None}]
    given = properties(CONNECT + "DropHeaders", {"headers": "__debezium.context.runId"})
    (row,) = rows(created(), {**given, "extended.headers.enabled": "true"})
    assert len(headers(row)) == 3


def test_structs_are_flattened_and_what_may_be_absent_is_optional() -> None:
    (row,) = rows(created(), properties(CONNECT + "Flatten$Value", {"delimiter": "_"}))
    found = payload(row["value"])
    assert (found["after_code"], found["before_code"], found["source_table"], found["op"]) == ("a", None, "things", "c")
    assert [fields(row)[name]["optional"] for name in ("after_id", "source_table", "op")] == [True, False, False]


def test_a_schema_gets_another_name_and_version() -> None:
    settings = {"schema.name": "Thing", "schema.version": "4"}
    (row,) = unwrapped("SetSchemaMetadata$Value", settings)
    schema = json.loads(row["value"])["schema"]
    assert (schema["name"], schema["version"], payload(row["value"])) == ("Thing", 4, IMAGE)
    with pytest.raises(ConfigError, match="Neither schema name nor version"):
        unwrapped("SetSchemaMetadata$Value", {})


def test_schema_changes_of_a_kind_are_dropped() -> None:
    table_change = ConnectSchema("struct", fields=(Field("type", ConnectSchema("string")),))
    value = ConnectSchema(
        "struct",
        name="io.debezium.connector.x.SchemaChangeValue",
        fields=(Field("tableChanges", ConnectSchema("array", items=table_change)),),
    )
    texts = ['{"tableChanges":[{"type":"DROP"}]}', '{"tableChanges":[]}', '{"tableChanges":[{"type":"ALTER"}]}']
    columns = {"key": ['"k"'] * 3, "value": texts, "partition": pa.nulls(3, pa.int32())}
    batch = ControlBatch("server1", ConnectSchema("string"), value, pa.record_batch(columns))
    kind, name = "io.debezium.transforms.SchemaChangeEventFilter", "schema.change.event.exclude.list"
    assert [payload(row["value"]) for row in rows(batch, properties(kind, {name: "DROP,DATABASE"}))] == [
        json.loads(texts[2])
    ]
    with pytest.raises(ConfigError, match="unknown kind 'drop'"):
        rows(batch, properties(kind, {name: "drop"}))


def moved(settings: dict[str, str]) -> dict[str, Any]:
    """A row of an insert that got a header from its context."""
    given = properties(TO_VALUE, {"headers": "__debezium.context.connectorName", **settings})
    (row,) = rows(created(), {**given, "extended.headers.enabled": "true"})
    return row


def test_a_header_becomes_a_field_of_the_value_or_of_a_struct_in_it() -> None:
    row = moved({"fields": "who", "operation": "copy"})
    assert (payload(row["value"])["who"], len(headers(row))) == ("postgresql", 4)
    row = moved({"fields": "after.who", "operation": "move"})
    assert (payload(row["value"])["after"], len(headers(row))) == ({**IMAGE, "who": "postgresql"}, 3)
    row = moved({"fields": "new.who", "operation": "copy"})
    assert payload(row["value"])["new"] == {"who": "postgresql"}


def test_headers_and_fields_must_pair_and_structs_must_be_structs() -> None:
    with pytest.raises(ConfigError, match="same number of elements"):
        moved({"fields": "a,b", "operation": "copy"})
    with pytest.raises(ConfigError, match=r"operation: A value is required"):
        moved({"fields": "a"})
    with pytest.raises(TransformError, match="primitive type"):
        moved({"fields": "op.x", "operation": "copy"})


def test_records_without_the_header_stay_as_they_are() -> None:
    batch = changes(
        table(),
        {"op": "c", "after": IMAGE},
        {"op": "c", "after": {**IMAGE, "id": 2}},
        other_key=pa.array([{"id": 9}, None], pa.struct([("id", pa.int32())])),
    )
    given = properties(TO_VALUE, {"headers": "__debezium.oldkey", "fields": "was", "operation": "move"})
    first, second = rows(batch, given)
    assert (payload(first["value"])["was"], headers(first)) == ({"id": 9}, [])
    assert "was" not in payload(second["value"])


def test_vectors_become_json_at_any_depth() -> None:
    dense = ConnectSchema("array", True, "io.debezium.data.DoubleVector", 1, items=ConnectSchema("double"))
    short = ConnectSchema("array", True, "io.debezium.data.FloatVector", 1, items=ConnectSchema("float"))
    entries = ConnectSchema("map", keys=ConnectSchema("int16"), values=ConnectSchema("double"))
    sparse = ConnectSchema(
        "struct",
        True,
        "io.debezium.data.SparseDoubleVector",
        1,
        fields=(Field("dimensions", ConnectSchema("int16")), Field("vector", entries)),
    )
    pairs = pa.struct([("dimensions", pa.int16()), ("vector", pa.map_(pa.int16(), pa.float64()))])
    columns = (
        Column("id", ConnectSchema("int32"), pa.int32()),
        Column("d", dense, pa.list_(pa.float64())),
        Column("f", short, pa.list_(pa.float32())),
        Column("s", sparse, pairs),
    )
    of = TableSchema(TableId("golden", "public", "vectors"), columns, ("id",), ("id",))
    image = {"id": 1, "d": [1.0, 0.1], "f": [0.1], "s": {"dimensions": 5, "vector": [(3, 2.0), (1, 0.5)]}}
    batch = changes(of, {"op": "c", "after": image}, {"op": "c", "after": {"id": 2}})
    first, second = values(batch, properties("io.debezium.transforms.VectorToJsonConverter"))
    assert first["after"] == {
        "id": 1,
        "d": '{ "values": [1.0, 0.1] }',
        "f": '{ "values": [0.1] }',
        "s": '{ "dimensions": 5, "vector": { "1": 0.5, "3": 2.0 } }',
    }
    assert second["after"] == {"id": 2, "d": None, "f": None, "s": None}
