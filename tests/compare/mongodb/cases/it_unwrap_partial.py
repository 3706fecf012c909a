"""The same documents, with updates that bring no whole documents, and pre-images."""

from typing import Any

from tests.compare.mongodb.cases import it_unwrap

PROPERTIES = {
    **it_unwrap.PROPERTIES,
    "capture.mode": "change_streams_with_pre_image",
    "transforms.unwrap.field.name.adjustment.mode": "none",
    "transforms.unwrap.array.encoding": "document",
    "transforms.unwrap.delete.tombstone.handling.mode": "delete-to-tombstone",
    "field.name.adjustment.mode": "avro_unicode",
}


def setup(client: Any) -> None:
    client.db1.create_collection("a", changeStreamPreAndPostImages={"enabled": True})
    it_unwrap.setup(client)


run = it_unwrap.run
