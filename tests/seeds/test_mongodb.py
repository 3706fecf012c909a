"""The requirements of the specifications of MongoDB: S000 (patch and filter) and S001 (change streams).

Each test names the requirements that it verifies. JSON texts are compared parsed: the blanks in the documents differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Int64, ObjectId

from tests.servers.mongodb.server import Client, ReplicaSet
from tests.servers.mongodb.stream import NAME, Record, Stream, parsed, payloads_of, streaming

SAMPLES = Path(__file__).parent / "samples"
DEMANDS = {"S000": 54, "S001": 81}
ANNE = {"_id": Int64(1004), "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
seed = pytest.mark.seed


def sample(document: str, number: int) -> Any:
    """A sample of a document."""
    (path,) = SAMPLES.glob(f"{document}-{number:02}-*")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def servers() -> Iterator[ReplicaSet]:
    """A replica set of these tests."""
    with ReplicaSet() as servers:
        yield servers


@pytest.fixture
def client(servers: ReplicaSet) -> Iterator[Client]:
    """A client of a set without data."""
    with servers.client() as client:
        client.drop_database("inventory")
        client.inventory.create_collection("customers", changeStreamPreAndPostImages={"enabled": True})
        yield client


def changed(client: Client) -> None:
    """A document is created, updated and deleted."""
    customers = client.inventory.customers
    customers.insert_one(dict(ANNE))
    customers.update_one({"_id": 1004}, {"$set": {"first_name": "Anne Marie"}})
    customers.delete_one({"_id": 1004})


def fields(schema: Record) -> list[str]:
    """The names of a struct's fields."""
    return [field["field"] for field in schema["fields"]]


def member(schema: Record, name: str) -> Record:
    """A field of a struct."""
    return next(field for field in schema["fields"] if field["field"] == name)


@seed(
    *(f"S000-{n:02}" for n in (1, 2, 3, 4, 5, 9, 11, 12, 14, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)),
    *(f"S000-{n:02}" for n in (8, 13, 17, 18, 39, 40, 41, 44, 47, 49, 50, 51)),
)
def test_the_oplog_era(client: Client, servers: ReplicaSet) -> None:
    with streaming(servers, compat__version="1.1", schema__name__adjustment__mode="none") as stream:
        changed(client)
        records = stream.records()
    create, update, delete, tombstone = payloads_of(records)
    assert [create["op"], update["op"], delete["op"], tombstone] == ["c", "u", "d", None]
    schema = sample("000", 1)["schema"]
    expected = {**schema, "name": f"{NAME}.inventory.customers.Envelope"}
    for record in records[:3]:
        assert record["value"]["schema"] == expected
    assert (update["after"], delete["after"], delete["patch"]) == (None, None, None)
    assert [event["source"]["snapshot"] for event in (create, update, delete)] == [False] * 3
    source = create["source"]
    assert (source["connector"], source["name"], source["db"], source["collection"]) == (
        ("mongodb", NAME, "inventory", "customers")
    )
    assert (source["rs"], source["h"]) == ("rs0", None)
    assert len({json.dumps(record["key"]) for record in records}) == 1


@seed("S000-10", "S000-15", "S000-16", "S000-19")
def test_the_time_and_place_of_a_change(client: Client, servers: ReplicaSet) -> None:
    with streaming(servers, compat__version="1.1") as stream:
        client.inventory.customers.insert_many([{"_id": 1}, {"_id": 2}])
        first, second = payloads_of(stream.records())
    assert first["source"]["ts_ms"] % 1000 == 0
    assert (second["source"]["ts_ms"], second["source"]["ord"]) > (first["source"]["ts_ms"], first["source"]["ord"])
    assert first["ts_ms"] >= first["source"]["ts_ms"]
    assert first["source"]["version"]


@seed("S000-06", "S000-07", "S000-31", "S000-32", "S000-33", "S000-34")
def test_the_sample_of_a_read(client: Client, servers: ReplicaSet) -> None:
    client.inventory.customers.insert_one(dict(ANNE))
    stream = Stream(servers.url(), compat__version="1.1")
    (found,) = payloads_of(stream.records())
    stream.capture.close()
    expected = sample("000", 1)["payload"]
    assert (found["op"], found["patch"], found["filter"]) == ("r", None, None)
    assert parsed(found["after"]) == parsed(expected["after"])
    assert {"db", "rs", "collection", "snapshot", "connector", "name"} <= set(found["source"])
    for name in ("db", "rs", "collection", "snapshot", "connector", "name"):
        assert found["source"][name] == expected["source"][name]
    assert set(found["source"]) == set(expected["source"])


@seed("S000-54")
def test_the_oplog_gives_the_events_of_a_translated_change_stream(client: Client, servers: ReplicaSet) -> None:
    with streaming(servers, compat__version="1.1") as stream, streaming(servers, capture__mode="oplog") as oplog:
        changed(client)
        records = [each.records() for each in (stream, oplog)]
    translated, tailed = ([event and {**event, "ts_ms": None} for event in payloads_of(each)] for each in records)
    assert [event["op"] for event in translated if event] == ["c", "u", "d"]
    assert tailed == translated


@seed("S000-35", "S000-36", "S000-37", "S000-46", "S000-48")
def test_the_samples_of_an_update_and_a_deletion(client: Client, servers: ReplicaSet) -> None:
    with streaming(servers, compat__version="1.1") as stream:
        changed(client)
        _, update, delete, _ = payloads_of(stream.records())
    for found, number in ((update, 2), (delete, 3)):
        expected = sample("000", number)["payload"]
        assert found["op"] == expected["op"]
        assert parsed(found["filter"]) == parsed(expected["filter"])
        assert parsed(found["patch"]) == parsed(expected.get("patch"))


@seed("S000-42", "S000-45", "S000-52", "S000-53")
def test_patches_rebuild_the_document(client: Client, servers: ReplicaSet) -> None:
    customers = client.inventory.customers
    with streaming(servers, compat__version="1.1", capture__mode__full__update__type="post_image") as stream:
        customers.insert_one({"_id": 1, "a": {"b": 1}, "gone": 1, "list": [1, 2, 3, 4]})
        customers.update_one({"_id": 1}, {"$set": {"a.b": 2}, "$unset": {"gone": ""}})
        customers.update_one({"_id": 1}, [{"$set": {"list": {"$slice": ["$list", 2]}}}])
        customers.replace_one({"_id": 1}, {"new": True})
        _, first, second, third = payloads_of(stream.records())
    assert parsed(first["patch"]) == {"$set": {"a.b": 2}, "$unset": {"gone": True}}
    assert parsed(second["patch"]) == {"$set": {"list": [1, 2]}}
    assert parsed(third["patch"]) == {"_id": 1, "new": True}
    assert parsed(third["filter"]) == {"_id": 1}


@seed(*(f"S001-{n:02}" for n in (1, 2, 3, 6, 7, 8, 12, 15, 16, 17, 18, 20, 28, 29, 30, 31, 32, 33, 34, 35)))
@pytest.mark.parametrize("version", ["current", "2.1"])
def test_schemas_of_change_streams(client: Client, servers: ReplicaSet, version: str) -> None:
    parts = {(item["part"], item["field"]) for item in sample("001", 1)}
    with streaming(servers, compat__version=version) as stream:
        changed(client)
        records = stream.records()
    assert {record["topic"] for record in records} == {f"{NAME}.inventory.customers"}
    assert [payload and payload["op"] for payload in payloads_of(records)] == ["c", "u", "d", None]
    schemas = [record["value"]["schema"] for record in records[:3]]
    assert schemas[0] == schemas[1] == schemas[2]
    assert {(part, name) for part in ("key", "value") for name in records[0][part]} == parts
    key = records[0]["key"]["schema"]
    assert (key["type"], key["optional"], key["name"]) == ("struct", False, f"{NAME}.inventory.customers.Key")
    assert key["fields"] == sample("001", 3)["schema"]["fields"]
    (schema, *_) = schemas
    assert schema["name"] == f"{NAME}.inventory.customers.Envelope"
    assert fields(schema)[:4] == ["before", "after", "updateDescription", "source"]
    for name in ("before", "after"):
        assert (member(schema, name)["name"], member(schema, name)["version"]) == ("io.debezium.data.Json", 1)
    assert member(schema, "source")["name"] == "io.debezium.connector.mongo.Source"
    snapshot = member(member(schema, "source"), "snapshot")
    assert snapshot["type"] == ("boolean" if version == "2.1" else "string")


@seed("S001-13", "S001-14", "S001-21", "S001-22", "S001-23", "S001-24", "S001-25", "S001-26", "S001-27", "S001-19")
def test_keys(client: Client, servers: ReplicaSet) -> None:
    values = [1234, 12.34, "1234", {"hi": "kafka", "nums": [10.0, 100.0, 1000.0]}]
    values += [ObjectId("596e275826f08b2730779e1f"), Binary(b"kafka", 0)]
    with streaming(servers, key__json__mode="strict") as stream:
        client.inventory.customers.insert_many([{"_id": value} for value in values])
        found = [record["key"]["payload"]["id"] for record in stream.records()]
    expected = [each["payload"]["id"] for each in sample("001", 4)]
    assert [*map(parsed, found)] == [*map(parsed, expected)]
    with streaming(servers) as stream:
        client.inventory.customers.insert_one(sample("001", 2))
        (record,) = stream.records()
    assert record["key"]["payload"] == sample("001", 3)["payload"]


@seed(*(f"S001-{n:02}" for n in (37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53)))
def test_the_sample_of_a_create(client: Client, servers: ReplicaSet) -> None:
    expected = sample("001", 5)["payload"]
    with streaming(servers, compat__version="2.1", capture__mode="change_streams") as stream:
        client.inventory.customers.insert_one(dict(ANNE))
        (found,) = payloads_of(stream.records())
    assert (found["op"], parsed(found["after"])) == (expected["op"], parsed(expected["after"]))
    assert found["before"] is None
    for name in ("connector", "name", "snapshot", "db", "rs", "collection"):
        assert found["source"][name] == expected["source"][name]
    assert found["source"]["h"] is None
    assert found["source"]["ord"] > 0
    assert found["ts_ms"] >= found["source"]["ts_ms"] > 0


@seed("S001-50", "S001-61", "S001-62", "S001-63", "S001-64", "S001-65", "S001-66", "S001-70", "S001-74", "S001-75")
@seed("S001-76", "S001-77", "S001-78", "S001-79")
def test_the_samples_of_an_update_and_a_delete_in_a_transaction(client: Client, servers: ReplicaSet) -> None:
    customers = client.inventory.customers
    customers.insert_one({**ANNE, "first_name": "unknown"})
    mode = "change_streams_update_full_with_pre_image"
    with streaming(servers, compat__version="2.1", capture__mode=mode) as stream:
        with client.start_session() as session:
            with session.start_transaction():
                customers.update_one({"_id": 1004}, {"$set": {"first_name": "Anne Marie"}}, session=session)
            (update,) = payloads_of(stream.records())
            with session.start_transaction():
                customers.delete_one({"_id": 1004}, session=session)
        delete, _ = payloads_of(stream.records())
    for found, number in ((update, 6), (delete, 7)):
        expected = sample("001", number)["payload"]
        assert found["op"] == expected["op"]
        for name in ("before", "after"):
            assert parsed(found[name]) == parsed(expected.get(name))
        assert (found["source"]["h"], found["source"]["snapshot"]) == (None, False)
        assert found["source"]["lsid"]
        assert found["source"]["txnNumber"]
    description = sample("001", 6)["payload"]["updateDescription"]
    assert update["updateDescription"] == description
    assert set(sample("001", 6)["payload"]["source"]) <= set(update["source"])
    assert set(json.loads(update["source"]["lsid"])) == {"id", "uid"}


@seed("S001-54", "S001-55", "S001-56", "S001-57", "S001-58", "S001-59", "S001-60", "S001-67", "S001-68", "S001-69")
@seed("S001-71", "S001-72", "S001-73", "S001-80", "S001-81")
@pytest.mark.parametrize(
    "mode",
    [
        "change_streams",
        "change_streams_update_full",
        "change_streams_with_pre_image",
        "change_streams_update_full_with_pre_image",
    ],
)
def test_documents_by_capture_mode(client: Client, servers: ReplicaSet, mode: str) -> None:
    customers = client.inventory.customers
    with streaming(servers, capture__mode=mode) as stream:
        customers.insert_one({"_id": 1, "a": 1, "b": 2})
        customers.update_one({"_id": 1}, {"$set": {"a": 2}, "$unset": {"b": ""}})
        customers.update_one({"_id": 1}, {"$set": {"a": 3}})
        records = stream.records()
        customers.delete_one({"_id": 1})
        deleted = stream.records()
    create, update, _ = payloads_of(records)
    delete, tombstone = payloads_of(deleted)
    assert parsed(create["after"]) == {"_id": 1, "a": 1, "b": 2}
    assert parsed(update["after"]) == ({"_id": 1, "a": 3} if "update_full" in mode else None)
    assert parsed(update["before"]) == ({"_id": 1, "a": 1, "b": 2} if "pre_image" in mode else None)
    changes = update["updateDescription"]
    assert (parsed(changes["updatedFields"]), changes["removedFields"], changes["truncatedArrays"]) == (
        {"a": 2},
        ["b"],
        None,
    )
    assert (delete["after"], delete["updateDescription"], tombstone) == (None, None, None)
    assert parsed(delete["before"]) == ({"_id": 1, "a": 3} if "pre_image" in mode else None)
    assert deleted[0]["key"] == deleted[1]["key"]


@seed("S001-09", "S001-10")
def test_names_are_made_legal_for_avro(client: Client, servers: ReplicaSet) -> None:
    with streaming(servers, compat__version="2.1") as stream:
        client.inventory["1st-list"].insert_one({"_id": 1})
        (record,) = stream.records()
    assert record["value"]["schema"]["name"] == f"{NAME}.inventory.1st_list.Envelope"


@seed("S001-04", "S001-05")
@pytest.mark.parametrize("side", ["key", "value"])
def test_the_converter_leaves_schemas_out(client: Client, servers: ReplicaSet, side: str) -> None:
    with streaming(servers, **{f"{side}__converter__schemas__enable": "false"}) as stream:
        client.inventory.customers.insert_one(dict(ANNE))
        (record,) = stream.records()
    assert set(record["value" if side == "key" else "key"]) == {"schema", "payload"}
    assert "payload" not in record[side]


# What documents only describe, or ask of documentation, and what cannot be tried on one replica set.
SAID = {
    *("S000-30", "S000-38", "S000-43"),
    *("S001-11", "S001-36"),
}


def test_each_requirement_is_named_by_a_test(request: pytest.FixtureRequest) -> None:
    own = [item for item in request.session.items if item.path == Path(__file__)]
    named = {name for item in own for mark in item.iter_markers("seed") for name in mark.args}
    if len(own) > 20:
        wanted = {f"{name}-{number:02}" for name, count in DEMANDS.items() for number in range(1, count + 1)}
        assert wanted - named == SAID
