"""Array literals, `{1,NULL,"a b"}`: text in, Arrow lists of element text out, without a loop over rows or elements.

The form is that of the PostgreSQL manual, "Arrays: Input and Output": elements are separated by commas (those of BOX by
semicolons), quoted with `"` where need be, a backslash takes the next character as it is, an unquoted NULL is null.
Bounds (`[0:1]={...}`) are dropped. Only bytes with a meaning (quotes, backslashes, separators, braces) are looked at;
all others are copied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.connectors.postgres.log.protocol.framing import Bytes, Ints
from tailrace.errors import DecodeError

Flags = npt.NDArray[np.bool_]

_QUOTE, _BACKSLASH, _OPEN, _CLOSE = b'"\\{}'
_NOTABLE = np.zeros(256, np.bool_)
_NOTABLE[[_QUOTE, _BACKSLASH, _OPEN, _CLOSE]] = True


@dataclass(frozen=True, slots=True)
class ArrayElements:
    """The elements of n literals: a list of texts each, and how many elements were arrays themselves (read as null)."""

    lists: pa.ListArray
    nested: int


def elements(text: pa.Array, delimiter: str = ",") -> ArrayElements:
    """The elements of array literals. Raises DecodeError for a text that is none."""
    literals = _without_bounds(text.cast(pa.string()))
    data, starts, ends = _dense(literals)
    valid = literals.is_valid().to_numpy(zero_copy_only=False)
    marks = _marks(data, starts[valid], ends[valid], ord(delimiter))
    filled = (ends - starts > 2)[valid]
    opens, closes, separators = marks.outer[0::2], marks.outer[1::2], np.flatnonzero(marks.separator)
    begins, closing = _merged(opens[filled], separators), _merged(separators, closes[filled])
    before = np.cumsum(marks.separator)
    counts = np.zeros(len(literals), np.int64)
    counts[valid] = filled + before[closes] - before[opens]
    texts, nested = _texts(data, marks, begins, closing)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    mask = literals.is_null() if literals.null_count else None
    return ArrayElements(pa.ListArray.from_arrays(offsets, texts, mask=mask), nested)


def _merged(ascending: Ints, other: Ints) -> Ints:
    """Two ascending arrays as one. A stable sort finds such runs, and takes a third of the time of another."""
    return np.sort(np.concatenate([ascending, other]), kind="stable")


@dataclass(frozen=True, slots=True)
class _Marks:
    """The notable bytes: where they are and which of them are quotes, separators, or no part of any element.

    `outer` are the numbers of those that open and close a literal, in turn.
    """

    place: Ints
    outer: Ints
    quote: Flags
    separator: Flags
    dropped: Flags


def _marks(data: Bytes, starts: Ints, ends: Ints, delimiter: int) -> _Marks:
    notable = _NOTABLE.copy()
    notable[delimiter] = True
    place = np.flatnonzero(notable[data])
    kind = data[place]
    follows = np.concatenate([[False], np.diff(place) == 1]) if len(place) else np.zeros(0, np.bool_)
    escaping = _escaping(kind == _BACKSLASH, follows)
    escaped = follows & np.concatenate([[False], escaping[:-1]]) if len(place) else follows
    quote = (kind == _QUOTE) & ~escaped
    plain = (np.cumsum(quote) % 2 == 0) & ~escaped
    opened, closed = plain & (kind == _OPEN), plain & (kind == _CLOSE)
    depth = np.cumsum(opened) - np.cumsum(closed) + closed
    outer = (opened | closed) & (depth == 1)
    edges = np.stack([starts, ends - 1], axis=1).ravel()
    if not np.array_equal(place[outer], edges) or np.count_nonzero(quote) % 2:
        raise DecodeError("an array literal is not what the server prints")
    separator = plain & (kind == delimiter) & (depth == 1)
    return _Marks(place, np.flatnonzero(outer), quote, separator, quote | escaping | separator | outer)


def _escaping(backslash: Flags, follows: Flags) -> Flags:
    """Backslashes that take the next byte as it is: every other one of a run."""
    if not backslash.any():
        return backslash
    index = np.arange(len(backslash))
    in_run = follows & np.concatenate([[False], backslash[:-1]])
    run_start = np.maximum.accumulate(np.where(in_run, 0, index))
    escaping: Flags = backslash & ((index - run_start) % 2 == 0)
    return escaping


def _texts(data: Bytes, marks: _Marks, first: Ints, last: Ints) -> tuple[pa.Array, int]:
    """The texts of elements between two marks, null for NULL and for inner arrays, and the number of the latter."""
    begins, closing = marks.place[first] + 1, marks.place[last]

    def within(flag: Flags) -> Ints:
        total = np.concatenate([[0], np.cumsum(flag)])
        count: Ints = total[last] - total[first + 1]
        return count

    kept = np.ones(len(data), np.bool_)
    kept[marks.place[marks.dropped]] = False
    sizes = closing - begins - within(marks.dropped)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[kept])]
    texts = pa.Array.from_buffers(pa.string(), len(begins), buffers)
    inner = data[begins] == _OPEN
    null = inner | ((within(marks.quote) == 0) & pc.equal(texts, "NULL").to_numpy(zero_copy_only=False))
    if null.any():
        texts = pc.if_else(pa.array(null), pa.scalar(None, pa.string()), texts)
    return texts, int(inner.sum())


def _without_bounds(text: pa.Array) -> pa.Array:
    """`[0:1]={...}`, as arrays are printed that do not begin at 1, becomes `{...}`."""
    if not pc.any(pc.starts_with(text, "[")).as_py():
        return text
    return pc.replace_substring_regex(text, r"^[\[\]\d:\-]+=", "")


def _dense(text: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of a string array without any between values, and where each value begins and ends in them."""
    filled = text.fill_null("")
    _, offsets_buffer, data = filled.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    octets = np.frombuffer(data if data is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    return octets, offsets[:-1] - offsets[0], offsets[1:] - offsets[0]


def nested(literal: str, delimiter: str = ",") -> list[object]:
    """The elements of a literal of several dimensions as lists of texts, one byte at a time; such values are rare.

    Raises DecodeError for a text that is none.
    """
    inner: list[list[object]] = [[]]
    tokens = re.compile(
        r'\s*(?:([{}])|"((?:[^"\\]|\\.)*)"|((?:[^{}"\\%s]|\\.)+)|%s)' % ((re.escape(delimiter),) * 2), re.DOTALL
    )
    for match in tokens.finditer(literal[literal.index("{") :]):
        brace, quoted, bare = match.groups()
        if brace == "{":
            inner.append([])
        elif brace == "}":
            inner[-2].append(inner.pop())
        elif quoted is not None or bare is not None:
            text = re.sub(r"\\(.)", r"\1", quoted if bare is None else bare, flags=re.DOTALL)
            inner[-1].append(None if bare is not None and bare.upper() == "NULL" else text)
    if len(inner) != 1 or len(inner[0]) != 1:
        raise DecodeError("a text is no array literal")
    whole = inner[0][0]
    assert isinstance(whole, list)
    return whole
