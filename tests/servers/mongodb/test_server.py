"""The MongoDB servers that tests start."""

from __future__ import annotations

from pathlib import Path

import pytest
from bson import Binary
from pymongo import MongoClient
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

from tailrace.errors import TailraceError
from tests.servers.mongodb import binary
from tests.servers.mongodb.server import NAME, ReplicaSet


def test_a_set_of_one_has_a_change_stream_and_keeps_its_data() -> None:
    with ReplicaSet() as server:
        with server.client() as client, client.shop.orders.watch() as stream:
            client.shop.orders.insert_one({"_id": 1})
            assert next(stream)["fullDocument"] == {"_id": 1}
        server.stop()
        server.start()
        with server.client() as client:
            assert list(client.shop.orders.find()) == [{"_id": 1}]


@pytest.mark.long
def test_a_set_of_three_elects_another_primary() -> None:
    with ReplicaSet(3) as server, server.client(retryWrites=True) as client:
        client.shop.orders.insert_one({"_id": 1})
        primary = server.step_down()
        client.shop.orders.insert_one({"_id": 2})
        primary.kill()
        assert server.wait_for_primary() is not primary
        client.shop.orders.insert_one({"_id": 3})
        primary.start()
        assert client.shop.orders.count_documents({}) == 3


def test_authentication_and_encryption() -> None:
    with ReplicaSet(auth=True, tls=True) as server:
        server.create_user("cdc", "p@ss:word", [{"role": "read", "db": "shop"}])
        with MongoClient(server.url("cdc", "p@ss:word")) as client:  # type: ignore[var-annotated]
            assert list(client.shop.orders.find()) == []
            with pytest.raises(OperationFailure, match="not authorized"):
                client.shop.orders.insert_one({})
        with MongoClient(server.url("cdc", "wrong")) as client, pytest.raises(OperationFailure, match="Authentication"):  # type: ignore[var-annotated]
            client.shop.orders.find_one()
        plain = f"mongodb://{server.hosts}/?replicaSet={NAME}"
        with MongoClient(plain, serverSelectionTimeoutMS=500) as client, pytest.raises(ServerSelectionTimeoutError):  # type: ignore[var-annotated]
            client.shop.orders.find_one()


def test_the_newer_server_splits_large_events() -> None:
    with ReplicaSet(version=binary.NEWER) as server, server.client() as client:
        client.shop.create_collection("files", changeStreamPreAndPostImages={"enabled": True})
        files = client.shop.files
        pipeline = [{"$changeStreamSplitLargeEvent": {}}]  # type: ignore[var-annotated]
        with files.watch(pipeline, full_document="required", full_document_before_change="required") as stream:
            files.insert_one({"_id": 1, "body": Binary(bytes(9_000_000))})
            files.replace_one({"_id": 1}, {"body": Binary(bytes(9_000_000))})
            assert next(stream)["operationType"] == "insert"
            assert [next(stream)["splitEvent"] for _ in range(2)] == [
                {"fragment": 1, "of": 2},
                {"fragment": 2, "of": 2},
            ]


def test_a_machine_without_mongod_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(binary, "find_spec", lambda name: None)
    with pytest.raises(TailraceError, match=r"not installed\n  Remedy: run `make env`"):
        ReplicaSet()
    broken = tmp_path / "mongod"
    broken.write_text("#!/bin/sh\necho 'libcurl.so.4: cannot open shared object file' >&2; exit 127\n")
    broken.chmod(0o755)
    monkeypatch.setattr(binary, "_installed", lambda: binary.Mongod(broken))
    with pytest.raises(TailraceError, match=r"(?s)cannot open shared object.*apt-get install libcurl4"):
        ReplicaSet()
