"""38 kinds of `_id`: inserted, updated, deleted."""

import datetime

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp


def docs():
    return [
        None,
        {},
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        0,
        Int64(2),
        1.5,
        float("nan"),
        float("inf"),
        -0.5,
        "",
        "x",
        "1",
        True,
        False,
        Decimal128("1.10"),
        Decimal128("-1E+6000"),
        Decimal128("-Infinity"),
        Binary(b"", 0),
        Binary(b"\x01", 5),
        Binary(b"\x01" * 16, 4),
        Binary(b"\x01" * 16, 3),
        Timestamp(1, 2),
        datetime.datetime(2024, 1, 1),
        MinKey(),
        MaxKey(),
        ObjectId("a" * 24),
        Code("f()"),
        Code("f()", {"x": 1}),
        {"n": None},
        {"d": datetime.datetime(1, 1, 1)},
        DBRef("c", 1),
        "\u00e9",
        "\u0000x",
        {"k": "\u0000"},
        datetime.datetime(9999, 12, 31),
        2**40,
        -1,
    ]


def setup(client):
    for i, d in enumerate(docs()):
        if i % 2:
            client.shop.ids.insert_one({"_id": d, "n": i})


def run(client):
    for i, d in enumerate(docs()):
        if not i % 2:
            client.shop.ids.insert_one({"_id": d, "n": i})
    yield "wait"
    for d in docs():
        client.shop.ids.update_one({"_id": d}, {"$set": {"u": 1}})
    yield "wait"
    for i, d in enumerate(docs()):
        if i % 3 == 0:
            client.shop.ids.delete_one({"_id": d})
    yield "wait"
