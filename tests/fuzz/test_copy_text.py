"""COPY's text format: escaped values are parsed back; anything else gives cells or a DecodeError."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings

from tailrace.connectors.postgres.log.protocol import copy_text
from tailrace.errors import DecodeError

search = settings(max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "100")), deadline=None)

TEXT = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12),
    st.text("\\\b\f\n\r\t\vbfnrtvN.", max_size=8),
)
LINE = (
    st.binary(max_size=20) | st.binary(max_size=20).map(lambda line: line + b"\n") | st.text("a\t\n\\N").map(str.encode)
)
ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def escaped(value: str | None) -> bytes:
    """A value as the server writes it (PostgreSQL manual, COPY, text format)."""
    return b"\\N" if value is None else "".join(ESCAPES.get(each, each) for each in value).encode()


def read(lines: list[bytes], columns: int) -> list[pa.Array]:
    buffer, cells = copy_text.cells(lines, columns, "t")
    return [copy_text.unescaped(cell.text(buffer)) for cell in cells]


@search
@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(st.none() | TEXT, min_size=n, max_size=n), min_size=1)))
def test_copy_rows_round_trip(rows: list[list[str | None]]) -> None:
    lines = [b"\t".join(map(escaped, row)) + b"\n" for row in rows]
    columns = read(lines, len(rows[0]))
    assert [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)] == rows


@search
@given(st.lists(LINE, min_size=1), st.integers(1, 4))
def test_random_bytes_give_cells_or_a_decode_error(lines: list[bytes], columns: int) -> None:
    try:
        buffer, cells = copy_text.cells(lines, columns, "t")
    except DecodeError as error:
        assert error.remedy  # noqa: PT017
        return
    for cell in cells:
        assert len(cell.text(buffer)) == len(lines)
