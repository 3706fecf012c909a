"""Declared columns at the limits of their types: what a column does not hold stays in the rest."""

import datetime

from bson import Binary, Decimal128, Int64


def setup(client):
    client.shop.t.insert_many(
        [
            {
                "_id": 1,
                "n": 2**31 - 1,
                "d": Decimal128("1.50"),
                "price": 1e308,
                "at": datetime.datetime(1, 1, 1),
                "b": b"x",
                "s": "x",
                "l": [1, 2],
                "st": {"a": 1, "b": "x"},
                "ok": True,
            },
            {
                "_id": 2,
                "n": 2**31,
                "d": Decimal128("NaN"),
                "price": float("nan"),
                "at": None,
                "b": Binary(b"x", 5),
                "s": 5,
                "l": [1, "x"],
                "st": {"a": 1, "b": "x", "c": 1},
                "ok": 1,
            },
            {
                "_id": 3,
                "n": 1.0,
                "d": Decimal128("1.505"),
                "price": Int64(2**53 + 1),
                "l": [],
                "st": {},
                "day": datetime.datetime(2024, 1, 1),
            },
            {
                "_id": 4,
                "N": 7,
                "n": Decimal128("7"),
                "d": Decimal128("-0"),
                "price": -0.0,
                "l": None,
                "st": {"b": None},
                "day": datetime.datetime(2024, 1, 1, 1),
            },
        ]
    )


def run(client):
    client.shop.t.update_many({}, {"$set": {"u": 1}})
    client.shop.t.update_one({"_id": 1}, {"$unset": {"n": 1}, "$set": {"l.5": 1}})
    client.shop.t.replace_one({"_id": 3}, {"price": Decimal128("1E+6144"), "d": 1e8, "s": None})
    yield "wait"
