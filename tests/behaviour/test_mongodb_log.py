"""A change stream in bad nights: events over 16 MB, killed cursors, elections, dropped collections, encryption."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bson import encode
from pymongo.errors import PyMongoError

from tailrace.connectors.mongodb.admin import MongoAdmin
from tailrace.connectors.mongodb.connector import MongoConnector
from tailrace.connectors.mongodb.log.batch import CursorBatch
from tailrace.connectors.mongodb.log.fragments import Fragments
from tailrace.connectors.mongodb.position import beginning_of, time_of
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.offset import Reached, fields
from tailrace.connectors.shared_log import LogGap
from tailrace.errors import SourceError
from tests.servers.mongodb.binary import NEWER
from tests.servers.mongodb.server import Client, ReplicaSet
from tests.servers.mongodb.stream import Stream, parsed, payloads_of, streaming

MEGABYTE = 1 << 20
WITH_IMAGES = {
    "capture__mode": "change_streams_update_full_with_pre_image",
    "capture__mode__full__update__type": "post_image",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[ReplicaSet]:
    """A replica set of these tests."""
    with ReplicaSet() as servers:
        yield servers


@pytest.fixture
def client(servers: ReplicaSet) -> Iterator[Client]:
    with servers.client() as client:
        client.drop_database("inventory")
        client.inventory.create_collection("blobs", changeStreamPreAndPostImages={"enabled": True})
        yield client


def shout(client: Client) -> None:
    """An event that is larger than 16 MB, as it has the document twice, between small ones."""
    client.inventory.blobs.insert_one({"_id": 1, "text": "x" * (9 * MEGABYTE)})
    client.inventory.blobs.update_one({"_id": 1}, {"$set": {"text": "y" * (9 * MEGABYTE)}})
    client.inventory.blobs.insert_one({"_id": 2, "text": "small"})


def keys(events: list[Any]) -> list[tuple[str, Any]]:
    return [(event["op"], parsed(event["after"])["_id"]) for event in events]


def test_an_event_over_16_mb_is_an_error_with_advice(servers: ReplicaSet, client: Client) -> None:
    with streaming(servers, **WITH_IMAGES) as stream:
        shout(client)
        with pytest.raises(SourceError) as caught:
            stream.records()
    assert "16 MB" in caught.value.what
    assert "cursor.oversize.handling.mode to split" in (caught.value.remedy or "")


def test_a_start_before_such_an_event_has_the_same_advice(servers: ReplicaSet, client: Client) -> None:
    client.inventory.blobs.insert_one({"_id": 1, "text": "x" * (9 * MEGABYTE)})
    with streaming(servers, **WITH_IMAGES) as stream:
        offset, config = stream.offset, stream.config
        client.inventory.blobs.update_one({"_id": 1}, {"$set": {"text": "y" * (9 * MEGABYTE)}})
    connector = MongoConnector(config)
    reached = Reached(**fields(offset, connector.source.connector, connector.identity, connector.parse))
    with closing(connector), pytest.raises(SourceError, match="larger than the 16 MB") as caught:
        connector.lost(reached)
    assert "cursor.oversize.handling.mode to split" in (caught.value.remedy or "")
    finding = MongoAdmin(config).resumable((offset, None))
    assert finding is not None
    assert "16 MB" in finding.what


REQUIRED = {
    "pre-images": {"capture__mode": "change_streams_with_pre_image", "capture__mode__pre__image": "required"},
    "post-images": {"capture__mode__full__update__type": "post_image_required"},
}


@pytest.mark.parametrize("name", REQUIRED)
def test_a_change_without_a_required_image_is_an_error(servers: ReplicaSet, client: Client, name: str) -> None:
    client.inventory.plain.insert_one({"_id": 1, "v": 1})
    client.inventory.blobs.insert_one({"_id": 1, "v": 1})
    client.inventory.other.insert_one({"_id": 1, "v": 1})
    with streaming(servers, **REQUIRED[name], collection__exclude__list="inventory.other") as stream:
        client.inventory.other.update_one({"_id": 1}, {"$set": {"v": 2}})
        client.inventory.blobs.update_one({"_id": 1}, {"$set": {"v": 2}})
        client.inventory.plain.insert_one({"_id": 2, "v": 1})
        events = payloads_of(stream.records())
        image = "before" if name == "pre-images" else "after"
        assert [(each["op"], each[image] and parsed(each[image])["v"]) for each in events] == [
            ("u", 1 if image == "before" else 2), ("c", None if image == "before" else 1),
        ]  # fmt: skip
        client.inventory.plain.update_one({"_id": 1}, {"$set": {"v": 2}})
        with pytest.raises(SourceError, match="no document before or after a change, and it is required") as caught:
            stream.records()
    assert "changeStreamPreAndPostImages" in (caught.value.remedy or "")
    problems = [each for each in MongoAdmin(stream.config).checks() if each.ok is False]
    assert [each.what for each in problems] == [
        f"inventory.plain keeps no {name}, which are required: its next change ends the pipeline"
    ]


def test_an_event_over_16_mb_is_left_out(servers: ReplicaSet, client: Client) -> None:
    given = {"cursor__oversize__handling__mode": "skip", "cursor__oversize__skip__threshold": str(8 * MEGABYTE)}
    with streaming(servers, **WITH_IMAGES, **given) as stream:
        shout(client)
        assert keys(payloads_of(stream.records())) == [("c", 2)]


def test_an_event_over_16_mb_is_put_together() -> None:
    split = {"cursor__oversize__handling__mode": "split"}
    with (
        ReplicaSet(version=NEWER) as servers,
        servers.client() as client,
        streaming(servers, **WITH_IMAGES, **split) as stream,
    ):
        client.inventory.create_collection("blobs", changeStreamPreAndPostImages={"enabled": True})
        shout(client)
        found = payloads_of(stream.records())
        assert keys(found) == [("c", 1), ("u", 1), ("c", 2)]
        changed = found[1]
        assert set(parsed(changed["before"])["text"]) == {"x"}
        assert set(parsed(changed["after"])["text"]) == {"y"}
        assert len(parsed(changed["updateDescription"]["updatedFields"])["text"]) == 9 * MEGABYTE
        client.inventory.blobs.insert_one({"_id": 3})
        assert keys(payloads_of(stream.records())) == [("c", 3)]


def answer(*events: dict[str, Any]) -> CursorBatch:
    raw = [encode(event) for event in events]
    starts = [sum(map(len, raw[:place])) for place in range(len(raw))]
    return CursorBatch(Values.documents(Buffer(raw), np.array(starts, np.int64)), 1, None)


def fragment(number: int, of: int, **fields: Any) -> dict[str, Any]:
    return {"_id": {"_data": f"82{number}"}, "splitEvent": {"fragment": number, "of": of}, **fields}


def test_fragments_may_arrive_in_several_answers() -> None:
    fragments, whole = Fragments(), {"_id": {"_data": "820"}, "a": 0}
    assert len(fragments.whole(answer(whole, fragment(1, 3, a=1)))) == 1
    assert fragments.is_open
    assert len(fragments.whole(answer(fragment(2, 3, b=2)))) == 0
    values = fragments.whole(answer(fragment(3, 3, c=3), whole))
    assert not fragments.is_open
    expected = encode({"_id": {"_data": "823"}, "a": 1, "b": 2, "c": 3}) + encode(whole)
    assert values.buffer.data[: values.buffer.size] == expected
    assert len(values) == 2


@pytest.mark.parametrize("events", [[fragment(2, 2)], [fragment(1, 2), {"_id": {"_data": "82"}}]])
def test_a_missing_fragment_is_an_error(events: list[dict[str, Any]]) -> None:
    with pytest.raises(SourceError, match="is missing"):
        Fragments().whole(answer(*events))


def test_a_killed_cursor_is_opened_again_where_it_was(servers: ReplicaSet, client: Client) -> None:
    with streaming(servers) as stream:
        for number in range(5):
            client.inventory.blobs.insert_one({"_id": number})
            assert keys(payloads_of(stream.records())) == [("c", number)]
            client.admin.command("killAllSessions", [])


def test_a_document_of_16_mb_is_read(servers: ReplicaSet, client: Client) -> None:
    client.inventory.blobs.insert_one({"_id": 1, "text": "x" * (16 * MEGABYTE - 40)})
    stream = Stream(servers.url())
    try:
        (event,) = payloads_of(stream.records())
        assert len(parsed(event["after"])["text"]) == 16 * MEGABYTE - 40
    finally:
        stream.capture.close()


def test_a_dropped_or_renamed_collection_ends_only_its_own_stream(servers: ReplicaSet, client: Client) -> None:
    of_one = {"capture__scope": "collection", "capture__target": "inventory.blobs"}
    with streaming(servers) as whole, streaming(servers, **of_one) as one:
        client.inventory.blobs.insert_one({"_id": 1})
        client.inventory.blobs.rename("renamed")
        client.inventory.renamed.insert_one({"_id": 2})
        client.inventory.drop_collection("renamed")
        client.inventory.blobs.insert_one({"_id": 3})
        assert sorted(keys(payloads_of(whole.records()))) == [("c", 1), ("c", 2), ("c", 3)]
        with pytest.raises(SourceError, match="was dropped or renamed"):
            one.records()


def test_encrypted_connections_with_a_user() -> None:
    with ReplicaSet(auth=True, tls=True) as servers, servers.client() as client:
        servers.create_user("reader", "such-a-word", ["readAnyDatabase"])
        client.inventory.blobs.insert_one({"_id": 1})
        assert servers.certificates is not None
        given = {
            "mongodb__user": "reader",
            "mongodb__password": "such-a-word",
            "mongodb__ssl__enabled": "true",
            "mongodb__ssl__truststore": str(servers.certificates.authority),
        }
        bare = f"mongodb://{servers.hosts}/?replicaSet=rs0"
        stream = Stream(bare, **given)
        assert keys(payloads_of(stream.records())) == [("r", 1)]
        client.inventory.blobs.insert_one({"_id": 2})
        assert keys(payloads_of(stream.records())) == [("c", 2)]
        stream.capture.close()
        del given["mongodb__ssl__truststore"]
        with pytest.raises(SourceError) as caught:
            Stream(bare, **given, mongodb__server__selection__timeout__ms="1000", errors__max__retries="0")
        assert "mongodb.ssl.truststore" in (caught.value.remedy or "")
        assert "such-a-word" not in str(caught.value)


@pytest.mark.long
def test_elections_lose_and_repeat_nothing() -> None:
    with ReplicaSet(members=3) as servers, servers.client(w="majority") as client:
        found: Counter[Any] = Counter()
        with streaming(servers) as stream:
            written, is_over = [0], threading.Event()

            def write() -> None:
                while not is_over.is_set():
                    with suppress(PyMongoError):
                        client.inventory.blobs.insert_one({"_id": written[0]})
                    written[0] += 1
                    time.sleep(0.005)

            writer = threading.Thread(target=write)
            writer.start()
            for _ in range(2):
                deadline = time.monotonic() + 3
                while time.monotonic() < deadline:
                    found.update(keys(payloads_of(stream.records())))
                servers.step_down()
            victim = servers.wait_for_primary()
            victim.kill()
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                found.update(keys(payloads_of(stream.records())))
            is_over.set()
            writer.join()
            victim.start()
            servers.wait_for_primary()
            there = {("c", document["_id"]) for document in client.inventory.blobs.find()}
            deadline = time.monotonic() + 30
            while set(found) != there and time.monotonic() < deadline:
                found.update(keys(payloads_of(stream.records())))
        assert set(found) == there
        assert set(found.values()) == {1}
        assert len(there) > 100


def gap(config: Any, offset: Any) -> LogGap | None:
    """What a start at an offset finds missing."""
    with closing(MongoConnector(config)) as connector:
        reached = Reached(**fields(offset, connector.source.connector, connector.identity, connector.parse))
        return connector.lost(reached)


def test_a_log_without_the_last_change_that_was_read_is_another_one(servers: ReplicaSet, client: Client) -> None:
    client.inventory.plain.insert_one({"_id": 1})
    with streaming(servers) as stream:
        client.inventory.plain.insert_one({"_id": 2})
        stream.records()
        offset, config = stream.offset, stream.config
    assert gap(config, offset) is None
    between = beginning_of(time_of(offset["position"]) + 7777)
    client.inventory.plain.insert_one({"_id": 3})
    found = gap(config, {**offset, "position": between})
    assert found is not None
    assert "restored from an older backup" in str(found)


@pytest.mark.long
def test_a_server_that_was_restored_from_an_older_backup_is_known(tmp_path: Path) -> None:
    """With its data its log comes back, which is as old as the backup, under the name of the set."""
    with ReplicaSet() as restored:
        data = restored.members[0].home / "data"
        with restored.client() as client:
            client.inventory.plain.insert_one({"_id": 1})
        restored.stop()
        shutil.copytree(data, tmp_path / "backup")
        restored.start()
        with restored.client() as client, streaming(restored) as stream:
            client.inventory.plain.insert_one({"_id": 2})
            stream.records()
            offset, config = stream.offset, stream.config
        restored.stop()
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "backup", data)
        restored.start()
        with restored.client() as client:
            client.inventory.plain.insert_one({"_id": 3})
        assert "restored from an older backup" in str(gap(config, offset))
