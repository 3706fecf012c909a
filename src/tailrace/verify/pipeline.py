"""Reads the changes of the command's own tables by the connector, as the tasks of a pipeline do, without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tailrace.capture.capture import Capture
from tailrace.connectors.base import Offset
from tailrace.connectors.ports import ConnectorPackage
from tailrace.errors import SourceError
from tailrace.events.keychange import split_key_changes, with_identity
from tailrace.events.record import RecordEncoder
from tailrace.events.selection import select
from tailrace.model.change import ChangeBatch

Event = dict[str, Any]
_PAUSE_S = 0.1  # guessed
_PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
_PLAIN |= {"topic.prefix": "verify", "tombstones.on.delete": "false"}


@dataclass
class ProbePipeline:
    """One pipeline. `events` are the values of all its events so far in log order, without tombstones."""

    capture: Capture
    encoder: RecordEncoder
    is_old: bool
    offset: Offset = field(init=False)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.offset = self.capture.begin()

    def step(self) -> None:
        """Read one micro-batch. Raises TailraceError, the driver's errors."""
        start, self.offset = self.offset, self.capture.head(self.offset, None)
        if start == self.offset:
            return
        for split in self.capture.plan(start, self.offset):
            for chunk in self.capture.read(split):
                events = [pair for batch in chunk.batches if batch.schema_change is None for pair in self._of(batch)]
                # A chunk has a batch for each table.
                self.events += [event for _, event in sorted(events, key=lambda pair: pair[0])]

    def read_until(self, is_done: Callable[[list[Event]], bool], seconds: float) -> float:
        """Read on until the events so far are what is waited for; the seconds that took. Raises SourceError."""
        begin = time.monotonic()
        while not is_done(self.events):
            if time.monotonic() - begin > seconds:
                raise SourceError(f"{len(self.events)} events have arrived in {seconds:g} s, and more are missing")
            self.step()
            time.sleep(_PAUSE_S if not is_done(self.events) else 0)
        return time.monotonic() - begin

    def _of(self, batch: ChangeBatch) -> Iterator[tuple[int, Event]]:
        changes = with_identity(batch) if self.is_old else batch
        selected = select(split_key_changes(changes, has_zeros=False), self.capture.config)
        values = (value for rows in self.encoder.encode(selected) for value in rows.column("value").to_pylist())
        yield from zip(selected.rows.column("order").to_pylist(), map(json.loads, values), strict=True)


@contextmanager
def reading(package: ConnectorPackage, properties: Mapping[str, str]) -> Iterator[ProbePipeline]:
    """A pipeline of these properties, closed after the block."""
    config = package.resolve({**_PLAIN, **properties})
    capture = Capture(package.connector(config))
    block = package.source_block(config)
    try:
        yield ProbePipeline(capture, RecordEncoder(config, block, uuid4().hex), block.is_old)
    finally:
        capture.close()
