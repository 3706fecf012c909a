"""Documents and ids with as many levels as the server takes are captured, in every way that rows are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.mongodb import MongoSource
from tests.servers.mongodb.server import ReplicaSet

LEVELS = 170


@pytest.fixture
def source(mongodb: ReplicaSet) -> Iterator[MongoSource]:
    source = MongoSource(mongodb, f"c{uuid4().hex[:8]}")
    source.create("deep")
    yield source
    source.client.drop_database(source.name)
    source.client.close()


def nested(value: Any) -> Any:
    for _ in range(LEVELS):
        value = {"a": value}
    return value


def images(stream: Stepped) -> list[str]:
    """The images of the next steps' events, until nothing comes."""
    found: list[str] = []
    for _ in range(4):
        events, _ = stream.step()
        found += [event["after"] for event in events if event["source"]["collection"] == "deep"]
    return found


def test_deep_documents_are_captured(source: MongoSource) -> None:
    documents = source.database["deep"]
    documents.insert_many([{"_id": nested(number), "v": nested([number])} for number in range(3)])
    given = {"signal__data__collection": f"{source.name}.signals", "snapshot__max__threads": "4"}
    sys.setrecursionlimit(1000)
    with stepping("mongodb", source, **given) as stream:
        documents.insert_one({"_id": nested("new"), "v": nested(7)})
        (image,) = images(stream)
        assert json.dumps(nested(7)).replace(" ", "") in image.replace(" ", "")
        name = str(source.id("deep"))
        for kind in ("incremental", "blocking"):
            source.signal(kind, "execute-snapshot", json.dumps({"data-collections": [name], "type": kind}))
            assert len(images(stream)) == 4
        assert not stream.offset["snapshots"].get("incomplete")
