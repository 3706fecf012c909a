"""Batches to Kafka records with a configuration's transforms; without any, by the encoder that knows no columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tailrace.config import Config
from tailrace.events.record import RecordEncoder
from tailrace.events.rows import RowWriter
from tailrace.events.unfold import Unfolder
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.source import SourceBlock
from tailrace.transforms import Step, rename
from tailrace.transforms.registry import Single, stages
from tailrace.transforms.route import Route
from tailrace.transforms.transform import Stage


class Encoder:
    """Encodes batches into rows of the `kafka` shape: the properties' transforms first, then the pipeline's steps."""

    def __init__(self, config: Config, source: SourceBlock, run_id: str, steps: Sequence[Step] = ()) -> None:
        self._steps = steps
        own = stages(config)
        needed = bool(own) or any(isinstance(step, Single) for step in steps)
        self._stages = [*own, *_staged(steps)] if needed else []
        self._plain = RecordEncoder(config, source, run_id)
        self._unfolder = Unfolder(config, source, run_id)
        self._writer = RowWriter(config)

    def encode(self, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
        """The batch's records in order. Raises DecodeError and TransformError."""
        if not self._stages:
            for rows in self._plain.encode(batch):
                yield rename(rows, self._steps)
            return
        for groups in self._unfolder.unfold(batch):
            for stage in self._stages:
                groups = stage.run(groups)
            yield from self._writer.rows(groups)


def _staged(steps: Sequence[Step]) -> Iterator[Stage]:
    """Steps that act on records; filters have acted on changes before."""
    for step in steps:
        if isinstance(step, Single):
            yield step.stage
        elif isinstance(step, Route):
            yield Stage(step)
