"""Array literals: what the server prints is parsed back; anything else gives elements or a DecodeError."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings

from tailrace.connectors.postgres.log.protocol import arrays
from tailrace.errors import DecodeError

search = settings(max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "100")), deadline=None)

ODD = st.text('"\\,{}[]=: \t\nNULnulé\U0001f600', max_size=8)
TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=10) | ODD
VALUES = st.lists(
    st.none() | st.lists(st.none() | TEXT | st.sampled_from(["NULL", "null", ""]), max_size=6), max_size=8
)


def printed(values: list[str | None], delimiter: str = ",") -> str:
    """As array_out writes an array: quoted if empty, if NULL in any case, and if a special character is in it."""

    def element(text: str | None) -> str:
        if text is None:
            return "NULL"
        special = set(text) & {'"', "\\", "{", "}", delimiter, *" \t\n\r\v\f"}
        if text and not special and text.upper() != "NULL":
            return text
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return "{" + delimiter.join(map(element, values)) + "}"


@search
@given(VALUES, st.integers(0, 3), st.booleans(), st.sampled_from(",;"))
def test_array_literals_round_trip(
    values: list[list[str | None] | None], skipped: int, bounds: bool, delimiter: str
) -> None:
    bound = "[-1:4]=" if bounds else ""
    texts = [None if each is None else (bound if each else "") + printed(each, delimiter) for each in values]
    found = arrays.elements(pa.array(texts, pa.string()).slice(skipped), delimiter)
    found.lists.validate(full=True)
    assert found.lists.to_pylist() == values[skipped:]
    assert found.nested == 0


@search
@given(st.lists(st.lists(st.lists(st.none() | TEXT, min_size=1, max_size=3), min_size=1, max_size=3), max_size=4))
def test_inner_arrays_are_null_and_counted(values: list[list[list[str | None]]]) -> None:
    found = arrays.elements(pa.array(["{" + ",".join(map(printed, outer)) + "}" for outer in values], pa.string()))
    assert found.lists.to_pylist() == [[None] * len(outer) for outer in values]
    assert found.nested == sum(map(len, values))


def survives(texts: list[str]) -> None:
    try:
        found = arrays.elements(pa.array(texts, pa.string()))
    except DecodeError:
        return
    found.lists.validate(full=True)
    assert len(found.lists) == len(texts)


@search
@given(st.lists(ODD | ODD.map(lambda text: "{" + text + "}"), max_size=6))
def test_random_texts_give_elements_or_a_decode_error(texts: list[str]) -> None:
    survives(texts)


@search
@given(VALUES.filter(bool), st.data())
def test_damaged_literals_give_elements_or_a_decode_error(
    values: list[list[str | None] | None], data: st.DataObject
) -> None:
    texts = [printed(each or []) for each in values]
    place = data.draw(st.integers(0, len(texts) - 1))
    at = data.draw(st.integers(0, len(texts[place])))
    texts[place] = texts[place][:at] + data.draw(ODD) + texts[place][at + data.draw(st.integers(0, 3)) :]
    survives(texts)


@search
@given(VALUES.filter(bool), st.data())
def test_a_literal_without_its_end_is_noticed(values: list[list[str | None] | None], data: st.DataObject) -> None:
    texts = [printed(each or []) for each in values]
    place = data.draw(st.integers(0, len(texts) - 1))
    texts[place] = texts[place][: -data.draw(st.integers(1, 2))]
    try:
        found = arrays.elements(pa.array(texts, pa.string()))
    except DecodeError:
        return
    raise AssertionError(f"{texts} were read as {found.lists}")
