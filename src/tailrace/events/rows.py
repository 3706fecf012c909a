"""Writes records as rows of the `kafka` shape, keys, values and headers as the converters do, in the batch's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.events.converter import Converter
from tailrace.events.form import Entry
from tailrace.events.forms import form_of, record_schema
from tailrace.events.header_texts import header_texts
from tailrace.events.headers import HEADER, HEADERS, RepeatedHeaders
from tailrace.events.parts import Integers, Parts, gather, widths
from tailrace.events.records import Header, Records
from tailrace.model.arrow import flags, indices, repeat
from tailrace.model.cuts import cuts
from tailrace.model.source import SourceBlock

_MOST_HEADERS = 64  # guessed
_ALIKE = ("topic", "partition", "timestamp")


@dataclass
class _Group:
    """Records with their places among all and their keys and values as parts; None where they have none.

    `added` are headers of the converters; a record has none that is null.
    """

    records: Records
    places: Integers
    key: Parts | None
    value: Parts | None
    added: list[Entry]


class RowWriter:
    """Writes Records as the configuration's converters would.

    With `own_times` only the times that transforms have set are written.
    """

    def __init__(self, config: Config, source: SourceBlock, own_times: bool = False) -> None:
        self._own_times = own_times
        self._key, self._value = (form_of(config, part, source) for part in ("key", "value"))
        self._schema = record_schema(config, source)
        self._header = Converter.of(config, "header")
        # By identity: the headers that all records have are the same objects for a run.
        self._repeated: dict[tuple[int, ...], tuple[tuple[Header, ...], RepeatedHeaders]] = {}

    def rows(self, records: Sequence[Records]) -> Iterator[pa.RecordBatch]:
        """Rows of the `record_schema` by `order`, some 16 MB of keys and values at a time; a larger row comes alone.

        Raises DecodeError for a value without JSON form or an event of more than 2 GiB.
        """
        groups = list(self._groups([each for each in records if len(each)]))
        if not groups:
            return
        sizes = np.zeros(sum(len(group.places) for group in groups), np.int64)
        for group in groups:
            for parts in (group.key, group.value):
                if parts is not None:
                    sizes[group.places] += widths(parts, len(group.places))
        order = indices(np.argsort(np.concatenate([group.places for group in groups])))
        columns = {name: [getattr(group.records, name) for group in groups] for name in _ALIKE}
        if self._own_times:
            columns["timestamp"] = [_own_time(group.records) for group in groups]
        columns["headers"] = [self._headers(group) for group in groups]
        others = {
            name: arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays).take(order)
            for name, arrays in columns.items()
        }
        for start, stop in cuts(sizes):
            texts = {
                name: gather([(group.places, getattr(group, name)) for group in groups], start, stop, f"a {name}", kind)
                for name, kind in (("key", self._key.kind), ("value", self._value.kind))
            }
            texts |= {name: column.slice(start, stop - start) for name, column in others.items()}
            yield pa.record_batch([texts[name] for name in self._schema.names], schema=self._schema)

    def _headers(self, group: _Group) -> pa.Array:
        headers = group.records.headers
        if group.added or not all(each.constant and each.present is None for each in headers):
            return _headers(group, self._header)
        key = tuple(map(id, headers))
        if key not in self._repeated:
            entries = [_entries(each, self._header) for each in headers]
            whole = pa.concat_arrays(entries) if entries else pa.array([], HEADER)
            if len(self._repeated) >= _MOST_HEADERS:
                self._repeated.clear()
            self._repeated[key] = (headers, RepeatedHeaders(whole))
        return self._repeated[key][1].rows(len(group.records))

    def _groups(self, records: Sequence[Records]) -> Iterator[_Group]:
        order = np.concatenate([each.order for each in records] or [np.empty(0, np.int64)])
        rank = np.empty(len(order), np.int64)
        rank[np.argsort(order, kind="stable")] = np.arange(len(order))
        start = 0
        for each in records:
            places = rank[start : start + len(each)]
            start += len(each)
            if (np.diff(places) < 0).any():
                each, places = each.take(np.argsort(places)), np.sort(places)
            written: list[Parts | None] = []
            added: list[Entry] = []
            for part, form in ((each.key, self._key), (each.value, self._value)):
                written.append(None if part is None else form.parts(part, each.topic, each.headers))
                added += [] if part is None else form.headers(part, each.topic)
            yield _Group(each, places, written[0], written[1], added)


def _own_time(records: Records) -> pa.Array:
    return records.timestamp if records.timed else pa.nulls(len(records), records.timestamp.type)


def _headers(group: _Group, converter: Converter) -> pa.Array:
    """The headers of each record in their order, then those of the converters; null where a record has none."""
    count, headers = len(group.records), group.records.headers
    entries = [_entries(header, converter) for header in headers]
    entries += [_structs(name, values) for name, values in group.added]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in entries])])
    index = np.empty((count, len(entries)), np.int64)
    present = np.ones((count, len(entries)), np.bool_)
    for column, entry in enumerate(entries):
        is_constant = column < len(headers) and headers[column].constant
        index[:, column] = starts[column] + (0 if is_constant else np.arange(len(entry)))
    for column, header in enumerate(headers):
        present[:, column] = header.where(count)
    for column, (_, values) in enumerate(group.added, start=len(headers)):
        present[:, column] = flags(values.is_valid())
    lengths = present.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    pool = pa.concat_arrays(entries).take(indices(index[present]))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pool, type=HEADERS)
    return lists if lengths.all() else lists.take(indices(np.arange(count), lengths == 0))


def _entries(header: Header, converter: Converter) -> pa.Array:
    part = header.part
    text = header_texts(part.values, part.schema, converter, f"header {header.name}")
    return _structs(header.name, text.cast(pa.binary()))


def _structs(name: str, values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([repeat(name, len(values)), values], fields=list(HEADER))
