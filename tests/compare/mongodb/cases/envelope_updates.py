"""The update operators in envelopes, with fields that are excluded."""

from collections.abc import Iterator
from typing import Any

from tests.compare.mongodb.cases.update_operators import FIRST
from tests.compare.mongodb.cases.update_operators import run as play

PROPERTIES = {
    "capture.mode": "change_streams_update_full_with_pre_image",
    "field.exclude.list": "db1.docs.d.f.h,*.docs.n,db1.docs.z.a",
    "tombstones.on.delete": "false",
}


def setup(client: Any) -> None:
    client.db1.create_collection("docs", changeStreamPreAndPostImages={"enabled": True})
    client.db1.docs.insert_one(FIRST)


def run(client: Any) -> Iterator[str]:
    yield from play(client)
