"""Texts and bytes are joined the same whether they are of one size, which has a faster way, or not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.model.arrow import is_constant, join

KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 10, 200])
def test_texts_of_one_size_stand_between_constants(kind: pa.DataType, size: int) -> None:
    texts = [letter * size for letter in "abcdef"]
    joined = join('"é', pa.array(texts, kind).slice(1, 4), "")
    assert joined.cast(pa.large_binary()).to_pylist() == [f'"é{text}'.encode() for text in texts[1:5]]
    assert joined.type == kind


def test_texts_of_one_size_with_nulls_and_others_are_joined_by_row() -> None:
    texts = pa.array(["ab", None, "cd"])
    assert join("<", texts, ">").to_pylist() == ["<ab>", None, "<cd>"]
    assert join(texts).to_pylist() == ["ab", None, "cd"]
    assert join(pa.array(["a", "b"]), "-", pa.array(["c", "d"])).to_pylist() == ["a-c", "b-d"]
    assert join("<", pa.array([], pa.string())).to_pylist() == []
    assert join(b"\x00", pa.array(["é", "ü"])).to_pylist() == [b"\x00\xc3\xa9", b"\x00\xc3\xbc"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_is_constant_if_its_texts_are_equal(kind: pa.DataType) -> None:
    assert is_constant(pa.array(["x", "ab", "ab", "ab"], kind).slice(1))
    assert is_constant(pa.array(["", ""], kind))
    assert is_constant(pa.array(["one"], kind))
    assert not is_constant(pa.array([], kind))
    assert not is_constant(pa.array(["ab", "ac", "ab"], kind))
    assert not is_constant(pa.array(["a", "aa"], kind))
