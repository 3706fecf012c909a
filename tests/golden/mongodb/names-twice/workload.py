"""Documents whose bytes have a name twice."""

import struct

import bson
from bson.raw_bson import RawBSONDocument


def document(*members):
    """The document of these names and values."""
    body = b""
    for name, value in members:
        is_raw = isinstance(value, RawBSONDocument)
        body += b"\x03" + name.encode() + b"\0" + value.raw if is_raw else bson.encode({name: value})[4:-1]
    return RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\0")


INNER = document(("d", 1), ("d", document(("e", 1), ("e", "x"), ("e", [1, 2]))))


def setup(client):
    client.inventory.items.insert_one(document(("_id", 1), ("a", 1), ("a", 2)))
    client.inventory.items.insert_one(document(("_id", document(("x", 1), ("y", 3), ("x", 2))), ("a", 1)))


def run(client):
    for collection in (client.inventory.items, client.inventory.renamed, client.inventory.excluded):
        collection.insert_one(document(("_id", 2), ("a", 1), ("c", "x"), ("a", 2.5), ("n", INNER), ("c", [INNER])))
        collection.update_one({"_id": 2}, {"$set": {"z": 1}})
    yield "wait"
    client.inventory.items.delete_one({"_id": 2})
    client.inventory.items.delete_one({"a": 1})
