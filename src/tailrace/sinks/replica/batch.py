"""A micro-batch for replicas: its pipeline and range, its tables in turn, and the result for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

import pyarrow as pa
from deltalake import DeltaTable

from tailrace.sinks.replica.layout import ReplicaLayout
from tailrace.sinks.replica.marks import TableProgress
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep


@dataclass(frozen=True)
class TableReport:
    """What was done to one table: rows put and deleted, net, and the table's version then (None: nothing was new).

    `aside` is the error that set the table aside, if one did; `letters` the version of its dead letters then.
    """

    table: str
    upserted: int
    deleted: int
    version: int | None
    aside: str | None = None
    letters: int | None = None


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch of one query, and where its tables lie. `keeps_dropped`: rows of dropped tables stay.

    `repeats`: whether another run has begun it, None if that is unknown. `upkeep`: None leaves the tables alone.
    `aside` are the folders of tables that have dead letters, `sets_aside`: more tables may become such.
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

    def target(self, table: str) -> Target:
        """The replica of a table."""
        return Target(self.root, table, self.storage_options, self.layout.names)

    def progress(self, table: str, target: DeltaTable | None) -> TableProgress:
        """What a table holds of the query's changes. Raises SinkError for the replica of another table."""
        return TableProgress(target, self.query_id, table, self.batch_id, self.repeats)

    def keep(self, place: Target, versions: Iterable[int | None]) -> str | None:
        """Maintain a Delta table whose commits in the micro-batch made these versions; what failed, if anything."""
        written = [version for version in versions if version is not None]
        if self.upkeep is None or not written:
            return None
        return self.upkeep.after(place, self.query_id, min(written))


def table_parts(batches: Iterable[pa.RecordBatch], layout: ReplicaLayout) -> Iterator[tuple[str, Iterator[Part]]]:
    """The tables of rows (`table`, `bytes`) that are sorted by table, each with its parts, numbered from 0."""
    for table, blobs in groupby(_blobs(batches), key=lambda blob: blob[0]):
        yield table, parts((blob for _, blob in blobs), layout=layout)


def summed(reports: Iterable[TableReport]) -> dict[str, TableReport]:
    """The reports of parts, one a table."""
    total: dict[str, TableReport] = {}
    for report in reports:
        before = total.get(report.table, TableReport(report.table, 0, 0, None))
        total[report.table] = replace(
            before,
            upserted=before.upserted + report.upserted,
            deleted=before.deleted + report.deleted,
            version=_newer(before.version, report.version),
            aside=report.aside or before.aside,
            letters=_newer(before.letters, report.letters),
        )
    return total


def _newer(*versions: int | None) -> int | None:
    return max((version for version in versions if version is not None), default=None)


def _blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Buffer]]:
    for batch in batches:
        for name, blob in zip(batch.column("table"), batch.column("bytes"), strict=True):
            yield name.as_py(), blob.as_buffer()
