"""Record formats of earlier releases (`compat.version`): source blocks, envelopes, and patches of the oplog era."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import bson
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.options import COMPAT_VERSION
from tailrace.connectors.mongodb.position import BLOCK, INT32, JSON
from tailrace.connectors.mongodb.types.json import STRICT, json_text
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.model.arrow import join
from tailrace.model.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING, Field
from tailrace.model.source import AFTER, OLD_SNAPSHOT, SOURCE, EnvelopeLayout, SourceBlock

CURRENT, OPLOG = "current", "1.1"
PATCH, FILTER = "patch", "filter"
_NEW = ("ts_us", "ts_ns")
_COMMON = tuple(
    Field("snapshot", OLD_SNAPSHOT) if each.name == "snapshot" else each
    for each in BLOCK.common
    if each.name not in _NEW
)
_PLACE = (Field("rs", STRING), Field("collection", STRING), Field("ord", INT32), Field("h", OPTIONAL_INT64))
_TRANSACTION = (
    Field("tord", OPTIONAL_INT64),
    Field("stxnid", OPTIONAL_STRING),
    Field("lsid", OPTIONAL_STRING),
    Field("txnNumber", OPTIONAL_INT64),
)
_BLOCKS = {
    CURRENT: BLOCK,
    "2.1": replace(BLOCK, fields=(*_PLACE, *_TRANSACTION), common=_COMMON, version=None, is_old=True),
    OPLOG: replace(
        BLOCK,
        fields=_PLACE,
        common=tuple(each for each in _COMMON if each.name != "sequence"),
        version=None,
        envelope=EnvelopeLayout(
            (
                AFTER,
                Field(PATCH, JSON),
                Field(FILTER, JSON),
                SOURCE,
                Field("op", OPTIONAL_STRING),
                Field("ts_ms", OPTIONAL_INT64),
            ),
            is_document=True,
        ),
        is_old=True,
    ),
}


def source_block(config: Config) -> SourceBlock:
    """The `source` block and the envelope of a configuration."""
    return _BLOCKS[config[COMPAT_VERSION]]


def is_current(config: Config) -> bool:
    """Whether records have today's shape."""
    return config[COMPAT_VERSION] == CURRENT


def is_debezium_1(config: Config) -> bool:
    """Whether updates are patches."""
    return config[COMPAT_VERSION] == OPLOG


def filters(events: ChangeEvents) -> pa.Array:
    """What selects the document of an update or a deletion: its key, with the fields of a shard key."""
    return json_text(events.document_keys, STRICT)


def patches(events: ChangeEvents) -> pa.Array:
    """What updates did: the new document, or `$set` and `$unset`; null for other changes.

    An array that was cut is set to what is left of it, as far as the whole document came with the change.
    """
    texts = json_text(events.after, STRICT)
    is_replace = pc.equal(events.operations, "replace")
    updated, removed = json_text(events.updated_fields, STRICT), events.removed_fields
    has_set = pc.not_equal(pc.fill_null(updated, "{}"), "{}")
    set_ = pc.if_else(has_set, join('"$set": ', pc.fill_null(updated, "{}")), None)
    unset = pa.array([_unset(names) for names in removed.to_pylist()], pa.string())
    parts = pc.coalesce(join(set_, ", ", unset), set_, unset, "")
    described = pa.array(events.is_described, pa.bool_())
    plain = pc.if_else(described, join("{", parts, "}"), None)
    return pc.if_else(is_replace, texts, _with_arrays(events, plain))


def _unset(names: list[str] | None) -> str | None:
    if not names:
        return None
    return '"$unset": ' + json.dumps(dict.fromkeys(names, True), ensure_ascii=False)


def _with_arrays(events: ChangeEvents, plain: pa.Array) -> pa.Array:
    """The patches with the arrays that were cut; such updates are rare, so they are made one by one."""
    cut = events.truncated_arrays.to_pylist()
    rows = [row for row, arrays in enumerate(cut) if arrays]
    if not rows:
        return plain
    texts = plain.to_pylist()
    for row in rows:
        document = _document(events.after, row)
        left_of_field = [] if document is None else [(each["field"], _left(document, each)) for each in cut[row]]
        left = {name: array for name, array in left_of_field if array is not None}
        patch = json.loads(texts[row])
        patch["$set"] = {**json.loads(_text(left)), **patch.get("$set", {})}
        texts[row] = json.dumps(patch, ensure_ascii=False)
    return pa.array(texts, pa.string())


def _document(values: Values, row: int) -> dict[str, Any] | None:
    if not values.present[row]:
        return None
    start, end = int(values.starts[row]), int(values.ends()[row])
    return dict(bson.decode(bytes(values.buffer.data[start:end])))


def _left(document: dict[str, Any], cut: dict[str, Any]) -> list[Any] | None:
    """What an array has before its new end; None where the document, which may be newer, has no such array."""
    node: Any = document
    for name in cut["field"].split("."):
        if isinstance(node, list) and name.isdecimal():
            node = node[int(name)] if int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node[: cut["size"]] if isinstance(node, list) else None


def _text(document: dict[str, Any]) -> str:
    buffer = Buffer([bson.encode(document)])
    return str(json_text(Values.documents(buffer, np.zeros(1, np.int64)), STRICT)[0].as_py())
