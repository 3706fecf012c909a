"""Finds all that is in documents, level by level: the documents and arrays of one level are walked together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.connectors.mongodb.types.layout import Bytes, Ints, Values
from tailrace.connectors.mongodb.types.repeats import once
from tailrace.connectors.mongodb.types.walk import Elements, is_container, members


@dataclass(frozen=True)
class Tree:
    """Values and all that is in them: those of row r are `firsts[r]` to `firsts[r + 1]`.

    A document, an array or a code with a scope is followed by its elements and an END. `parents` has the kind of what
    an element is in, of what ends for an END, and ABSENT for the row's own value.
    """

    firsts: Ints
    kinds: Bytes
    parents: Bytes
    names: Ints
    name_ends: Ints
    starts: Ints


def tree(values: Values) -> Tree:
    """All that is in the values, which are documents, arrays or codes with a scope. Raises DecodeError.

    Of elements of one name in a document it has the last value, at the place of the first.
    """
    levels = []
    inner = values
    while len(inner):
        level = once(inner, members(inner))
        levels.append(level)
        opening = np.flatnonzero(is_container(level.kinds))
        inner = Values(values.buffer, level.kinds[opening], level.starts[opening])
    return _in_order(values, levels)


def _in_order(values: Values, levels: list[Elements]) -> Tree:
    """The elements of all levels, each container's behind it."""
    lengths = _lengths(levels)
    firsts = _sums(_container_lengths(levels[0], lengths[0]) if levels else np.empty(0, np.int64))
    total = int(firsts[-1])
    kinds, parents = np.zeros(total, np.uint8), np.zeros(total, np.uint8)
    names, name_ends, starts = (np.zeros(total, np.int64) for _ in range(3))
    containers, container_kinds = firsts[:-1], values.kinds  # of the level, by their places
    kinds[containers], starts[containers] = values.kinds, values.starts
    for level, length in zip(levels, lengths, strict=True):
        parents[containers + _container_lengths(level, length) - 1] = container_kinds
        before, rows = _sums(length), level.rows
        places = containers[rows] + 1 + before[:-1] - before[level.firsts[rows]]
        kinds[places], parents[places] = level.kinds, container_kinds[rows]
        names[places], name_ends[places], starts[places] = level.names, level.name_ends, level.starts
        opening = is_container(level.kinds)
        containers, container_kinds = places[opening], level.kinds[opening]
    return Tree(firsts, kinds, parents, names, name_ends, starts)


def _lengths(levels: list[Elements]) -> list[Ints]:
    """For each level, how many places each element takes: one, or a container's."""
    lengths: list[Ints] = []
    inner: Ints = np.empty(0, np.int64)  # of the containers in a level: the deepest has none
    for level in reversed(levels):
        length = np.ones(len(level), np.int64)
        length[is_container(level.kinds)] = inner
        inner = _container_lengths(level, length)
        lengths.append(length)
    return lengths[::-1]


def _container_lengths(level: Elements, lengths: Ints) -> Ints:
    """How many places the containers of a level take: one, those of their elements, and an END."""
    sums = _sums(lengths)
    return sums[level.firsts[1:]] - sums[level.firsts[:-1]] + 2


def _sums(counts: Ints) -> Ints:
    """Sums of the counts before each place, and of all."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums
