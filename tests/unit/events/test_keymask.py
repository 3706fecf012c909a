"""Masks that leave event keys plain, as with `compat.faults`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError
from tailrace.events.keychange import split_key_changes
from tailrace.events.keymask import mask_images
from tailrace.events.shapes import EventShaper
from tailrace.model.change import PLAIN_KEY, ChangeBatch, from_ipc
from tailrace.model.masks import Hash, Masking, Stars, Truncate
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.parts import parts
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import BARE, changes, table
from tests.unit.events.event_recordings import configured

STARS = Masking(Stars(3), "", 10)
ROWS = (
    {"op": "c", "after": {"id": 1, "code": "plain", "note": "n"}},
    {"op": "u", "before": {"id": 1, "code": "plain", "note": "n"}, "after": {"id": 1, "code": "new", "note": "n"}},
    {"op": "d", "before": {"id": 1, "code": "new", "note": None}},
    {"op": "t"},
)


def masked_table(masking: Masking = STARS) -> TableSchema:
    of = table(key=("code", "id"), identity=("id", "code", "note"))
    columns = tuple(replace(column, masking=masking) if column.name == "code" else column for column in of.columns)
    return replace(of, columns=columns)


def prepared(masking: Masking = STARS) -> ChangeBatch:
    return mask_images(split_key_changes(changes(masked_table(masking), *ROWS), has_zeros=True))


@pytest.mark.parametrize(
    "transform",
    [
        {},
        {
            "transforms": "t",
            "transforms.t.type": "io.debezium.transforms.TimezoneConverter",
            "transforms.t.converted.timezone": "UTC",
        },
    ],
)
def test_keys_are_plain_and_images_masked(transform: dict[str, str]) -> None:
    encoder = Encoder(configured({**BARE, **transform}), SOURCE, "run")
    rows = [row for out in encoder.encode(prepared()) for row in out.to_pylist()]
    keys = [None if row["key"] is None else json.loads(row["key"])["code"] for row in rows]
    assert keys == ["plain", "plain", "plain", "new", "new", "new", None]
    images = [image for row in rows if row["value"] for image in _images(json.loads(row["value"]))]
    assert [image["code"] for image in images] == ["***"] * 4
    others = [json.loads(each["value"]) for row in rows for each in row["headers"] if each["key"].endswith("key")]
    assert [_payload(other)["code"] for other in others] == ["new", "new", "plain"]


def _payload(node: Any) -> Any:
    return node.get("payload", node)


def _images(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [value[side] for side in ("before", "after") if value[side] is not None]


def test_the_shape_event_has_the_plain_key() -> None:
    shaper = EventShaper(configured({"shape": "event"}), SOURCE)
    rows = [row for out in shaper.encode(prepared()) for row in out.to_pylist()]
    assert [row["key"] and json.loads(row["key"])["code"] for row in rows] == ["plain", "plain", "new", "new", None]
    assert {json.loads(row["after"])["code"] for row in rows if row["after"]} == {"***"}


@pytest.mark.parametrize("masking", [STARS, Masking(Truncate(2), None, 2), Masking(Hash("MD5", "s", True), "", 9)])
def test_masks_travel_with_the_table_until_they_are_applied(masking: Masking) -> None:
    of = masked_table(masking)
    assert TableSchema.from_json(of.to_json()) == of
    assert prepared(masking).table == table(key=("code", "id"), identity=("id", "code", "note"))


def test_without_masks_on_keys_a_batch_stays_as_it_is() -> None:
    batch = changes(table(), *ROWS)
    assert mask_images(batch) is batch


def test_a_replica_refuses_rows_without_their_key() -> None:
    batch = prepared()
    again = from_ipc(batch.to_ipc())
    assert isinstance(again, ChangeBatch)
    assert again.column(PLAIN_KEY) == batch.column(PLAIN_KEY)
    with pytest.raises(ConfigError, match=r"remove compat\.faults"):
        list(parts([pa.py_buffer(batch.to_ipc())]))
