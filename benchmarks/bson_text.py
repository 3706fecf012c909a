"""Measures BSON as JSON text and as typed columns beside other ways to read it: CPU time for each document.

    .venv/bin/python benchmarks/bson_text.py [KIND ...]

Others than pymongo's are measured where they are installed: python-bsonjs, orjson, pymongoarrow. None of them writes
the text that Debezium writes; they show what reading the same documents costs.
"""

from __future__ import annotations

import datetime
import random
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import bson
import numpy as np
from bson import Decimal128, Int64, ObjectId, json_util

from tailrace.connectors.mongodb.types.json import STRICT, json_text
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.mongodb.types.table import document_rows, inferred_fields

ROUNDS = 5
RANDOM = random.Random(7)
WORDS = ["order", "lorem", "ipsum", "dolor", "amet", "Müller", "quick", "brown", "fox", "river", "stone", "green"]
START = datetime.datetime(2026, 1, 1)
Document = dict[str, Any]
_FLAT = (int, float, str, bool, datetime.datetime, Int64, ObjectId)  # what pymongoarrow takes as a type


def text(length: int) -> str:
    return " ".join(RANDOM.choices(WORDS, k=length // 4 + 1))[:length]


def moment() -> datetime.datetime:
    return START + datetime.timedelta(milliseconds=RANDOM.randrange(10**10))


def small() -> Document:
    return {
        "_id": ObjectId(),
        "customer": RANDOM.randrange(10**6),
        "status": RANDOM.choice(["new", "paid", "sent"]),
        "total": round(RANDOM.random() * 1000, 2),
        "items": RANDOM.randrange(1, 20),
        "note": text(RANDOM.randrange(5, 30)),
        "paid": RANDOM.random() < 0.5,
        "created": moment(),
    }


def wide() -> Document:
    makers: list[tuple[str, Callable[[], Any]]] = [
        ("name", lambda: text(12)),
        ("amount", lambda: RANDOM.random() * 1e4),
        ("count", lambda: RANDOM.randrange(10**9)),
        ("flag", lambda: RANDOM.random() < 0.5),
        ("time", moment),
        ("code", lambda: text(6)),
        ("ref", ObjectId),
        ("long", lambda: Int64(RANDOM.randrange(10**15))),
    ]
    fields = {f"{name}_{number:02d}": make() for number in range(29) for name, make in [makers[number % 8]]}
    return {"_id": ObjectId(), **{name: None if RANDOM.random() < 0.05 else value for name, value in fields.items()}}


def sparse() -> Document:
    """Each field is there or not: documents out of step."""
    return {name: value for name, value in wide().items() if name == "_id" or RANDOM.random() < 0.5}


def nested() -> Document:
    line = {"sku": text(8), "qty": 3, "price": RANDOM.random() * 100, "tags": [text(5)] * RANDOM.randrange(3)}
    address = {"street": text(15), "city": text(8), "zip": str(RANDOM.randrange(10**5))}
    return {
        "_id": ObjectId(),
        "customer": {"id": RANDOM.randrange(10**6), "name": text(12), "address": address},
        "lines": [line] * RANDOM.randrange(1, 6),
        "created": moment(),
        "total": Decimal128("12.50"),
    }


def kilobyte() -> Document:
    return {**small(), "body": text(700), "more": [RANDOM.randrange(100) for _ in range(20)]}


def large() -> Document:
    return {**small(), "lines": [nested() for _ in range(180)], "body": text(30000)}


KINDS: dict[str, tuple[Callable[[], Document], int]] = {
    "small": (small, 20000),
    "wide": (wide, 10000),
    "sparse": (sparse, 10000),
    "nested": (nested, 10000),
    "1kB": (kilobyte, 10000),
    "100kB": (large, 100),
}


def candidates(documents: list[bytes]) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    starts = np.cumsum([0, *map(len, documents)])[:-1]
    values = Values.documents(Buffer(documents), starts)
    fields = inferred_fields(values.take(np.arange(min(len(values), 100))))
    found: dict[str, Callable[[], object]] = {
        "tailrace: JSON text": lambda: json_text(values, STRICT),
        "tailrace: typed columns": lambda: document_rows(values, fields),
        "bson.decode (C extension)": lambda: [bson.decode(one) for one in documents],
        "bson.json_util.dumps": lambda: [json_util.dumps(bson.decode(one)) for one in documents],
    }
    others = {"bsonjs": _bsonjs, "orjson": _orjson, "pymongoarrow": _pymongoarrow}
    for package in filter(find_spec, others):
        found |= others[package](documents)
    return found


def _bsonjs(documents: list[bytes]) -> dict[str, Callable[[], object]]:
    dumps = import_module("bsonjs").dumps
    return {"bsonjs.dumps": lambda: [dumps(one) for one in documents]}


def _orjson(documents: list[bytes]) -> dict[str, Callable[[], object]]:
    dumps = import_module("orjson").dumps
    return {"bson.decode, orjson.dumps": lambda: [dumps(bson.decode(one), default=str) for one in documents]}


def _pymongoarrow(documents: list[bytes]) -> dict[str, Callable[[], object]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context, api = import_module("pymongoarrow.context"), import_module("pymongoarrow.api")
        flat = {name: type(value) for name, value in bson.decode(documents[0]).items() if type(value) in _FLAT}
        schema = api.Schema(flat)
    stream = b"".join(documents)

    def read() -> object:
        reader = context.PyMongoArrowContext(schema)
        reader.process_bson_stream(stream)
        return reader.finish()

    return {"pymongoarrow, flat fields": read}


def main(kinds: list[str]) -> None:
    for kind in kinds or KINDS:
        make, count = KINDS[kind]
        documents = [bson.encode(make()) for _ in range(count)]
        print(f"{kind}: {count} documents of {sum(map(len, documents)) // count} bytes")
        best: dict[str, float] = {}
        measured = candidates(documents)
        for _ in range(ROUNDS):  # in turns, so that what else the machine does hits all of them
            for name, run in measured.items():
                before = time.process_time()
                run()
                best[name] = min(best.get(name, 1e9), time.process_time() - before)
        for name, seconds in best.items():
            print(f"  {name:28}{seconds / count * 1e6:10.2f} us{count / seconds:14,.0f} a CPU-second")


if __name__ == "__main__":
    main(sys.argv[1:])
