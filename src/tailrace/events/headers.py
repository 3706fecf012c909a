"""Record headers: the context of a run on every record, and the other key on both records of a key change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.events import EXTENDED_HEADERS_ENABLED
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.events.converter import Converter
from tailrace.events.header_texts import header_texts
from tailrace.model.arrow import flags, indices
from tailrace.model.schema import ConnectSchema

HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = pa.list_(HEADER)

_PREFIX = "__debezium.context."
_FIRST_ROWS = 1 << 12  # guessed


def context(config: Config, connector: str, run_id: str) -> dict[str, str]:
    """The headers that describe a record's origin, by name; none where `extended.headers.enabled` says so."""
    if not config[EXTENDED_HEADERS_ENABLED]:
        return {}
    server = config[TOPIC_PREFIX]
    names = {"connectorLogicalName": server, "taskId": "0", "connectorName": connector, "runId": run_id}
    return {_PREFIX + name: value for name, value in names.items()}


class RepeatedHeaders:
    """The same headers for every record: slices of one array, as building it costs more than all else."""

    def __init__(self, entries: pa.Array) -> None:
        self._entries = entries
        self._rows: pa.Array = pa.array([], HEADERS)

    def rows(self, count: int) -> pa.Array:
        """The column for so many records; null where there are no headers."""
        if not len(self._entries):
            return pa.nulls(count, HEADERS)
        if len(self._rows) < count:
            most = max(_FIRST_ROWS, 1 << (count - 1).bit_length())
            entries = self._entries.take(indices(np.tile(np.arange(len(self._entries)), most)))
            offsets = pa.array(np.arange(most + 1, dtype=np.int32) * np.int32(len(self._entries)), pa.int32())
            self._rows = pa.ListArray.from_arrays(offsets, entries, type=HEADERS)
        return self._rows.slice(0, count)


class HeaderWriter:
    """Gives the `headers` column of record batches; null where a record has none.

    `shared` are the headers that all records have, by name.
    """

    def __init__(self, shared: Mapping[str, str], converter: Converter) -> None:
        values = pa.array(list(shared.values()), pa.string())
        texts = header_texts(values, ConnectSchema("string"), converter, "headers")
        self._entries = pa.StructArray.from_arrays(
            [pa.array(list(shared), pa.string()), texts.cast(pa.binary())], fields=list(HEADER)
        )
        self._repeated = RepeatedHeaders(self._entries)

    def context(self, rows: int) -> pa.Array:
        """The same headers for so many rows."""
        return self._repeated.rows(rows)

    def with_other_key(self, names: pa.Array, values: pa.Array) -> pa.Array:
        """Headers where some rows have one more, first: `names` and `values` (string) are null on the others."""
        extra = flags(names.is_valid())
        shared, rows = len(self._entries), len(names)
        own = pa.StructArray.from_arrays([names, values.cast(pa.binary())], fields=list(HEADER))
        pool = pa.concat_arrays([self._entries, own])
        offsets = np.concatenate([[0], np.cumsum(shared + extra)]).astype(np.int32)
        index = np.empty(int(offsets[-1]), np.int64)
        index[offsets[:-1][extra]] = shared + np.flatnonzero(extra)
        places = (offsets[:-1] + extra)[:, None] + np.arange(shared)
        index[places] = np.arange(shared)
        headers = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pool.take(indices(index)), type=HEADERS)
        if shared or rows == extra.sum():
            return headers
        return headers.take(indices(np.arange(rows), ~extra))
