"""Change batches through transforms, as one writes them in a connector's properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.config.faults import NO_FAULTS, Faults
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.classes import TRANSFORMS
from tailrace.transforms.encoder import Encoder
from tailrace.transforms.settings import Given
from tests.unit.events.event_recordings import configured

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"


def properties(kind: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties of one transform named t."""
    return {"transforms": "t", "transforms.t.type": kind} | {
        f"transforms.t.{name}": value for name, value in (settings or {}).items()
    }


def rows(batch: ChangeBatch | ControlBatch, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of the `kafka` shape, without context headers unless they are asked for."""
    encoder = Encoder(configured({"extended.headers.enabled": "false", **given}), SOURCE, "run")
    return [row for out in encoder.encode(batch) for row in out.to_pylist()]


def payload(text: str | None) -> Any:
    """What stands under `payload`; None without a key or value."""
    return None if text is None else json.loads(text)["payload"]


def values(batch: ChangeBatch | ControlBatch, given: Mapping[str, str]) -> list[Any]:
    """The payloads of the values; a tombstone's is the word tombstone."""
    return ["tombstone" if row["value"] is None else payload(row["value"]) for row in rows(batch, given)]


def headers(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and payloads of a row's headers, in their order."""
    return [(each["key"], payload(each["value"].decode())) for each in row["headers"] or ()]


def fields(row: Mapping[str, Any], side: str = "value") -> dict[str, dict[str, Any]]:
    """The schemas of a key's or value's fields by name."""
    return {field["field"]: field for field in json.loads(row[side])["schema"]["fields"]}


def applied(kind: str, settings: Mapping[str, str], absent: pa.Array | None = None, **fields: RecordPart) -> RecordPart:
    """A struct of these fields after one of Kafka Connect's transforms of values."""
    rows = len(next(iter(fields.values())).values)
    schema = ConnectSchema("struct", optional=absent is not None)
    return applied_to(struct(schema, list(fields.items()), rows, absent), kind, settings)


def applied_to(value: RecordPart, kind: str, settings: Mapping[str, str], faults: Faults = NO_FAULTS) -> RecordPart:
    """A value after one of Kafka Connect's transforms of values; `faults` is compat.faults."""
    rows = len(value.values)
    records = Records(
        order=np.arange(rows),
        topic=pa.array(["t"] * rows),
        partition=pa.nulls(rows, pa.int32()),
        timestamp=pa.nulls(rows, pa.timestamp("us", "UTC")),
        key=None,
        value=value,
    )
    given = Given("transforms.t.", settings, faults)
    (made,) = TRANSFORMS[f"org.apache.kafka.connect.transforms.{kind}"](given).apply(records)
    assert made.value is not None
    return made.value
