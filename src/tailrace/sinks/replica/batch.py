"""A micro-batch for replicas: its pipeline and range, its tables in turn, and the result for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.marks import TableProgress
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.states import SeenVersion
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch of one query, and where its tables lie. `keeps_dropped`: rows of dropped tables stay.

    `repeats`: whether another run has begun it, None if that is unknown. `upkeep`: None leaves the tables alone.
    `aside` are the folders of tables that have dead letters, `sets_aside`: more tables may become such. `copies` are
    the folders of tables that are read again, `known` the tables that were written before, as they were then. `gone`
    are tables that the source had dropped, `put_aside` those to be set aside, and why.
    """

    root: str
    query_id: str
    batch_id: int
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    keeps_dropped: bool = False
    repeats: bool | None = None
    upkeep: Upkeep | None = None
    aside: frozenset[str] = frozenset()
    sets_aside: bool = False
    layout: ReplicaLayout = field(default_factory=ReplicaLayout)
    copies: frozenset[str] = frozenset()
    known: Mapping[str, SeenVersion] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    put_aside: Mapping[str, str] = field(default_factory=dict)

    def target(self, table: str) -> Target:
        """The replica of a table."""
        layout = self.layout
        form = layout.forms.of(table)
        return Target(self.root, table, self.storage_options, layout.names, layout.mode, form)

    def progress(self, table: str, target: Table | None) -> TableProgress:
        """What a table holds of the query's changes. Raises SinkError for the replica of another table."""
        return TableProgress(target, self.query_id, table, self.batch_id, self.repeats)

    def keep(self, place: Target, versions: Iterable[int | None]) -> str | None:
        """Maintain a table whose commits in the micro-batch made these versions; what failed, if anything."""
        written = [version for version in versions if version is not None]
        if self.upkeep is None or not written:
            return None
        return self.upkeep.after(place, self.query_id, min(written))


def table_parts(batches: Iterable[pa.RecordBatch], layout: ReplicaLayout) -> Iterator[tuple[str, Iterator[Part]]]:
    """The tables of rows (`table`, `bytes`) that are sorted by table, each with its parts, numbered from 0."""
    for table, blobs in groupby(_blobs(batches), key=lambda blob: blob[0]):
        yield table, parts((blob for _, blob in blobs), layout=layout)


def _blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Buffer]]:
    for batch in batches:
        for name, blob in zip(batch.column("table"), batch.column("bytes"), strict=True):
            yield name.as_py(), blob.as_buffer()
