"""Recordings of the reference engine turned back into change batches: encoding them must give the same bytes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal
from functools import cache
from itertools import groupby
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.converter_names import JSON
from tailrace.connectors.postgres.config import resolve
from tailrace.model.change import TRANSACTION_TYPE, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms.registry import CHECKS
from tests.unit.events.recorded_layouts import MONGODB, POSTGRES, Recorded

GOLDEN = POSTGRES.folder
RUN_ID = "01a1fe5a-7687-7d40-b5ad-f9c63dc6cc98"

_ARROW = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_DOCUMENT = "document"
_KNOWN = {"before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction"}
_READ = ("topic.", "schema.name.", "field.name.", "tombstones.", "extended.", "unavailable.")
_VOLATILE = (
    (re.compile(r'("source":\{"version":)"[^"]*"'), r'\1"-"'),
    # When an envelope was built: at its end, before `transaction` or before a schema change's database.
    (re.compile(r'"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+(\}+)$'), r'"ts"\1'),
    (re.compile(r'("op":"."),"ts_ms":\d+,"transaction"'), r'\1,"ts","transaction"'),
    (re.compile(r'\},"ts_ms":\d+,"databaseName"'), r'},"ts","databaseName"'),
    # Elsewhere reads and schema changes may have a clock of nanoseconds; a batch holds microseconds.
    (re.compile(r'("connector":"(?!postgresql)[^{}]*"ts_ns":\d+)\d{3}(?=,)'), r"\1***"),
    (re.compile(r'(__debezium.context.runId.*"payload":)"[^"]*"'), r'\1"-"'),
)


def original(text: str) -> dict[str, str]:
    """The column names of a recording that field.name.adjustment.mode=avro_unicode changed, by the changed ones."""
    found = set(re.findall(r'"field":"(\w*_u[0-9a-f]{3,4}\w*)"', text))
    return {name: re.sub(r"_u([0-9a-f]{3,4})", lambda match: chr(int(match[1], 16)), name) for name in found}


def config(**properties: str) -> Config:
    """A configuration with these properties, `_` for `.`."""
    return configured({name.replace("_", "."): value for name, value in properties.items()})


def configured(properties: dict[str, str]) -> Config:
    """A configuration with these properties and what is required beside them."""
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "server1"}
    # As it was recorded.
    base["header.converter"] = JSON
    return resolve({**base, **properties}, CHECKS)


@cache
def config_of(scenario: str, of: Recorded = POSTGRES) -> Config:
    """The properties of a scenario that bear on encoding."""
    given = json.loads((of.folder / scenario / "connector.json").read_text())["config"]
    read = {name: value for name, value in given.items() if name.startswith(_READ)}
    return configured({"compat.faults": "true", **read})


def lines(scenario: str, of: Recorded = POSTGRES) -> list[str]:
    """The recorded lines."""
    return (of.folder / scenario / "expected.jsonl").read_text(encoding="utf-8").split("\n")[:-1]


def stable(text: str | None) -> str | None:
    """A JSON text without what differs from run to run."""
    for pattern, replacement in _VOLATILE:
        text = None if text is None else pattern.sub(replacement, text)
    return text


def arrow_type(schema: ConnectSchema) -> pa.DataType:
    """The Arrow type a column of this schema is held in."""
    if schema.type == "struct":
        return pa.struct([pa.field(field.name, arrow_type(field.schema)) for field in schema.fields])
    if schema.items is not None:
        return pa.list_(arrow_type(schema.items))
    if schema.keys is not None and schema.values is not None:
        return pa.map_(arrow_type(schema.keys), arrow_type(schema.values))
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        return pa.decimal128(38, int(dict(schema.parameters)["scale"]))
    return _ARROW[schema.type]


def value_of(payload: Any, schema: ConnectSchema) -> Any:
    """A value from its JSON."""
    if payload is None:
        return None
    if schema.type == "struct":
        return {field.name: value_of(payload[field.name], field.schema) for field in schema.fields}
    if schema.items is not None:
        return [value_of(item, schema.items) for item in payload]
    if schema.keys is not None and schema.values is not None:
        pairs = payload.items() if isinstance(payload, dict) else payload
        return [(value_of(key, schema.keys), value_of(value, schema.values)) for key, value in pairs]
    if schema.name == "org.apache.kafka.connect.data.Decimal":
        number = int.from_bytes(base64.b64decode(payload), "big", signed=True)
        return Decimal(number).scaleb(-int(dict(schema.parameters)["scale"]), Context(prec=80))
    if schema.type == "bytes":
        return base64.b64decode(payload)
    return float(payload) if schema.type in ("float", "double") else payload


def batches(
    recording: list[str], names: dict[str, str] | None = None, of: Recorded = POSTGRES
) -> Iterator[tuple[ChangeBatch, list[str]]]:
    """Neighbouring table events of one schema as a batch, with their lines (tombstones among them).

    `order` is twice the number of the line. `names` gives back the column names that an adjustment changed.
    """
    last, place = "", 0

    def group(line: str) -> str:
        nonlocal last
        event = json.loads(line)
        value = event["value"]
        if value is not None:
            last = json.dumps([value["schema"], event["topic"]])
            if _is_envelope(value):
                last += str(_table(value["payload"]["source"], of))
        return last

    for _, run in groupby(recording, group):
        mine = list(run)
        events = [{**json.loads(line), "at": place + index} for index, line in enumerate(mine)]
        events = [event for event in events if event["value"] is not None]
        place += len(mine)
        if events and _is_envelope(events[0]["value"]):
            yield _batch(events, names or {}, of), mine


def _is_envelope(value: dict[str, Any]) -> bool:
    return str(value["schema"].get("name", "")).endswith(".Envelope")


def _table(source: dict[str, Any], of: Recorded) -> TableId:
    own = source["collection"] if of is MONGODB else source["table"]
    return TableId(source["db"], source.get("schema", ""), own, of.shown)


def _batch(events: list[dict[str, Any]], names: dict[str, str], of: Recorded) -> ChangeBatch:
    payloads = [event["value"]["payload"] for event in events]
    keys = [event["key"] for event in events if event["key"] is not None]
    members = {field["field"]: field for field in events[0]["value"]["schema"]["fields"]}
    shown, key = _columns(members["before"], keys, names)
    hidden = tuple(column for column in key if column.name not in {each.name for each in shown})
    columns = (*shown, *(replace(column, in_value=False) for column in hidden))
    identity = tuple(column.name for column in columns)
    table_id = _table(payloads[0]["source"], of)
    table = TableSchema(table_id, columns, tuple(column.name for column in key), identity)
    data: dict[str, pa.Array] = {
        "op": pa.array([payload["op"] for payload in payloads], pa.string()),
        "order": pa.array([2 * event["at"] for event in events], pa.int64()),
        "ts_us": pa.array([payload["source"]["ts_us"] for payload in payloads], pa.int64()),
        "snapshot": pa.array([_marker(payload) for payload in payloads], pa.string()),
        "source": pa.array([_source(payload["source"]) for payload in payloads], of.source),
        "before": pa.array([_image(event, "before", table, names) for event in events], table.row_type),
        "after": pa.array([_image(event, "after", table, names) for event in events], table.row_type),
        "transaction": pa.array([payload["transaction"] for payload in payloads], TRANSACTION_TYPE),
    }
    for name in sorted(set(members) - _KNOWN):
        schema = ConnectSchema.from_json(members[name])
        data[name] = pa.array([value_of(payload[name], schema) for payload in payloads], arrow_type(schema))
    others = [_other_key(event) for event in events]
    if any(others):
        data["other_key"] = pa.array(others, pa.struct([pa.field(each.name, each.arrow) for each in key]))
    return ChangeBatch(table, pa.record_batch(data))


def _columns(
    image: dict[str, Any], keys: list[dict[str, Any]], names: dict[str, str]
) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """The columns of values, or the one column of documents; and those of the key."""

    def column(name: str, schema: ConnectSchema) -> Column:
        return Column(names.get(name, name), schema, arrow_type(schema))

    row = ConnectSchema.from_json(image)
    shown = tuple(column(f.name, f.schema) for f in row.fields) if row.type == "struct" else (column(_DOCUMENT, row),)
    known = {each.name: each for each in shown}
    fields = ConnectSchema.from_json(keys[0]["schema"]).fields if keys else ()
    parts = [column(field.name, field.schema) for field in fields if not field.name.startswith("__dbz__")]
    return shown, tuple(known.get(part.name, part) for part in parts)


def _image(event: dict[str, Any], side: str, table: TableSchema, names: dict[str, str]) -> dict[str, Any] | None:
    """A row image: the recorded one, and from the event's key what the image lacks.

    Documents have an image wherever a key has to come from, even if there is no text.
    """
    value = event["value"]["payload"][side]
    is_document = table.columns[0].name == _DOCUMENT
    if is_document:
        has_key = side == ("before" if event["value"]["payload"]["op"] == "d" else "after")
        value = {_DOCUMENT: value} if value is not None or has_key else None
    if value is None:
        return None
    key = event["key"]["payload"] if event["key"] is not None else {}
    found = {names.get(name, name): each for name, each in {**key, **value}.items()}
    return {column.name: value_of(found[column.name], column.schema) for column in table.columns}


def _other_key(event: dict[str, Any]) -> Any:
    found = event["headers"].get("__debezium.newkey") or event["headers"].get("__debezium.oldkey")
    return found and found["payload"]


def _marker(payload: dict[str, Any]) -> str | None:
    marker = payload["source"]["snapshot"]
    return None if marker == "false" else str(marker)


def _source(block: dict[str, Any]) -> dict[str, Any]:
    last_commit = None if block["sequence"] is None else json.loads(block["sequence"])[0]
    return {**block, "last_commit": None if last_commit is None else int(last_commit)}
