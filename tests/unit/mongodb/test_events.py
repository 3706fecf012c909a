"""Batches and change events as columns, from bytes put together here; the recordings test them on a real server."""

from __future__ import annotations

import datetime
import struct
import time
from typing import Any

import bson
import pytest
from bson import Binary, Int64, Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.log.batch import read_batch
from tailrace.connectors.mongodb.log.changes import Writer
from tailrace.connectors.mongodb.log.events import ChangeEvents
from tailrace.connectors.mongodb.types.json import RELAXED, SPACED, STRICT, json_text
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import DecodeError
from tests.unit.mongodb.types_documents import documents, names, values_of

WALL = datetime.datetime(2026, 7, 3, 12, 30, 0, 250000, datetime.timezone.utc)
SESSION = {"id": Binary(bytes(16), 4), "uid": b"\x01" * 32}


def event(number: int, operation: str = "insert", **fields: Any) -> dict[str, Any]:
    return {
        "_id": {"_data": f"82{number:08X}"},
        "operationType": operation,
        "clusterTime": Timestamp(1_700_000_000, number),
        "wallTime": WALL,
        "ns": {"db": "shop", "coll": "orders"},
        "documentKey": {"_id": number},
        **fields,
    }


def answer(events: list[dict[str, Any]], *, name: str = "nextBatch", cursor: int = 7, **rest: Any) -> bytes:
    whole = {"cursor": {name: events, "id": Int64(cursor), "ns": "shop.$cmd.aggregate", **rest}, "ok": 1.0}
    return bson.encode(whole)


def events_of(*events: dict[str, Any]) -> ChangeEvents:
    return ChangeEvents(read_batch(answer(list(events))).documents)


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 100, 1001, 12345])
@pytest.mark.parametrize("name", ["firstBatch", "nextBatch"])
def test_a_batch_of_any_size(count: int, name: str) -> None:
    batch = read_batch(
        answer([{"n": number} for number in range(count)], name=name, postBatchResumeToken={"_data": "8"})
    )
    assert json_text(batch.documents, RELAXED).to_pylist() == [f'{{"n": {number}}}' for number in range(count)]
    assert batch.cursor == 7
    assert batch.token == bson.encode({"_data": "8"})


def test_the_last_batch_of_a_query() -> None:
    batch = read_batch(answer([{"n": 1}], cursor=0))
    assert (batch.cursor, batch.token) == (0, None)


def test_an_answer_without_a_batch_is_an_error() -> None:
    with pytest.raises(DecodeError, match="no cursor with a batch"):
        read_batch(bson.encode({"ok": 1.0}))
    damaged = bytearray(answer([{"n": 1}, {"n": 2}]))
    at = damaged.index(struct.pack("<i", 12) + b"\x10n")
    damaged[at] = 13
    with pytest.raises(DecodeError, match="BSON that cannot be read"):
        read_batch(bytes(damaged))
    damaged[at] = 0
    with pytest.raises(DecodeError, match="a batch of documents"):
        read_batch(bytes(damaged))


@pytest.mark.parametrize("times", [1, 40])
def test_the_columns_of_events(times: int) -> None:
    described = {
        "updatedFields": {"a.b": Int64(1), "c": "x"},
        "removedFields": ["d", "e.0"],
        "truncatedArrays": [{"field": "list", "newSize": 2}],
    }
    empty: dict[str, Any] = {"updatedFields": {}, "removedFields": [], "truncatedArrays": []}
    rows = [
        event(1, fullDocument={"_id": 1, "a": Int64(5)}),
        event(2, "update", updateDescription=described, fullDocument=None, lsid=SESSION, txnNumber=Int64(3)),
        event(3, "update", updateDescription=empty, fullDocumentBeforeChange={"_id": 3}, txnNumber=Int64(4)),
        event(4, "delete", documentKey={"region": "x", "_id": "k"}, ns={"db": "shop", "coll": "a.b"}, lsid=SESSION),
        event(5, "dropDatabase", ns={"db": "old"}),
        {"_id": {"_data": "x"}, "operationType": "invalidate", "clusterTime": Timestamp(1, 2)},
    ]
    events = events_of(*rows * times)
    assert len(events) == 6 * times
    assert events.operations.to_pylist() == [row["operationType"] for row in rows] * times
    assert events.cluster_times[:6].tolist() == [*(1_700_000_000 << 32 | number for number in range(1, 6)), 1 << 32 | 2]
    assert events.wall_times.to_pylist()[:6] == [1783081800250] * 5 + [None]
    numbers, namespaces = events.namespaces
    assert namespaces == [("shop", "orders"), ("shop", "a.b"), ("old", None)]
    assert numbers.tolist() == [0, 0, 0, 1, 2, -1] * times
    assert events.key_text(RELAXED).to_pylist()[:6] == ["1", "2", "3", '"k"', "5", None]
    assert json_text(events.document_keys, STRICT).to_pylist()[3] == '{"region": "x","_id": "k"}'
    assert json_text(events.after, STRICT).to_pylist()[:3] == ['{"_id": 1,"a": {"$numberLong": "5"}}', None, None]
    assert json_text(events.before, STRICT).to_pylist()[:3] == [None, None, '{"_id": 3}']
    assert json_text(events.updated_fields, SPACED).to_pylist()[:4] == [None, '{"a.b": 1, "c": "x"}', "{}", None]
    assert events.removed_fields.to_pylist()[:4] == [None, ["d", "e.0"], [], None]
    assert events.truncated_arrays.to_pylist()[:4] == [None, [{"field": "list", "size": 2}], [], None]
    session = json_text(values_of([bson.encode(SESSION)]), STRICT)[0].as_py()
    assert events.sessions.to_pylist()[:4] == [None, session, None, None]
    assert events.transaction_numbers.to_pylist()[:4] == [None, 3, None, None]
    assert [bson.decode(token) for token in events.resume_tokens.to_pylist()] == [row["_id"] for row in rows] * times


def test_no_events() -> None:
    events = events_of()
    assert len(events) == 0
    assert events.namespaces[1] == []
    for column in (events.operations, events.sessions, events.removed_fields, events.truncated_arrays):
        assert column.to_pylist() == []


def test_servers_before_60_send_no_wall_time() -> None:
    row = event(1)
    del row["wallTime"]
    assert events_of(row).wall_times.to_pylist() == [None]


def test_a_stage_may_leave_out_the_cluster_time() -> None:
    """Debezium: SourceInfo.Position.getInc."""
    row, bare = event(1), event(2)
    del row["clusterTime"], bare["clusterTime"], bare["wallTime"]
    config = resolve({"mongodb.connection.string": "mongodb://h", "topic.prefix": "t"})
    (batch,) = Writer(config).chunk(events_of(row, bare, event(3))).batches
    assert batch.rows.column("source").field("ord").to_pylist() == [-1, -1, 3]
    known, read, _ = batch.rows.column("ts_us").to_pylist()
    assert known == round(WALL.timestamp() * 1_000_000)
    assert abs(read - time.time() * 1_000_000) < 60_000_000


@settings(deadline=None)
@given(data=st.lists(documents(), max_size=5), wanted=st.lists(names, max_size=8))
def test_any_names(data: list[bytes], wanted: list[bytes]) -> None:
    values = values_of(data)
    elements = members(values)
    every = [values.buffer.data[start:end] for start, end in zip(elements.names, elements.name_ends, strict=True)]
    wanted += every[::2]
    texts = list(dict.fromkeys(name.decode() for name in wanted))
    found = Names(texts).find(values.buffer, elements).tolist()
    assert found == [texts.index(name.decode()) if name.decode() in texts else -1 for name in every]


def test_long_names_that_differ_in_one_place() -> None:
    texts = [f"{'address' * 5}{number:02}{'street' * 5}" for number in range(50)]
    values = values_of([bson.encode(dict.fromkeys(texts, 1)), bson.encode({texts[3] + "x": 1, texts[3][:-1]: 1})])
    assert Names(texts[10:]).find(values.buffer, members(values)).tolist() == [-1] * 10 + [*range(40)] + [-1, -1]
