"""Encodes batches as Kafka records with a configuration's transforms and converters; plain JSON has a faster way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.failure_handling import FailureHandling
from tailrace.events.forms import are_json
from tailrace.events.layouts import Batch
from tailrace.events.record import KAFKA, RecordEncoder
from tailrace.events.rows import RowWriter
from tailrace.events.unfold import Unfolder
from tailrace.model.arrow import keep_memory
from tailrace.model.change import ChangeBatch
from tailrace.model.source import SourceBlock
from tailrace.transforms import Step, rename
from tailrace.transforms.registry import staged, stages
from tailrace.transforms.route import Route


class Encoder:
    """Encodes batches into rows of the `kafka` shape: the properties' transforms first, then the pipeline's steps.

    With `own_times` a record's time is null unless a transform has set it, as in the reference, where Kafka's producer
    then takes its own.
    """

    def __init__(
        self, config: Config, source: SourceBlock, run_id: str, steps: Sequence[Step] = (), own_times: bool = False
    ) -> None:
        keep_memory()
        chain = [*stages(config), *staged(steps)]
        routes = [stage.transform for stage in chain if isinstance(stage.transform, Route) and stage.predicate is None]
        # Topics alone are renamed without a look into the records.
        self._routes = routes
        self._by_records = len(routes) < len(chain) or not are_json(config)
        self._stages = chain if self._by_records else []
        self._plain = RecordEncoder(config, source, run_id)
        self._unfolder = Unfolder(config, source, run_id)
        self._writer = RowWriter(config, source, own_times)
        self._own_times = own_times
        self._failures = FailureHandling.of(config)

    def encode(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """The batch's records in order. Raises DecodeError and TransformError."""
        return self.encode_all([batch])

    def encode_all(self, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        """The records of batches, those of a table in order. Raises DecodeError and TransformError."""
        if self._by_records:
            return chain.from_iterable(map(self._alone, batches))
        return map(self._finished, self._plain.encode_all(batches, self._alone))

    def _alone(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        encode = self._transformed if self._by_records else self._plain.encode
        return self._failures.encoded(batch, encode) if isinstance(batch, ChangeBatch) else encode(batch)

    def _transformed(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        for groups in self._unfolder.unfold(batch):
            for stage in self._stages:
                groups = stage.run(groups)
            yield from self._writer.rows(groups)

    def _finished(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        renamed = rename(rows, self._routes)
        return _without_times(renamed) if self._own_times else renamed


def _without_times(rows: pa.RecordBatch) -> pa.RecordBatch:
    at = KAFKA.get_field_index("timestamp")
    return rows.set_column(at, KAFKA.field(at), pa.nulls(len(rows), KAFKA.field(at).type))
