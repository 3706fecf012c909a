"""Parses pgoutput, protocol version 1: converts messages to relations, transactions and rows by table.

Bytes in, columns out, no I/O. Source: PostgreSQL manual, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.connectors.postgres.log.protocol.framing import CORRUPT, Bytes, Frames, Ints, int64_at, uint32_at
from tailrace.connectors.postgres.log.protocol.tuples import TEXT, Cells, absent, scatter, walk
from tailrace.errors import DecodeError
from tailrace.override import override

BEGIN, COMMIT, ORIGIN, RELATION, TYPE = ord("B"), ord("C"), ord("O"), ord("R"), ord("Y")
INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE = ord("I"), ord("U"), ord("D"), ord("T"), ord("M")
ROWS = (INSERT, UPDATE, DELETE)
_KNOWN = np.zeros(256, np.bool_)
_KNOWN[[BEGIN, COMMIT, ORIGIN, RELATION, TYPE, *ROWS, TRUNCATE, MESSAGE]] = True
_IS_ROW = np.zeros(256, np.bool_)
_IS_ROW[list(ROWS)] = True

KEY_IMAGE, OLD_IMAGE, NEW_IMAGE = ord("K"), ord("O"), ord("N")
# Of every row: kind, relation and the kind of its first image.
_ROW_BYTES = 6
# Microseconds from 1970 to PostgreSQL's epoch, 2000-01-01.
EPOCH_US = 946_684_800_000_000


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the Relation message describes it."""

    name: str
    type_oid: int
    type_modifier: int
    in_identity: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the log describes it, valid for the rows that follow. `identity` is d, n, f or i."""

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]

    @override
    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Row changes of relations with the same columns, of one after the other, each in log order.

    `counts` are the rows of each relation. `index` points into the frames; `kind` is I, U or D; the images are given
    by column.
    """

    relations: tuple[Relation, ...]
    counts: tuple[int, ...]
    index: npt.NDArray[np.intp]
    kind: Bytes
    new: list[Cells]
    old: list[Cells]
    has_new: npt.NDArray[np.bool_]
    has_old: npt.NDArray[np.bool_]

    @property
    def columns(self) -> tuple[RelationColumn, ...]:
        """The columns of each of the relations."""
        return self.relations[0].columns

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        """Some of the rows of one relation, in their order."""
        return self if len(rows) == len(self.index) else self._of(self.relations, rows)

    def apart(self) -> list[Rows]:
        """The rows of each relation."""
        ends = np.cumsum(self.counts).tolist()
        spans = zip(self.relations, self.counts, ends, strict=True)
        return [self._of((relation,), np.arange(end - count, end)) for relation, count, end in spans]

    def _of(self, relations: tuple[Relation, ...], rows: npt.NDArray[np.int64]) -> Rows:
        new, old = ([cells.take(rows) for cells in image] for image in (self.new, self.old))
        plain = self.index[rows], self.kind[rows]
        return Rows(relations, (len(rows),), *plain, new, old, self.has_new[rows], self.has_old[rows])


# A relation, and what those have in common whose rows are read together.
Structure = tuple[Relation, Hashable]


@dataclass(slots=True)
class Relations:
    """The relations announced so far on one connection."""

    by_oid: dict[int, Relation] = field(default_factory=dict)

    def of(self, oid: int) -> Relation:
        """The relation of that number. Raises DecodeError when none was announced."""
        if oid not in self.by_oid:
            raise DecodeError(f"rows of relation {oid} came before its description", remedy=CORRUPT)
        return self.by_oid[oid]


def check_kinds(frames: Frames) -> None:
    """Raise DecodeError when a message is of no kind that protocol version 1 has."""
    unknown = ~_KNOWN[frames.kind]
    if unknown.any():
        kind = bytes([frames.kind[unknown][0]])
        raise DecodeError(
            f"unknown replication message {kind!r}", where=f"lsn {frames.lsn[unknown][0]}", remedy=CORRUPT
        )


def positions(frames: Frames, kind: int) -> npt.NDArray[np.intp]:
    """Where the messages of a kind stand."""
    return np.flatnonzero(frames.kind == kind)


@dataclass(frozen=True, slots=True)
class Begins:
    """Begin messages: `index` into the frames, LSN of the commit record, commit time in microseconds, xid."""

    index: npt.NDArray[np.intp]
    final_lsn: Ints
    commit_us: Ints
    xid: Ints


def begins(frames: Frames) -> Begins:
    """All Begin messages."""
    index = positions(frames, BEGIN)
    at = _fixed(frames, index, 21)
    return Begins(
        index,
        int64_at(frames.buffer, at + 1),
        int64_at(frames.buffer, at + 9) + EPOCH_US,
        uint32_at(frames.buffer, at + 17),
    )


@dataclass(frozen=True, slots=True)
class Commits:
    """Commit messages: `index` into the frames and the LSN behind the transaction's end."""

    index: npt.NDArray[np.intp]
    end_lsn: Ints


def commits(frames: Frames) -> Commits:
    """All Commit messages."""
    index = positions(frames, COMMIT)
    return Commits(index, int64_at(frames.buffer, _fixed(frames, index, 26) + 10))


@dataclass(frozen=True, slots=True)
class Messages:
    """Logical messages: `index` into the frames, whether they belong to a transaction, prefix (text), content."""

    index: npt.NDArray[np.intp]
    transactional: npt.NDArray[np.bool_]
    prefix: pa.Array
    content: pa.Array


def messages(frames: Frames) -> Messages:
    """All logical messages. Raises DecodeError."""
    index = positions(frames, MESSAGE)
    start, end = frames.start[index], frames.end[index]
    begin = start + 10
    nul = np.flatnonzero(frames.buffer == 0)
    stop = nul[np.minimum(np.searchsorted(nul, begin), len(nul) - 1)]
    length = uint32_at(frames.buffer, np.minimum(stop + 1, len(frames.buffer) - 4))
    if (begin > end).any() or (stop + 5 + length != end).any():
        raise DecodeError("a logical message is not as long as it says", remedy=CORRUPT)
    transactional = frames.buffer[start + 1] & 1 == 1
    everywhere = np.full(len(index), TEXT, np.uint8)
    prefix = Cells(everywhere, begin, stop - begin).text(frames.buffer)
    content = Cells(everywhere, stop + 5, length).text(frames.buffer)
    return Messages(index, transactional, prefix, content.cast(pa.binary()))


def _fixed(frames: Frames, index: npt.NDArray[np.intp], size: int) -> Ints:
    """Starts of messages whose size is known. Raises DecodeError when one differs."""
    start = frames.start[index]
    if (frames.end[index] - start != size).any():
        raise DecodeError(f"a {chr(frames.kind[index[0]])} message is not {size} bytes long", remedy=CORRUPT)
    return start


def relation(payload: bytes) -> Relation:
    """Parse a Relation message. Raises DecodeError."""
    try:
        (oid,) = struct.unpack_from(">I", payload, 1)
        schema, at = _text(payload, 5)
        table, at = _text(payload, at)
        identity, count = struct.unpack_from(">cH", payload, at)
        at += 3
        columns = []
        for _ in range(count):
            flags = payload[at]
            name, at = _text(payload, at + 1)
            type_oid, modifier = struct.unpack_from(">Ii", payload, at)
            at += 8
            columns.append(RelationColumn(name, type_oid, modifier, bool(flags & 1)))
        # An empty schema name stands for pg_catalog.
        return Relation(oid, schema or "pg_catalog", table, identity.decode("ascii"), tuple(columns))
    except (struct.error, IndexError, ValueError) as error:
        raise DecodeError(f"a Relation message cannot be read ({error})", remedy=CORRUPT) from error


def _text(payload: bytes, at: int) -> tuple[str, int]:
    end = payload.index(b"\0", at)
    return payload[at:end].decode(), end + 1


def truncated(payload: bytes) -> tuple[int, ...]:
    """The relations a Truncate message names. Raises DecodeError."""
    try:
        (count,) = struct.unpack_from(">I", payload, 1)
        if len(payload) != 6 + 4 * count:
            raise DecodeError("a Truncate message is cut short", remedy=CORRUPT)
        return struct.unpack_from(f">{count}I", payload, 6)
    except struct.error as error:
        raise DecodeError(f"a Truncate message cannot be read ({error})", remedy=CORRUPT) from error


def origin(payload: bytes) -> tuple[int, str]:
    """Commit LSN at the origin and the origin's name. Raises DecodeError."""
    try:
        (lsn,) = struct.unpack_from(">q", payload, 1)
        return lsn, _text(payload, 9)[0]
    except (struct.error, ValueError) as error:
        raise DecodeError(f"an Origin message cannot be read ({error})", remedy=CORRUPT) from error


def rows(frames: Frames, structure: Callable[[int], Structure | None], span: slice) -> Iterator[Rows]:
    """The row changes of a span of messages (one without Relation messages), in log order as far as grouping allows.

    `structure` says by a relation's number what it is and how its rows are laid out, None where they are not wanted.
    Rows of relations with equal layouts come together. Raises DecodeError for anything malformed.
    """
    index = np.flatnonzero(_IS_ROW[frames.kind[span]]) + (span.start or 0)
    if not len(index):
        return
    if (frames.end[index] - frames.start[index] < _ROW_BYTES).any():
        raise DecodeError("a row message is cut short", remedy=CORRUPT)
    oids = uint32_at(frames.buffer, frames.start[index] + 1)
    together: dict[Hashable, list[tuple[Relation, npt.NDArray[np.intp]]]] = {}
    for oid, places in _by_relation(oids):
        described = structure(oid)
        if described is not None:
            relation, layout = described
            together.setdefault(layout, []).append((relation, index[places]))
    for members in together.values():
        yield _rows_of(frames, members)


def _by_relation(oids: Ints) -> Iterator[tuple[int, npt.NDArray[np.intp] | slice]]:
    """Each relation and where its rows are, in the order of their first rows."""
    if (oids == oids[0]).all():  # most often: saves a sort
        yield int(oids[0]), slice(None)
        return
    relations, first, counts = np.unique(oids, return_index=True, return_counts=True)
    groups = np.split(np.argsort(oids, kind="stable"), np.cumsum(counts[:-1]))
    for place in np.argsort(first).tolist():
        yield int(relations[place]), groups[place]


def inserts(frames: Frames) -> tuple[npt.NDArray[np.intp], Ints]:
    """Where rows are inserted, and into which relation each; `rows` finds what is malformed."""
    index = positions(frames, INSERT)
    index = index[frames.end[index] - frames.start[index] >= _ROW_BYTES]
    return index, uint32_at(frames.buffer, frames.start[index] + 1)


def _rows_of(frames: Frames, members: list[tuple[Relation, npt.NDArray[np.intp]]]) -> Rows:
    relations, places = tuple(of for of, _ in members), [each for _, each in members]
    index, of = np.concatenate(places), relations[0]
    kind = frames.kind[index]
    marker = frames.buffer[frames.start[index] + 5]
    where = str(of) if len(relations) == 1 else f"{of} and {len(relations) - 1} tables like it"
    layouts = np.flatnonzero(np.bincount(kind.astype(np.int64) << 8 | marker))
    new_parts, old_parts = [], []
    has_new = np.ones(len(index), np.bool_)
    has_old = np.zeros(len(index), np.bool_)
    for layout in layouts.tolist():
        chosen = np.flatnonzero((kind == layout >> 8) & (marker == layout & 255))
        part = frames.select(index[chosen])
        old, new = _images(part, of, layout >> 8, layout & 255, where)
        new_parts.append((chosen, new if new is not None else absent(part, len(of.columns))))
        old_parts.append((chosen, old if old is not None else absent(part, len(of.columns))))
        has_new[chosen] = new is not None
        has_old[chosen] = old is not None
    new, old = (parts[0][1] if len(parts) == 1 else scatter(len(index), parts) for parts in (new_parts, old_parts))
    return Rows(relations, tuple(map(len, places)), index, kind, new, old, has_new, has_old)


def _images(
    part: Frames, of: Relation, kind: int, marker: int, where: str
) -> tuple[list[Cells] | None, list[Cells] | None]:
    """The old and the new image of messages of one layout."""
    cursor = part.start + 6
    old = new = None
    if marker in (KEY_IMAGE, OLD_IMAGE) and kind in (UPDATE, DELETE):
        old, cursor = walk(part, cursor, len(of.columns), where)
        if kind == UPDATE:
            if (cursor >= part.end).any() or (part.buffer[cursor] != NEW_IMAGE).any():
                raise DecodeError("an update lacks its new row", where=where, remedy=CORRUPT)
            cursor = cursor + 1
    elif not (marker == NEW_IMAGE and kind in (INSERT, UPDATE)):
        raise DecodeError(f"unknown row image {chr(marker)!r} in a {chr(kind)} message", where=where, remedy=CORRUPT)
    if kind != DELETE:
        new, cursor = walk(part, cursor, len(of.columns), where)
    if (cursor != part.end).any():
        raise DecodeError("a row message has bytes after its last column", where=where, remedy=CORRUPT)
    return old, new
