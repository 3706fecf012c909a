"""Compares two sides of a table by hashes: all rows in buckets of keys, then the rows of buckets that differ.

Buckets are of the key's hash: it is the same number on both sides, where the order of keys is each database's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import SinkError
from tailrace.model.held import is_held, text_of, value_of
from tailrace.model.native import IS_WHOLE, native_schema
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.digest import Hashes, combined, mixed, row_hashes, value_hashes
from tailrace.sinks.replica.evolve import aligned, cast, evolution, is_whole
from tailrace.sinks.replica.failures import ERRORS
from tailrace.sinks.replica.fold import merge_key
from tailrace.sinks.replica.layout import column_names
from tailrace.sinks.replica.table import Bounds, Table
from tailrace.sinks.replica.target import Target

BUCKETS = 1 << 14  # guessed
# Rows of the target whose hashes are held at a time, 16 bytes each.
HELD_ROWS = 4_000_000

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Digests:
    """Some rows, and hashes of their keys and of the whole."""

    rows: pa.Table
    keys: Hashes
    whole: Hashes

    @property
    def buckets(self) -> npt.NDArray[np.int64]:
        """The number of each row's bucket."""
        return (self.keys % np.uint64(BUCKETS)).astype(np.int64)


@dataclass(frozen=True)
class ComparedColumns:
    """What of a table is compared: the source's columns, in types that hold both sides' values; and the replica's key.

    Without a key a row is its own. `missing` are the columns that the replica does not have, null in its rows.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    missing: tuple[str, ...]

    @staticmethod
    def of(table: TableSchema, replica: pa.Schema | None) -> ComparedColumns:
        """The layout for a table and its replica. Raises SinkError where their types do not go together."""
        key = merge_key(table)
        source = _with_texts(native_schema(table), table, key, replica)
        if replica is None:
            return ComparedColumns(source, key, ())
        held = evolution(replica, source, str(table.id)).schema
        schema = pa.schema([held.field(name) for name in source.names])
        return ComparedColumns(schema, key, tuple(name for name in source.names if name not in replica.names))

    def aligned(self, rows: pa.Table) -> pa.Table:
        """Rows of either side in the common columns and types."""
        names = [name for name in rows.column_names if name in self.schema.names]
        others = {name for name in names if self._has_others(rows.schema.field(name))}
        plain = pa.schema([field for field in self.schema if field.name not in others])
        others_aligned = aligned(rows.select([name for name in names if name not in others]), plain)
        columns = [(rows if field.name in others else others_aligned).column(field.name) for field in self.schema]
        return pa.table(columns, names=self.schema.names)

    def _has_others(self, field: pa.Field) -> bool:
        """Whether a column of rows has values that the common type cannot hold."""
        return is_held(field.type) and not pa.types.is_string(self.schema.field(field.name).type)

    def digests(self, rows: pa.Table) -> Digests:
        """Rows of either side with their hashes. -0.0 and 0.0 are one key, and two values of other columns."""
        rows = self.aligned(rows)
        values = (_hashes(rows.column(each.name), each.type, signed=each.name not in self.key) for each in self.schema)
        whole = combined([*values], rows.num_rows)
        return Digests(rows, self.key_hashes(rows) if self.key else whole, whole)

    def key_hashes(self, rows: pa.Table) -> Hashes:
        """Hashes of the keys of rows, or of keys alone."""
        keys = [cast(rows.column(name), self.schema.field(name).type) for name in self.key]
        return row_hashes(keys, rows.num_rows)


def _with_texts(source: pa.Schema, table: TableSchema, key: tuple[str, ...], replica: pa.Schema | None) -> pa.Schema:
    """The source's columns. Those that cannot hold all values are texts in keys, and where the replica's are."""
    for place, column in enumerate(table.columns):
        at = -1 if replica is None else replica.get_field_index(column.name)
        is_text = replica is not None and at >= 0 and is_whole(replica.field(at))
        if is_held(column.arrow) and (column.name in key or is_text):
            source = source.set(place, pa.field(column.name, pa.string(), metadata=IS_WHOLE))
    return source


def _hashes(values: pa.ChunkedArray, kind: pa.DataType, *, signed: bool) -> Hashes:
    """Hashes of values; those that the common type cannot hold are hashed as the texts that they are."""
    if not is_held(values.type) or is_held(kind):
        return value_hashes(values, signed=signed)
    column = values.combine_chunks()
    text = text_of(column)
    hashes = value_hashes(cast(pa.chunked_array([value_of(column)]), kind), signed=signed)
    return np.where(np.asarray(text.is_valid()), ~value_hashes(text), hashes)


@dataclass(frozen=True)
class KeyRange:
    """Rows by a key of whole numbers: those behind one key and up to another; None: from the first, to the last row."""

    names: tuple[str, ...]
    after: tuple[int, ...] | None = None
    until: tuple[int, ...] | None = None

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of some rows that lie in it. A null, which no key has, lies behind all."""
        chosen = np.ones(rows.num_rows, np.bool_)
        if self.after is not None:
            chosen &= self._are_behind(rows, self.after)
        if self.until is not None:
            chosen &= ~self._are_behind(rows, self.until)
        return rows if chosen.all() else rows.filter(pa.array(chosen))

    def _are_behind(self, rows: pa.Table, key: tuple[int, ...]) -> Flags:
        behind, same = np.zeros(rows.num_rows, np.bool_), np.ones(rows.num_rows, np.bool_)
        for name, value in zip(self.names, key, strict=True):
            column, bound = rows.column(name), pa.scalar(value, pa.int64())
            if pa.types.is_string(column.type):  # as the replica has a key that was a number of any scale once
                column = column.cast(pa.int64())
            behind |= same & np.asarray(pc.fill_null(pc.greater(column, bound), True), bool)
            same &= np.asarray(pc.fill_null(pc.equal(column, bound), False), bool)
        return behind

    def bounds(self, column: str) -> Bounds:
        """What the first part of the key, in that column of the table, has to be."""
        after, until = ((None if each is None else each[0]) for each in (self.after, self.until))
        return Bounds(column, after, until)


class ReplicaVersion:
    """A version of a replica's table, which can be read repeatedly; None if there is no table.

    Of a table of versions those rows count that are null in the column `end`. With a `part` only the rows in that.
    """

    def __init__(
        self,
        target: Table | None,
        layout: ComparedColumns,
        names: Mapping[str, str],
        end: str | None = None,
        part: KeyRange | None = None,
    ) -> None:
        self._target = target
        self._end = end
        self._layout = layout
        self._names = names
        self._part = part

    def within(self, part: KeyRange) -> ReplicaVersion:
        """A part of this version."""
        return ReplicaVersion(self._target, self._layout, self._names, self._end, part)

    @staticmethod
    def of(place: Target, table: TableSchema) -> tuple[ReplicaVersion, ComparedColumns]:
        """The replica of a table as it is now. Raises SinkError."""
        with _readable(place.uri):
            target = place.open()
        # The source's names, used in queries of its rows and keys.
        names = {new: old for old, new in column_names(table, place.names).items()}
        layout = ComparedColumns.of(table, None if target is None else _renamed(target.schema, names))
        return ReplicaVersion(target, layout, names, place.mode.end), layout

    @property
    def is_missing(self) -> bool:
        """Whether there is no table."""
        return self._target is None

    @property
    def columns(self) -> list[str]:
        """The columns by the source's names."""
        return [] if self._target is None else _renamed(self._target.schema, self._names).names

    def count(self) -> int:
        """How many rows there are, by the table's log. Raises SinkError."""
        if self._target is None:
            return 0
        with _readable(self._target.uri):
            return self._target.count()

    def rows(self) -> Iterator[Digests]:
        """All rows. Raises SinkError."""
        return map(self._layout.digests, self._scanned() if self._part is None else self._aligned())

    def rows_of(self, keys: Hashes) -> Iterator[Digests]:
        """The rows of keys with these hashes, which are in order. Raises SinkError."""
        for rows in self._aligned():
            wanted = _places(keys, self._layout.key_hashes(rows))[1]
            if wanted.any():
                yield self._layout.digests(rows.filter(pa.array(wanted)))

    def _aligned(self) -> Iterator[pa.Table]:
        """The rows in the common columns and types."""
        aligned_rows = map(self._layout.aligned, self._scanned())
        return aligned_rows if self._part is None else map(self._part.of, aligned_rows)

    def _scanned(self) -> Iterator[pa.Table]:
        if self._target is None:
            return
        part, bounds = self._part, None
        if part is not None:
            own = {old: new for new, old in self._names.items()}
            name = own.get(part.names[0], part.names[0])
            bounds = part.bounds(name) if pa.types.is_integer(self._target.schema.field(name).type) else None
        with _readable(self._target.uri):
            for batch in self._target.scan(bounds):
                if batch.num_rows:
                    rows = pa.Table.from_batches([batch])
                    if self._end is not None:  # views of strings cannot be filtered
                        rows = rows.cast(self._target.schema).filter(rows.column(self._end).is_null())
                    yield rows.rename_columns([self._names.get(name, name) for name in rows.column_names])


def _renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    return pa.schema([each.with_name(names.get(each.name, each.name)) for each in schema])


@contextmanager
def _readable(place: str) -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        remedy = "see that it is there and may be read; files that VACUUM removed under the reader: compare again"
        raise SinkError(f"the replica cannot be read: {error}", where=place, remedy=remedy) from error


class BucketTotals:
    """How many rows fell into each bucket, and a sum of their hashes."""

    def __init__(self, digests: Iterable[Digests]) -> None:
        self.counts = np.zeros(BUCKETS, np.int64)
        self.sums = np.zeros(BUCKETS, np.uint64)
        for each in digests:
            buckets = each.buckets
            self.counts += np.bincount(buckets, minlength=BUCKETS)
            np.add.at(self.sums, buckets, mixed(each.whole))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def hashes(self) -> Hashes:
        """A hash of each bucket's rows, 0 where it has none."""
        hashes = np.maximum(mixed(self.sums ^ mixed(self.counts.astype(np.uint64))), np.uint64(1))
        return np.where(self.counts > 0, hashes, np.uint64(0))

    def differing(self, other: BucketTotals) -> Flags:
        """The buckets whose rows are others."""
        is_other: Flags = (self.counts != other.counts) | (self.sums != other.sums)
        return is_other


@dataclass(frozen=True)
class Suspects:
    """Keys whose rows differed when they were read, in the order of their hashes; `unread`: so many more there were."""

    keys: pa.Table
    hashes: Hashes
    unread: int = 0

    def __len__(self) -> int:
        return len(self.hashes)

    def where(self, chosen: Flags) -> Suspects:
        """Some of them."""
        return Suspects(self.keys.filter(pa.array(chosen)), self.hashes[chosen])

    def places(self, keys: Hashes) -> tuple[npt.NDArray[np.int64], Flags]:
        """For each key's hash its place among these, and whether it is one of them."""
        return _places(self.hashes, keys)


def suspects(
    layout: ComparedColumns,
    source: Callable[[], Iterator[Digests]],
    target: ReplicaVersion,
    totals: BucketTotals,
    differing: Flags,
    most: int,
) -> Suspects:
    """The keys of rows that differ in the differing buckets, at most so many; `totals` are the target's.

    Both sides are read once for each HELD_ROWS rows of the target in them, the source perhaps of a later moment.
    """
    parts: list[pa.Table] = []
    left, unread = most, 0
    for group in _groups(totals.counts, differing):
        for keys in _differing_rows(layout, source, target, group):
            parts.append(keys.slice(0, left))
            unread += max(keys.num_rows - left, 0)
            left = max(left - keys.num_rows, 0)
    none = pa.schema([layout.schema.field(name) for name in layout.key]).empty_table()
    together = pa.concat_tables([none, *parts]).combine_chunks()
    hashes, first = np.unique(layout.key_hashes(together), return_index=True)
    return Suspects(together.take(pa.array(first)), hashes, unread)


def _groups(counts: npt.NDArray[np.int64], differing: Flags) -> Iterator[Flags]:
    """The differing buckets, in groups that hold about HELD_ROWS rows."""
    if not differing.any():
        return
    number = np.cumsum(np.where(differing, counts, 0)) // HELD_ROWS
    for group in np.unique(number[differing]):
        yield differing & (number == group)


def _differing_rows(
    layout: ComparedColumns, source: Callable[[], Iterator[Digests]], target: ReplicaVersion, group: Flags
) -> Iterator[pa.Table]:
    held = [(each.keys[inside], each.whole[inside]) for each in target.rows() if (inside := group[each.buckets]).any()]
    keys, whole = one_a_key([pair[0] for pair in held], [pair[1] for pair in held])
    seen = np.zeros(len(keys), np.bool_)
    for each in source():
        places, is_place = _places(keys, each.keys)
        seen[places[is_place]] = True
        differs = group[each.buckets] & ~is_place
        differs[is_place] = whole[places[is_place]] != each.whole[is_place]
        if differs.any():
            yield each.rows.select(list(layout.key)).filter(pa.array(differs))
    surplus = keys[~seen]
    for each in target.rows_of(surplus) if len(surplus) else ():
        yield each.rows.select(list(layout.key))


def one_a_key(keys: Sequence[Hashes], whole: Sequence[Hashes]) -> tuple[Hashes, Hashes]:
    """The keys in order, each once, with the hash of its row; of several rows of one key a hash of them all."""
    if not keys:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    rows = np.concatenate(whole)
    distinct, first, place, counts = np.unique(
        np.concatenate(keys), return_index=True, return_inverse=True, return_counts=True
    )
    sums = np.zeros(len(distinct), np.uint64)
    np.add.at(sums, place, mixed(rows))
    return distinct, np.where(counts > 1, sums, rows[first])


def _places(in_order: Hashes, keys: Hashes) -> tuple[npt.NDArray[np.int64], Flags]:
    if not len(in_order):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    places = np.minimum(np.searchsorted(in_order, keys), len(in_order) - 1)
    return places, in_order[places] == keys
