"""The Connector protocol: what every database's package offers to the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.events.transactions import MARKS
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableSchema


@dataclass(frozen=True)
class Chunk:
    """Part of a read: batches by table, the transaction marks among them (MARKS), and records of control topics."""

    batches: list[ChangeBatch]
    marks: pa.RecordBatch = field(default_factory=lambda: pa.RecordBatch.from_pylist([], schema=MARKS))
    controls: tuple[ControlBatch, ...] = ()


Offset = dict[str, Any]


class Connector(Protocol):
    """One database's way to plan and read. Offsets are JSON-ready dicts; splits are picklable and self-contained.

    Only `read` runs on executors, and it needs nothing but the split and the config.
    """

    config: Config
    source: SourceBlock
    source_type: pa.StructType

    def __init__(self, config: Config) -> None: ...

    def discover(self) -> list[TableSchema]:
        """The captured tables with their schemas, in snapshot order."""

    def begin(self) -> Offset:
        """The offset of a pipeline that has read nothing. Touches nothing on the server."""

    def horizon(self) -> int:
        """Where the log ends now."""

    def head(self, start: Offset, limit: int | None, until: int | None) -> Offset:
        """The offset to plan up to: the newest, but at most `limit` bytes of log further and not beyond `until`.

        `start` itself when there is nothing new.
        """

    def has_snapshot(self, offset: Offset) -> bool:
        """Whether a snapshot is to be read from an offset on, and not the log alone."""

    def plan(self, start: Offset, end: Offset) -> Sequence[Any]:
        """The splits of a stretch of the log or of the snapshot."""

    def snapshot_of(self, split: Any) -> str | None:
        """The name of the snapshot that a planned split reads; None for a split of the log.

        Splits of the log hold the same changes whenever they are planned; those of another snapshot hold other rows.
        """

    def snapshot(self) -> Sequence[Any]:
        """The splits of a bounded read of all captured tables as of now."""

    def read(self, split: Any) -> Iterator[Chunk]:
        """The changes of a split, the same ones whenever it is read."""

    def acknowledge(self, offset: Offset) -> None:
        """Everything up to the offset is safe downstream."""

    def close(self) -> None:
        """Let go of connections."""
