"""Writes records as rows of the `kafka` shape: JSON keys, values and headers, in the order of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.events.converter import Converter
from tailrace.events.header_texts import header_texts
from tailrace.events.headers import HEADER, HEADERS
from tailrace.events.parts import Integers, Parts, flat, gather, struct_parts, widths
from tailrace.events.record import KAFKA
from tailrace.events.records import Header, Part, Records
from tailrace.model.arrow import indices, repeat
from tailrace.model.cuts import cuts
from tailrace.model.text.json import fragment

_ALIKE = ("topic", "partition", "timestamp")


@dataclass
class _Group:
    """Records with their places among all and their keys and values as parts; None where they have none."""

    records: Records
    places: Integers
    key: Parts | None
    value: Parts | None


class RowWriter:
    """Writes Records as the JSON converter would, under one configuration.

    With `own_times` only the times that transforms have set are written.
    """

    def __init__(self, config: Config, own_times: bool = False) -> None:
        self._own_times = own_times
        self._key, self._value = Converter.of(config, "key"), Converter.of(config, "value")
        self._header = Converter.of(config, "header")

    def rows(self, records: Sequence[Records]) -> Iterator[pa.RecordBatch]:
        """Rows of the schema KAFKA by `order`, some 16 MB of keys and values at a time; a larger row comes alone.

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
        columns["headers"] = [_headers(group.records, self._header) for group in groups]
        others = {
            name: arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays).take(order)
            for name, arrays in columns.items()
        }
        for start, stop in cuts(sizes):
            texts = {
                "key": gather([(group.places, group.key) for group in groups], start, stop, "a record's key"),
                "value": gather([(group.places, group.value) for group in groups], start, stop, "a record's value"),
            }
            texts |= {name: column.slice(start, stop - start) for name, column in others.items()}
            yield pa.record_batch([texts[name] for name in KAFKA.names], schema=KAFKA)

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
            key = None if each.key is None else _parts(each.key, self._key)
            value = None if each.value is None else _parts(each.value, self._value)
            yield _Group(each, places, key, value)


def _own_time(records: Records) -> pa.Array:
    return records.timestamp if records.timed else pa.nulls(len(records), records.timestamp.type)


def _parts(part: Part, converter: Converter) -> Parts:
    left, right = converter.wrap(part.schema)
    if part.column is None:
        return [left, part.text, right]
    values = part.values
    if part.schema.type != "struct" or values.null_count:
        return flat(left, fragment(values, part.schema, converter.style), right)
    # A struct's fields stay apart until all is joined: one copy of their text less.
    pieces = [fragment(field.values, field.schema, converter.style) for _, field in part.fields()]
    return flat(left, struct_parts([field.name for field in part.schema.fields], pieces), right)


def _headers(records: Records, converter: Converter) -> pa.Array:
    """The headers of each record in their order; null where a record has none."""
    count, headers = len(records), records.headers
    if not headers:
        return pa.nulls(count, HEADERS)
    entries = [_entries(header, converter) for header in headers]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in entries])])
    index = np.empty((count, len(headers)), np.int64)
    present = np.empty((count, len(headers)), np.bool_)
    for column, header in enumerate(headers):
        index[:, column] = starts[column] + (0 if header.constant else np.arange(count))
        present[:, column] = header.where(count)
    lengths = present.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    pool = pa.concat_arrays(entries).take(indices(index[present]))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pool, type=HEADERS)
    return lists if lengths.all() else lists.take(indices(np.arange(count), lengths == 0))


def _entries(header: Header, converter: Converter) -> pa.Array:
    part = header.part
    text = header_texts(part.values, part.schema, converter, f"header {header.name}")
    names = repeat(header.name, len(part.values))
    return pa.StructArray.from_arrays([names, text.cast(pa.binary())], fields=list(HEADER))
