"""A field name twice in a document, with a transform that a replica does not carry out."""

import struct

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument


def raw(pairs):
    body = b"".join(pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\x00"


def i32(name, n):
    return b"\x10" + name + b"\x00" + struct.pack("<i", n)


def put(client, *docs):
    client.shop.get_collection("odd", codec_options=CodecOptions(document_class=RawBSONDocument)).insert_many(docs)


def setup(client):
    put(
        client,
        RawBSONDocument(
            raw([i32(b"_id", 1), i32(b"a", 1), i32(b"a", 2), b"\x03b\x00" + raw([i32(b"x", 1), i32(b"x", 2)])])
        ),
    )


def run(client):
    put(
        client,
        RawBSONDocument(
            raw([i32(b"_id", 2), i32(b"a", 1), i32(b"a", 2), b"\x03b\x00" + raw([i32(b"x", 1), i32(b"x", 2)])])
        ),
    )
    yield "wait"
