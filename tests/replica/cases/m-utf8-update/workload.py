"""An update sets a text that is no UTF-8."""

import struct

from bson.raw_bson import RawBSONDocument


def raw(pairs):
    body = b"".join(pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\x00"


def setup(client):
    client.shop.odd.insert_one({"_id": 1})


def run(client):
    inner = RawBSONDocument(raw([b"\x02v\x00" + struct.pack("<i", 5) + b"ab\xff\xfe\x00"]))
    client.shop.odd.update_one({"_id": 1}, {"$set": inner})
    yield "wait"
    client.shop.odd.insert_one({"_id": 2})
    yield "wait"
