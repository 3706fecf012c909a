"""Texts that are no UTF-8, and field names that are empty, have dots or begin with a dollar."""

import struct

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument


def raw(pairs):
    body = b"".join(pairs)
    return RawBSONDocument(struct.pack("<i", len(body) + 5) + body + b"\x00")


def i32(name, n):
    return b"\x10" + name + b"\x00" + struct.pack("<i", n)


def s(name, v):
    return b"\x02" + name + b"\x00" + struct.pack("<i", len(v) + 1) + v + b"\x00"


def put(client, *docs):
    client.shop.get_collection("odd", codec_options=CodecOptions(document_class=RawBSONDocument)).insert_many(docs)


def setup(client):
    put(client, raw([i32(b"_id", 1), s(b"v", b"caf\xe9")]), raw([i32(b"_id", 2), i32(b"a", 1), i32(b"a", 2)]))
    client.shop.odd.insert_one({"_id": 3, "": 1, "a.b": 2, "$c": 3, "d": {"": {"": 4}, "x.y": 5}, "\u2028": 1})


def run(client):
    put(client, raw([i32(b"_id", 11), s(b"v", b"caf\xe9")]), raw([i32(b"_id", 12), i32(b"a", 1), i32(b"a", 2)]))
    client.shop.odd.insert_one({"_id": 13, "": 1, "a.b": 2, "$c": 3, "d": {"": {"": 4}, "x.y": 5}})
    yield "wait"
    client.shop.odd.update_many({}, {"$set": {"n": 1}})
    client.shop.odd.update_one(
        {"_id": 3}, [{"$replaceWith": {"$setField": {"field": "a.b", "input": "$$ROOT", "value": 9}}}]
    )
    client.shop.odd.update_one(
        {"_id": 3}, [{"$replaceWith": {"$setField": {"field": {"$literal": "$c"}, "input": "$$ROOT", "value": 9}}}]
    )
    client.shop.odd.update_one({"_id": 13}, {"$set": {"d.0": "zero"}})
    client.shop.odd.update_one({"_id": 13}, {"$unset": {"d": 1}, "$set": {"l": [[1, [2]], {"a": [None, {}]}]}})
    yield "wait"
