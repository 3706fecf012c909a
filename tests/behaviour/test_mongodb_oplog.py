"""The oplog gives the events that a change stream gives: `capture.mode=oplog` beside `change_streams`."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import ReplaceOne, UpdateOne

from tailrace.errors import OffsetError, SourceError, TailraceError
from tests.servers.mongodb.server import Client, ReplicaSet
from tests.servers.mongodb.stream import Record, Stream, parsed, payloads_of, streaming

MEGABYTE = 1 << 20
OPLOG = {"capture__mode": "oplog"}
STREAM = {"capture__mode": "change_streams_update_full", "compat__version": "1.1"}


@pytest.fixture(scope="module")
def servers() -> Iterator[ReplicaSet]:
    """A replica set of these tests."""
    with ReplicaSet() as servers:
        yield servers


@pytest.fixture
def client(servers: ReplicaSet) -> Iterator[Client]:
    with servers.client() as client:
        client.drop_database("inventory")
        client.inventory.create_collection("things")
        yield client


def comparable(records: list[Record]) -> list[Any]:
    """The records without the clock's time."""
    found = []
    for record in records:
        value = record["value"] and {**record["value"]["payload"], "ts_ms": None}
        found.append((record["topic"], record["key"] and record["key"]["payload"], value))
    return found


@pytest.fixture
def both(client: Client, servers: ReplicaSet) -> Iterator[tuple[Stream, Stream]]:
    with streaming(servers, **OPLOG) as oplog, streaming(servers, **STREAM) as stream:
        yield oplog, stream


def same(both: tuple[Stream, Stream], least: int) -> list[Any]:
    """The events of the oplog, which are those of the change stream."""
    oplog, stream = (comparable(each.records()) for each in both)
    assert len(oplog) >= least
    assert oplog == stream
    return [value for _, _, value in oplog]


def started(url: str, **properties: str) -> list[Record]:
    """The first records of a pipeline that is closed again."""
    stream = Stream(url, **OPLOG, **properties)
    try:
        return stream.records()
    finally:
        stream.capture.close()


VALUES: list[Any] = [
    *(1, 2.5, "text", "", True, None, Int64(2**40), Decimal128("1.50"), ObjectId(), b"bytes", Binary(b"u", 4)),
    *(Regex("^a", "i"), Code("f()"), Code("f()", {"a": 1}), Timestamp(1, 2), MinKey(), MaxKey()),
    *(datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), {"a": {"b": [1, {"c": 2}]}}, [], {}),
]


def test_every_type_and_operation(both: tuple[Stream, Stream], client: Client) -> None:
    things = client.inventory.things
    things.insert_many({"_id": number, "value": value} for number, value in enumerate(VALUES))
    for number, value in enumerate(VALUES):
        things.update_one({"_id": number}, {"$set": {"other": value, "in.side": value}, "$unset": {"value": 1}})
    things.replace_one({"_id": 1}, {"whole": "new"})
    things.delete_many({})
    for key in VALUES:
        if not isinstance(key, list | Regex) and key is not None:
            things.insert_one({"_id": key})
    events = same(both, 4 * len(VALUES))
    replaced = next(event for event in events if event and event["patch"] and "whole" in event["patch"])
    assert parsed(replaced["patch"]) == {"_id": 1, "whole": "new"}


@pytest.mark.parametrize("seed", range(4))
def test_random_updates(both: tuple[Stream, Stream], client: Client, seed: int) -> None:
    chance, things = random.Random(seed), client.inventory.things

    def value(depth: int = 0) -> Any:
        kind = chance.randrange(4 if depth < 3 else 2)
        if kind == 2:
            return {chance.choice("abcd"): value(depth + 1) for _ in range(3)}
        if kind == 3:
            return [value(depth + 1) for _ in range(chance.randrange(5))]
        return chance.choice(VALUES[:9])

    for key in range(20):
        things.insert_one({"_id": key, **{name: value() for name in "abcd"}})
    for _ in range(300):
        # A pipeline's update is written as the difference of two documents, whatever is nested in them.
        document = {name: {"$literal": value()} for name in chance.sample("abcde", 3)}
        removed = {"$unset": [chance.choice("bcd"), "a.b"]}
        things.update_one({"_id": chance.randrange(20)}, [{"$set": document}, removed])
    assert any("$unset" in (event["patch"] or "") for event in same(both, 300) if event)


def test_an_array_that_was_cut_is_set_to_what_is_left(both: tuple[Stream, Stream], client: Client) -> None:
    things = client.inventory.things
    things.insert_one({"_id": 1, "in": {"a": [1, 2, 3, {"b": 4}], "c": 5, "text": "x" * 100}, "text": "x" * 100})
    things.update_one({"_id": 1}, [{"$set": {"in.a": {"$slice": ["$in.a", 2]}, "in.c": 6}}])
    _, update = same(both, 2)
    assert parsed(update["patch"]) == {"$set": {"in.a": [1, 2], "in.c": 6}}


def test_transactions_of_any_size(both: tuple[Stream, Stream], client: Client) -> None:
    things = client.inventory.things
    with client.start_session() as session:
        with session.start_transaction():
            things.insert_one({"_id": 1}, session=session)
            things.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
            things.delete_one({"_id": 1}, session=session)
        with session.start_transaction():
            # More than the 16 MB of an entry, so that the oplog has it in several.
            for key in range(2, 5):
                things.insert_one({"_id": key, "text": "x" * (8 * MEGABYTE)}, session=session)
        session.start_transaction()
        things.insert_one({"_id": 9}, session=session)
        session.abort_transaction()
    assert [event and event["op"] for event in same(both, 7)] == ["c", "u", "d", None, "c", "c", "c"]


def test_what_is_not_captured(both: tuple[Stream, Stream], client: Client) -> None:
    client.inventory.things.create_index("a")
    client.elsewhere.things.insert_one({"_id": 1})
    client.inventory.create_collection("seen", viewOn="things", pipeline=[])
    client.inventory.things.bulk_write([UpdateOne({"_id": 1}, {"$set": {"a": 1}}, upsert=True), ReplaceOne({}, {})])
    with client.start_session() as session, session.start_transaction():
        client.elsewhere.things.insert_one({"_id": 2}, session=session)
        client.inventory.things.insert_one({"_id": 2}, session=session)
    assert [event["op"] for event in same(both, 3)] == ["c", "u", "c"]


def test_a_scope(servers: ReplicaSet, client: Client) -> None:
    scope = {"capture__scope": "collection", "capture__target": "inventory.things"}
    with streaming(servers, **OPLOG, **scope) as stream:
        client.inventory.others.insert_one({"_id": 1})
        with client.start_session() as session, session.start_transaction():
            client.inventory.others.insert_one({"_id": 2}, session=session)
            client.inventory.things.insert_one({"_id": 3}, session=session)
        client.inventory.things.insert_one({"_id": 4})
        assert [parsed(event["after"]) for event in payloads_of(stream.records())] == [{"_id": 3}, {"_id": 4}]


def test_the_shape_of_today_can_be_had_as_well(servers: ReplicaSet, client: Client) -> None:
    with streaming(servers, **OPLOG, compat__version="current") as stream:
        client.inventory.things.insert_one({"_id": 1, "a": 1})
        client.inventory.things.update_one({"_id": 1}, {"$set": {"a": 2}})
        create, update = payloads_of(stream.records())
    assert parsed(create["after"]) == {"_id": 1, "a": 1}
    assert update["after"] is None
    assert parsed(update["updateDescription"]["updatedFields"]) == {"a": 2}


def test_a_snapshot_and_what_follows(servers: ReplicaSet, client: Client) -> None:
    client.inventory.things.insert_one({"_id": 1})
    stream = Stream(servers.url(), **OPLOG)
    try:
        (read,) = payloads_of(stream.records())
        client.inventory.things.insert_one({"_id": 2})
        (create,) = payloads_of(stream.records())
    finally:
        stream.capture.close()
    assert (read["op"], create["op"]) == ("r", "c")


def test_a_log_that_begins_later_is_an_error(servers: ReplicaSet, client: Client) -> None:
    old = {"snapshot__mode": "no_data", "capture__start__op__time": str(1_000_000_000 << 32)}
    with pytest.raises(OffsetError, match="no longer has the changes since 2001"):
        started(servers.url(), **old)


@pytest.mark.parametrize("mode", [OPLOG, STREAM])
def test_a_start_at_a_cluster_time(servers: ReplicaSet, client: Client, mode: dict[str, str]) -> None:
    client.inventory.things.insert_one({"_id": 1})
    time = client.admin.command("hello")["lastWrite"]["opTime"]["ts"]
    client.inventory.things.insert_one({"_id": 2})
    given = str(time.time << 32 | time.inc)
    with streaming(servers, **mode, capture__start__op__time=given) as stream:
        assert [event["op"] for event in payloads_of(stream.records())] == ["c", "c"]


def test_a_user_without_the_right_gets_an_error_that_names_it() -> None:
    with ReplicaSet(auth=True) as servers, servers.client() as client:
        client.inventory.things.insert_one({"_id": 1})
        servers.create_user("reader", "secret", [{"role": "readAnyDatabase", "db": "admin"}])
        with pytest.raises(SourceError, match=r"may not read the oplog, local\.oplog\.rs") as caught:
            started(servers.url("reader", "secret"), snapshot__mode="no_data")
        assert '{role: "read", db: "local"}' in (caught.value.remedy or "")


def test_a_pipeline_of_stages_is_refused(servers: ReplicaSet) -> None:
    with pytest.raises(TailraceError, match="the oplog is read without stages"):
        started(servers.url(), cursor__pipeline="[]")
