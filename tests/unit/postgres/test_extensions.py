"""hstore and pgvector. Expected orders are those a Java HashMap was seen to have."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tailrace.connectors.postgres.types import extensions
from tailrace.errors import DecodeError
from tests.unit.postgres.test_values import kind, read

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")) | st.text('"\\,=> NUL\n')


def printed(pairs: dict[str, str | None]) -> str:
    """As hstore_out writes them: everything in quotes but NULL, quotes and backslashes escaped."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ", ".join(f"{quoted(k)}=>{'NULL' if v is None else quoted(v)}" for k, v in pairs.items())


@given(st.lists(st.none() | st.dictionaries(TEXT, st.none() | TEXT, max_size=20), max_size=5), st.integers(0, 2))
def test_hstore_round_trips(values: list[dict[str, str | None] | None], skipped: int) -> None:
    texts = pa.array([None if value is None else printed(value) for value in values], pa.string()).slice(skipped)
    maps = extensions.hstore_maps(texts).to_pylist()
    assert [None if pairs is None else dict(pairs) for pairs in maps] == values[skipped:]
    shown = extensions.hstore_json(texts).to_pylist()
    assert [None if text is None else list(json.loads(text).items()) for text in shown] == maps


ORDERS = {
    12: [1, 2, 0, 5, 6, 3, 4, 9, 7, 8, 11, 10],
    13: [1, 2, 0, 5, 6, 3, 4, 9, 7, 8, 11, 10, 12],
    30: [
        *(1, 2, 0, 5, 6, 3, 4, 9, 7, 8, 22, 21, 20, 15, 14, 13, 12, 19, 18, 17, 16, 11, 10, 26, 25, 24, 23, 29, 28, 27)
    ],
}


@pytest.mark.parametrize("size", ORDERS)
def test_the_order_is_a_java_hash_maps(size: int) -> None:
    pairs: dict[str, str | None] = {f"key{number}": "" for number in range(size)}
    (found,) = read(kind("hstore", -1, {"hstore.handling.mode": "map"}), printed(pairs))
    assert [key for key, _ in found] == [f"key{number}" for number in ORDERS[size]]


def test_keys_with_one_hash_stay_in_the_servers_order() -> None:
    assert read(kind("hstore"), printed({"BB": "1", "Aa": "2"})) == ['{"BB":"1","Aa":"2"}']


@pytest.mark.parametrize(
    "text", ["a=>1", '"a"', '"a"=>"1" "b"=>"2"', '"a"=>null', '"' + "\\" * 100_001, '"\\"' * 50_000]
)
def test_what_is_no_hstore(text: str) -> None:
    with pytest.raises(DecodeError):
        extensions.hstore_json(pa.array([text]))


# Vectors


def test_vectors() -> None:
    assert read(kind("vector"), "[1,2.5,-3]", "[1e-07]") == [[1.0, 2.5, -3.0], [1e-7]]
    assert read(kind("halfvec"), "[1,0.1]") == [[1.0, 0.10000000149011612]]


@pytest.mark.parametrize("text", ["[1,x]", "[1,,2]"])
def test_what_is_no_vector(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        extensions.vectors(pa.array([text]), pa.float64())


@pytest.mark.parametrize(
    ("dimensions", "order"),
    [
        (5, [1, 5, 3]),
        (1, [1]),
        (16, [16, 2, 4, 6, 8, 10, 12, 14]),
        (32767, [1000, 10000, 100, 7, 32767]),
        (17, list(range(1, 18))),
        (9, []),
    ],
)
def test_sparse_vectors_are_in_the_order_of_a_java_hash_map(dimensions: int, order: list[int]) -> None:
    text = "{" + ",".join(f"{key}:{key}.5" for key in sorted(order)) + f"}}/{dimensions}"
    expected = {"dimensions": dimensions, "vector": [(key, key + 0.5) for key in order]}
    assert read(kind("sparsevec"), text, None, "{}/3", text) == [
        expected,
        None,
        {"dimensions": 3, "vector": []},
        expected,
    ]


@pytest.mark.parametrize("text", ["", "{1:1}", "{1}/3", "{1:1}/x", "{1:1}/40000", "{40000:1}/4", "{1:1,}/3"])
def test_what_is_no_sparse_vector(text: str) -> None:
    with pytest.raises((DecodeError, pa.ArrowInvalid)):
        extensions.sparse_vectors(pa.array([text]))


def test_no_rows() -> None:
    for name in ("hstore", "vector", "halfvec", "sparsevec"):
        assert len(kind(name).convert(pa.array([], pa.string()))) == 0
        assert kind(name).convert(pa.nulls(2, pa.string())).to_pylist() == [None, None]
