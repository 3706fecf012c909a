"""Recordings of the reference engine turned back into change batches: encoding them must give the same bytes."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from decimal import Context, Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.position import SOURCE_TYPE
from tailrace.model.change import TRANSACTION_TYPE, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema

SHARED = Path(os.environ.get("TAILRACE_SHARED") or Path(__file__).parents[4] / "shared")
ALL, SOME = SHARED / "golden" / "postgres", Path(__file__).parents[2] / "golden" / "postgres"
GOLDEN = ALL if ALL.exists() else SOME
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
_READ = ("topic.", "schema.name.", "field.name.", "tombstones.", "extended.", "unavailable.")
_VOLATILE = (
    (re.compile(r'("source":\{"version":)"[^"]*"'), r'\1"-"'),
    (re.compile(r'"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+(\}+)$'), r'"ts"\1'),
    (re.compile(r'(__debezium.context.runId.*"payload":)"[^"]*"'), r'\1"-"'),
)


def config(**properties: str) -> Config:
    """A configuration with these properties, `_` for `.`."""
    return configured({name.replace("_", "."): value for name, value in properties.items()})


def configured(properties: dict[str, str]) -> Config:
    """A configuration with these properties and what is required beside them."""
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "server1"}
    return resolve({**base, **properties})


def config_of(scenario: str) -> Config:
    """The properties of a scenario that bear on encoding."""
    given = json.loads((GOLDEN / scenario / "connector.json").read_text())["config"]
    return configured({name: value for name, value in given.items() if name.startswith(_READ)})


def lines(scenario: str) -> list[str]:
    """The recorded lines."""
    return (GOLDEN / scenario / "expected.jsonl").read_text().splitlines()


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


def batches(recording: list[str], names: dict[str, str] | None = None) -> Iterator[tuple[ChangeBatch, list[str]]]:
    """Neighbouring table events of one schema as a batch, with their lines (tombstones among them).

    `order` is twice the number of the line. `names` gives back the column names that an adjustment changed.
    """

    def group(line: str) -> str:
        value = json.loads(line)["value"]
        nonlocal last
        if value is not None:
            last = json.dumps([value["schema"], json.loads(line)["topic"]])
            if value["schema"].get("name", "").endswith(".Envelope"):
                source = value["payload"]["source"]
                last += f"{source['schema']}.{source['table']}"
        return last

    last = ""
    place = 0
    for _, run in groupby(recording, group):
        mine = list(run)
        events = [{**json.loads(line), "at": place + index} for index, line in enumerate(mine)]
        events = [event for event in events if event["value"] is not None]
        place += len(mine)
        if events and events[0]["value"]["schema"].get("name", "").endswith(".Envelope"):
            yield _batch(events, names or {}), mine


def _batch(events: list[dict[str, Any]], names: dict[str, str]) -> ChangeBatch:
    payloads = [event["value"]["payload"] for event in events]
    source = payloads[0]["source"]
    row = ConnectSchema.from_json(events[0]["value"]["schema"]["fields"][0])
    columns = tuple(Column(names.get(f.name, f.name), f.schema, arrow_type(f.schema)) for f in row.fields)
    keys = [event["key"]["payload"] for event in events if event["key"] is not None]
    key = tuple(names.get(name, name) for name in (keys[0] if keys else ()) if not name.startswith("__dbz__"))
    identity = tuple(column.name for column in columns)
    table = TableSchema(TableId(source["db"], source["schema"], source["table"]), columns, key, identity)

    def image(payload: Any) -> Any:
        value = value_of(payload, row)
        return value and {names.get(name, name): each for name, each in value.items()}

    def other(event: dict[str, Any]) -> Any:
        headers = event["headers"]
        found = headers.get("__debezium.newkey") or headers.get("__debezium.oldkey")
        return found and found["payload"]

    data: dict[str, pa.Array] = {
        "op": pa.array([payload["op"] for payload in payloads], pa.string()),
        "order": pa.array([2 * event["at"] for event in events], pa.int64()),
        "ts_us": pa.array([payload["source"]["ts_us"] for payload in payloads], pa.int64()),
        "snapshot": pa.array([_marker(payload) for payload in payloads], pa.string()),
        "source": pa.array([_source(payload["source"]) for payload in payloads], SOURCE_TYPE),
        "before": pa.array([image(payload["before"]) for payload in payloads], table.row_type),
        "after": pa.array([image(payload["after"]) for payload in payloads], table.row_type),
        "transaction": pa.array([payload["transaction"] for payload in payloads], TRANSACTION_TYPE),
    }
    if any(other(event) for event in events):
        kind = pa.struct([pa.field(name, table.column(name).arrow) for name in key])
        data["other_key"] = pa.array([other(event) for event in events], kind)
    return ChangeBatch(table, pa.record_batch(data))


def _marker(payload: dict[str, Any]) -> str | None:
    marker = payload["source"]["snapshot"]
    return None if marker == "false" else str(marker)


def _source(block: dict[str, Any]) -> dict[str, Any]:
    last_commit = json.loads(block["sequence"])[0]
    return {**block, "last_commit": None if last_commit is None else int(last_commit)}
