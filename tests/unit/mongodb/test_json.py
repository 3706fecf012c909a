"""JSON text of BSON: against the Java driver's own, and against a plain reader for documents that nobody thought of."""

from __future__ import annotations

import base64
import json
import os
import struct
from pathlib import Path

import bson
import numpy as np
import pytest
from bson import Int64, ObjectId, Regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.mongodb.types import shapes, walk
from tailrace.connectors.mongodb.types.json import EXTENDED, RELAXED, SPACED, STRICT, json_text
from tailrace.connectors.mongodb.types.layout import ABSENT, Buffer, Values
from tailrace.connectors.mongodb.types.shapes import Shapes
from tailrace.errors import DecodeError
from tests.unit.mongodb.types_documents import PlainReader, document, documents, elements, string, values_of

STYLES = {"strict": STRICT, "relaxed": RELAXED, "extended": EXTENDED, "spaced": SPACED}
RECORDED = Path(__file__).parents[2] / "golden" / "mongodb" / "json" / "documents.jsonl"


def plain(data: bytes, style: str) -> str:
    if style == "spaced":
        return PlainReader(data, "relaxed", ", ").json()
    return PlainReader(data, style).json()


@pytest.mark.parametrize("style", STYLES)
def test_the_text_is_that_of_the_java_driver(style: str) -> None:
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    data = [base64.b64decode(line["bson"]) for line in recorded]
    texts = json_text(values_of(data), STYLES[style]).to_pylist()
    assert texts == [line[style] for line in recorded]
    assert [plain(one, style) for one in data] == texts  # so that the other tests compare with the right thing


@pytest.mark.parametrize(
    ("few", "fewest"),
    [(0, 1024), (3, 1024), (10**9, 1024), (3, 1)],
    ids=["in step", "both ways", "one by one", "by shapes"],
)
@settings(deadline=None)
@given(data=st.lists(documents(), max_size=8))
def test_any_documents(few: int, fewest: int, data: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "FEW", few)
        patch.setattr(shapes, "FEWEST", fewest)
        for name, style in STYLES.items():
            texts = json_text(values_of(data), style)
            texts.validate(full=True)
            assert texts.to_pylist() == [plain(one, name) for one in data]


@pytest.mark.parametrize("style", ["strict", "relaxed", "extended"])
@settings(deadline=None)
@given(values=st.lists(st.one_of(st.none(), elements()), max_size=8), data=st.data())
def test_any_values_in_any_order(style: str, values: list[tuple[int, bytes] | None], data: st.DataObject) -> None:
    whole = [document((b"_", value or (0x0A, b""))) for value in values]
    starts = np.cumsum([0, *map(len, whole)])[:-1] + 4 + 3
    kinds = np.array([value[0] if value else ABSENT for value in values], np.uint8)
    order = np.array(data.draw(st.permutations(range(len(values)))), np.int64)
    texts = json_text(Values(Buffer(whole), kinds, starts).take(order), STYLES[style]).to_pylist()
    expected = [plain(one, style)[6:-1] if value else None for one, value in zip(whole, values, strict=True)]
    assert texts == [expected[row] for row in order]


def test_many_documents_and_large_ones() -> None:
    lines = [{"sku": "x" * (number % 7), "at": [number, Int64(number)], "price": number / 4} for number in range(300)]
    data = [bson.encode({"_id": number, "note": "é" * (number % 9)}) for number in range(3000)]
    data[1500:1500] = [bson.encode({"_id": ObjectId(), "lines": lines}), bson.encode({})] * 2
    for style in ("strict", "extended"):
        assert json_text(values_of(data), STYLES[style]).to_pylist() == [plain(one, style) for one in data]


def test_documents_of_several_shapes_and_of_none_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "FEWEST", 64)
    some = [
        {
            "_id": number,
            "name": "é\n" * (number % 5),
            "tags": [f"t{tag}" for tag in range(number % 3)],
            "in": {"a": number % 2 == 0, "b": [{"c": number / 3}, None], "d": {}},
            **({f"only{number}": 1} if number % 7 == 0 else {}),
            "code": Regex("a" * (number % 4), "i"),
        }
        for number in range(1500)
    ]
    data = [bson.encode(one) for one in some]
    for name, style in STYLES.items():
        assert json_text(values_of(data), style).to_pylist() == [plain(one, name) for one in data]
    found, others = Shapes().split(values_of(data))
    assert sorted(len(each.rows) for each in found) == [428, 428, 429]
    assert len(others) == 215


def test_names_that_come_again_among_documents_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last value counts, at the place of the first. Long names that differ in their middle are different names."""
    monkeypatch.setattr(shapes, "FEWEST", 64)
    one, two = (0x10, struct.pack("<i", 1)), (0x10, struct.pack("<i", 2))
    long, other = b"the name has 1 more bytes", b"the name has 2 more bytes"
    again = document((b"a", one), (b"b", (0x03, document((b"k", one), (b"k", two)))), (b"a", (0x02, string(b"x"))))
    plainly = [document((b"a", one), (b"b", one)), document((long, one), (other, two)), document((b"b", two))]
    data = [again if number % 3 == 0 else plainly[number % 7 % 3] for number in range(900)]
    for name, style in STYLES.items():
        assert json_text(values_of(data), style).to_pylist() == [plain(each, name) for each in data]
    assert json_text(values_of([again]), STRICT).to_pylist() == ['{"a": "x","b": {"k": 2}}']


def test_a_damaged_document_among_others_of_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "FEWEST", 64)
    data = [bson.encode({"a": {"b": number}}) for number in range(200)]
    data[150] = data[150][:7] + b"\x0d" + data[150][8:]  # the size of the inner document
    with pytest.raises(DecodeError, match=r"at byte 30\d\d of 4000"):
        json_text(values_of(data), STRICT)


@pytest.mark.slow
def test_documents_of_16_megabytes() -> None:
    numbers = {"_id": 1, "list": list(range(1_300_000))}
    text = {"_id": 2, "text": '"\n' * 8_000_000}
    data = [bson.encode(numbers), bson.encode(text)]
    assert min(map(len, data)) > 15_000_000
    expected = [json.dumps(one, separators=(",", ": ")) for one in (numbers, text)]
    assert json_text(values_of(data), STRICT).to_pylist() == expected


def test_deep_nesting() -> None:
    deep = document((b"x", (0x10, struct.pack("<i", 7))))
    for level in range(180):
        kind, name = (0x04, b"0") if level % 2 else (0x03, b"a")
        deep = document((name, (kind, deep)), (b"1", (0x0A, b"")))
    data = [deep, document(), deep] * 30
    assert json_text(values_of(data), STRICT).to_pylist() == [plain(one, "strict") for one in data]


def test_no_documents() -> None:
    assert json_text(values_of([]), STRICT).to_pylist() == []
    assert json_text(values_of([document()] * 60), STRICT).to_pylist() == ["{}"] * 60


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (document((b"a", (0x21, b""))), "a value of type 0x21"),
        (document((b"a", (0x08, b"\x02"))), "a boolean"),
        (document((b"a", (0x02, struct.pack("<i", 100) + b"x\0"))), "a value of type 0x02"),
        (document((b"a", (0x02, struct.pack("<i", -5) + b"x\0"))), "a value of type 0x02"),
        (document((b"a", (0x02, struct.pack("<i", 1) + b"x"))), "a string"),
        (document((b"a", (0x05, struct.pack("<i", -1)))), "a string or binary value"),
        (document((b"a", (0x05, struct.pack("<i", 2) + b"\x02ab"))), "a string or binary value"),
        (document((b"a", (0x03, struct.pack("<i", 20) + b"\0"))), "a value of type 0x03"),
        (document((b"a", (0x0F, struct.pack("<ii", 13, -9) + string(b"")))), "the size of a code"),
        (struct.pack("<i", 99) + document()[4:], "the size of a document"),
        (document((b"a", (0x10, bytes(4))))[:-1], "an element"),
        (document((b"a", (0x0B, b"x")))[:-1], "a value of type 0x0b"),
    ],
)
@pytest.mark.parametrize("times", [1, 100])
def test_damage_is_an_error(damaged: bytes, message: str, times: int) -> None:
    with pytest.raises(DecodeError, match=message):
        json_text(values_of([damaged] * times), STRICT)


@settings(max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "100")), deadline=None)
@given(data=documents(), place=st.integers(0, 10**6), byte=st.integers(0, 255), times=st.sampled_from([1, 60]))
def test_a_damaged_byte_never_hangs_or_crashes(data: bytes, place: int, byte: int, times: int) -> None:
    damaged = bytearray(data)
    damaged[place % len(data)] = byte
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "FEWEST", 50)
        try:
            texts = json_text(values_of([bytes(damaged)] * times), RELAXED)
        except DecodeError:
            return
    texts.validate(full=True)
