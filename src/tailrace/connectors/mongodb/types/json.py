"""Formats BSON as JSON text, byte for byte as MongoDB's Java driver does.

Documents of common shapes are written column by column. The text of all others is one sequence of pieces: what ends the
last value and separates it from the next, the next one's name, what begins the value, the value. Pieces are taken from
pools, a column each, and lie one behind the other in the result, so that a document's text is a slice of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tailrace.connectors.mongodb.types.layout import (
    ABSENT,
    ARRAY,
    CODE_WITH_SCOPE,
    DOCUMENT,
    END,
    Buffer,
    Flags,
    Ints,
    Values,
)
from tailrace.connectors.mongodb.types.scalars import ScalarTexts, ValueMode, ValueStyle, fragment
from tailrace.connectors.mongodb.types.shapes import Shaped, Shapes
from tailrace.connectors.mongodb.types.strings import slices, string_column
from tailrace.connectors.mongodb.types.tree import Tree, tree
from tailrace.connectors.mongodb.types.walk import is_container
from tailrace.javalike.escapes import escape
from tailrace.model.arrow import indices, join, repeat

STRICT = ValueStyle(ValueMode.STRICT)
RELAXED = ValueStyle(ValueMode.RELAXED)
EXTENDED = ValueStyle(ValueMode.EXTENDED)
SPACED = ValueStyle(ValueMode.RELAXED, ", ")  # as BsonDocument.toJson() writes without settings
_AT_A_TIME = 1 << 21  # bytes of BSON: pieces and elements of so many stay in a processor's cache


def json_text(values: Values, style: ValueStyle) -> pa.Array:
    """The JSON text of each value, null where there is none. Raises DecodeError."""
    containers = is_container(values.kinds)
    if containers.all():
        return _documents(values, style)
    groups = [np.flatnonzero(containers)]
    texts = [_documents(values.take(groups[0]), style)]
    for kind in np.unique(values.kinds[~containers]).tolist():
        rows = np.flatnonzero(values.kinds == kind)
        groups.append(rows)
        texts.append(pa.nulls(len(rows), pa.string()) if kind == ABSENT else _scalars(values, kind, rows, style))
    return _in_order(groups, texts)


def _in_order(groups: Sequence[Ints], texts: Sequence[pa.Array]) -> pa.Array:
    """The texts of groups of rows, in the order of the rows."""
    if len(groups) == 1:
        return texts[0]
    rows = np.concatenate(groups)
    places = np.empty(len(rows), np.int64)
    places[rows] = np.arange(len(rows))
    return pa.concat_arrays(texts).take(indices(places))


def _scalars(values: Values, kind: int, rows: Ints, style: ValueStyle) -> pa.Array:
    return fragment(values.buffer, kind, values.starts[rows], style).whole(len(rows)).cast(pa.string())


def _documents(values: Values, style: ValueStyle) -> pa.Array:
    """The texts of documents, arrays and codes with a scope, some megabytes at a time."""
    before = np.cumsum(values.buffer.int32[values.starts].astype(np.int64)) // _AT_A_TIME
    cuts = [0, *(np.flatnonzero(np.diff(before)) + 1).tolist(), len(values)]
    shapes = Shapes()
    parts = [
        _part(Values(values.buffer, values.kinds[first:last], values.starts[first:last]), style, shapes)
        for first, last in pairwise(cuts)
    ]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _part(values: Values, style: ValueStyle, shapes: Shapes) -> pa.Array:
    shaped, others = shapes.split(values)
    groups, texts = (
        [each.rows for each in shaped],
        [_shaped(values.buffer, each, style) for each in shaped],
    )
    if len(others) or not shaped:
        groups.append(others)
        texts.append(_assemble(values.take(others), style))
    return _in_order(groups, texts)


def _shaped(buffer: Buffer, shaped: Shaped, style: ValueStyle) -> pa.Array:
    """The texts of documents of one shape: texts that all have, and a column between each two."""
    parts: list[str | pa.Array] = []
    text, separator = "{", ""
    for step, starts in zip(shaped.steps, shaped.starts, strict=True):
        if step.kind == END:
            text, separator = text + ("]" if step.parent == ARRAY else "}"), style.separator
        elif step.kind in (DOCUMENT, ARRAY):
            text, separator = text + separator + step.name + ("{" if step.kind == DOCUMENT else "["), ""
        else:
            piece = fragment(buffer, step.kind, starts, style)
            text += separator + step.name + piece.left
            if piece.texts is not None:
                parts += [text, piece.texts]
                text = piece.right
            separator = style.separator
    return join(*parts, text) if parts else repeat(text, len(shaped.rows))


def _assemble(values: Values, style: ValueStyle) -> pa.Array:
    elements = tree(values)
    pieces = _Pieces()
    fragments, value_pieces = _values(values, elements, style, pieces)
    named = (elements.parents != ARRAY) & (elements.parents != ABSENT) & (elements.kinds != END)
    names = pieces.add(escape(slices(values.buffer, elements.names[named], elements.name_ends[named])))
    index = np.empty((len(elements.kinds), 4), np.int64)
    index[:, 0] = _between(elements, fragments, named, style, pieces)
    index[:, 1] = pieces.add([""])
    index[named, 1] = names + np.arange(named.sum())
    lefts = [name + piece.left for name in ("", '": ') for piece in fragments.values()]
    index[:, 2] = pieces.add(lefts) + named * len(fragments) + _numbers(fragments)[elements.kinds]
    index[:, 3] = value_pieces
    text = pieces.pool().take(indices(index.reshape(-1)))
    offsets = np.frombuffer(text.buffers()[1], np.int32)[elements.firsts * 4]
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(offsets), text.buffers()[2]])


def _values(values: Values, elements: Tree, style: ValueStyle, pieces: _Pieces) -> tuple[dict[int, ScalarTexts], Ints]:
    """How the kinds that there are begin and end, and which piece is the text of each value."""
    fragments: dict[int, ScalarTexts] = {}
    chosen = np.empty(len(elements.kinds), np.int64)
    for kind in np.flatnonzero(np.bincount(elements.kinds, minlength=256)).tolist():
        rows = np.flatnonzero(elements.kinds == kind)
        piece = _fragment(values, elements, kind, rows, style)
        fragments[kind] = piece
        if kind == END:
            ends = pieces.add(["}", "]", "}}"])
            chosen[rows] = ends + (elements.parents[rows] == ARRAY) + 2 * (elements.parents[rows] == CODE_WITH_SCOPE)
        elif piece.texts is None:
            chosen[rows] = pieces.add([""])
        else:
            chosen[rows] = pieces.add(piece.texts) + np.arange(len(rows))
    return fragments, chosen


def _fragment(values: Values, elements: Tree, kind: int, rows: Ints, style: ValueStyle) -> ScalarTexts:
    if kind in (END, DOCUMENT, ARRAY):
        return ScalarTexts({END: "", DOCUMENT: "{", ARRAY: "["}[kind])
    if kind == CODE_WITH_SCOPE:
        code = escape(string_column(values.buffer, elements.starts[rows] + 4))
        return ScalarTexts('{"$code": "', code, f'"{style.separator}"$scope": {{')
    return fragment(values.buffer, kind, elements.starts[rows], style)


def _between(
    elements: Tree, fragments: dict[int, ScalarTexts], named: Flags, style: ValueStyle, pieces: _Pieces
) -> Ints:
    """The pieces before names: the end of the last value, a comma unless the element is in that value, a quote."""
    last = np.zeros(len(elements.kinds), np.uint8)  # the kind of the element before; a row's value comes after nothing
    last[1:] = elements.kinds[:-1]
    last[elements.firsts[:-1]] = END
    comma = ~is_container(last) & (elements.kinds != END) & (elements.parents != ABSENT)
    texts = [
        piece.right + separator + quote
        for piece in fragments.values()
        for separator in ("", style.separator)
        for quote in ("", '"')
    ]
    first: Ints = pieces.add(texts) + 4 * _numbers(fragments)[last] + 2 * comma + named
    return first


def _numbers(fragments: dict[int, ScalarTexts]) -> Ints:
    """For each kind, its number among those that there are."""
    numbers = np.zeros(256, np.int64)
    numbers[list(fragments)] = np.arange(len(fragments))
    return numbers


class _Pieces:
    """Texts to choose from."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []
        self._count = 0

    def add(self, texts: pa.Array | list[str]) -> int:
        """Add texts; the number of the first is returned."""
        part = pa.array(texts, pa.string()) if isinstance(texts, list) else texts.cast(pa.string())
        first = self._count
        self._parts.append(part)
        self._count += len(part)
        return first

    def pool(self) -> pa.Array:
        """All texts in one column."""
        return pa.concat_arrays(self._parts)
