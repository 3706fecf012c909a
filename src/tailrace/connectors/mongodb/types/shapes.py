"""Finds documents of one shape, which have the same names and kinds in the same order, to read them column by column.

Most documents of a collection have one of few shapes. Where a shape is known, a name is one comparison for all
documents, and where a value begins follows from the value before: that takes a quarter of what a walk takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailrace.connectors.mongodb.types.layout import (
    ARRAY,
    CODE_WITH_SCOPE,
    COUNTED,
    DOCUMENT,
    END,
    FIXED,
    REGEX,
    Buffer,
    Flags,
    Ints,
    Values,
)
from tailrace.connectors.mongodb.types.strings import slices
from tailrace.connectors.mongodb.types.tree import tree
from tailrace.errors import DecodeError
from tailrace.javalike.escapes import escape

FEWEST = 1024
"""Documents that are worth a shape of their own: each element takes some calls, as many as 300 documents are worth."""
_MOST_MISSES = 3  # documents tried whose shape is rare, before all are taken for documents of many shapes
_MOST_KNOWN = 16  # guessed
_MOST_ELEMENTS = 200  # guessed


@dataclass(frozen=True)
class ShapeElement:
    """An element of a shape, or an END. `head` is its type, its name and a zero byte; `name` is JSON text.

    `parent` is the kind of what it is in, or of what ends.
    """

    kind: int
    parent: int
    head: bytes
    name: str


@dataclass(frozen=True)
class Shaped:
    """Documents of one shape: their rows, and for each step where its value begins in each of them."""

    rows: Ints
    steps: Sequence[ShapeElement]
    starts: Sequence[Ints]


class Shapes:
    """The shapes that documents have had; keep one for the documents of a batch."""

    def __init__(self) -> None:
        self._shapes: list[list[ShapeElement]] = []
        self._misses = 0

    def split(self, values: Values) -> tuple[list[Shaped], Ints]:
        """The documents of common shapes, and the rows of all others, damaged documents among them."""
        left = np.arange(len(values))
        shaped: list[Shaped] = []
        if (values.kinds != DOCUMENT).any():
            return shaped, left
        for steps in self._shapes:
            left = _separate(values, left, steps, shaped)
        while len(left) >= FEWEST and self._misses < _MOST_MISSES and len(self._shapes) < _MOST_KNOWN:
            example = len(left) * (self._misses + 1) // (_MOST_MISSES + 1)
            steps, before = _steps_of(values.take(left[example : example + 1])), len(shaped)
            left = _separate(values, left, steps, shaped)
            if len(shaped) > before:
                self._shapes.append(steps)
            else:
                self._misses += 1
        return shaped, left


def _separate(values: Values, rows: Ints, steps: Sequence[ShapeElement], shaped: list[Shaped]) -> Ints:
    """Add the rows of this shape to `shaped`, if they are enough; the other rows are returned."""
    if len(rows) < FEWEST or not steps:
        return rows
    match = _Match(values.buffer, values.starts[rows])
    if not match.follow(steps):
        return rows
    shaped.append(Shaped(rows[match.rows], steps, match.starts))
    others = np.ones(len(rows), np.bool_)
    others[match.rows] = False
    return rows[others]


def _steps_of(value: Values) -> list[ShapeElement]:
    """The shape of a document; none if it is too long, damaged, or has a code with a scope."""
    buffer = value.buffer
    try:
        elements = tree(value)
    except DecodeError:  # the walk of the documents without a shape reports it
        return []
    kinds, parents = elements.kinds[1:].tolist(), elements.parents[1:].tolist()
    if len(kinds) > _MOST_ELEMENTS or CODE_WITH_SCOPE in kinds:
        return []
    names = escape(slices(buffer, elements.names[1:], elements.name_ends[1:])).to_pylist()
    places = zip(elements.names[1:].tolist(), elements.name_ends[1:].tolist(), strict=True)
    heads = [
        b"\0" if kind == END else buffer.data[first - 1 : last + 1]
        for kind, (first, last) in zip(kinds, places, strict=True)
    ]
    texts = ["" if parent == ARRAY else f'"{name}": ' for parent, name in zip(parents, names, strict=True)]
    return [ShapeElement(*each) for each in zip(kinds, parents, heads, texts, strict=True)]


class _Match:
    """Documents that have had all steps so far, and where the next one is in each."""

    def __init__(self, buffer: Buffer, documents: Ints) -> None:
        self.buffer = buffer
        self.rows = np.arange(len(documents))
        self.starts: list[Ints] = []
        self._open = [documents]
        self._at = documents + 4

    def follow(self, steps: Sequence[ShapeElement]) -> bool:
        """Whether enough documents have all steps."""
        for step in steps:
            self._keep(self._at + len(step.head) <= self.buffer.size)
            self._keep(_has(self.buffer, self._at, step.head))
            if len(self.rows) < FEWEST:
                return False
            start = self._at + len(step.head)
            self.starts.append(start)
            self._pass(step.kind, start)
        return len(self.rows) >= FEWEST

    def _pass(self, kind: int, start: Ints) -> None:
        """Go on behind a value, or to the first element in it."""
        buffer = self.buffer
        if kind == END:
            container = self._open.pop()
            self._at = start
            self._keep(start == container + buffer.int32[container])
        elif kind in (DOCUMENT, ARRAY):
            self._open.append(start)
            self._at = start + 4
        elif kind == REGEX:
            self._at = buffer.zero_from(buffer.zero_from(start) + 1) + 1
        else:
            self._at = start + FIXED[kind] + (buffer.int32[start] if COUNTED[kind] else 0)
            self._keep(self._at >= start)

    def _keep(self, kept: Flags) -> None:
        if kept.all():
            return
        self.rows, self._at = self.rows[kept], self._at[kept]
        self.starts = [each[kept] for each in self.starts]
        self._open = [each[kept] for each in self._open]


def _has(buffer: Buffer, places: Ints, head: bytes) -> Flags:
    """Whether these bytes are at each place."""
    same: Flags = np.ones(len(places), np.bool_)
    for first in range(0, len(head), 8):
        part = head[first : first + 8]
        words = buffer.uint64[places + first]
        if len(part) < 8:
            words &= np.uint64((1 << 8 * len(part)) - 1)
        same &= words == np.uint64(int.from_bytes(part, "little"))
    return same
