"""A replica's Delta table as storage holds it: where it lies, its schema, and how far it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable

from tailrace.errors import SinkError


@dataclass(frozen=True)
class Target:
    """The table `schema.table` under a root (a path or the URI of an object store)."""

    root: str
    table: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def uri(self) -> str:
        """Where the table lies; what a path cannot hold is percent-encoded."""
        return f"{self.root.rstrip('/')}/{quote(self.table, safe=' .-_$@+')}"

    def open(self) -> DeltaTable | None:
        """The table as it is now, None where there is none yet."""
        options = dict(self.storage_options)
        if not DeltaTable.is_deltatable(self.uri, options):
            return None
        return DeltaTable(self.uri, storage_options=options)


@dataclass(frozen=True)
class Mark:
    """What a commit says of its origin: that `app` has written up to `version`.

    The app is the query and the table, and in a snapshot that snapshot as well: one that begins anew after a crash is
    written anew, though Spark gives it the same batch number.
    """

    app: str
    version: int
    is_snapshot: bool = False

    def is_written(self, target: DeltaTable | None) -> bool:
        """Whether the target holds this already."""
        written = None if target is None else target.transaction_version(self.app)
        return written is not None and written >= self.version

    def begins_snapshot(self, target: DeltaTable) -> bool:
        """Whether this is the first write of a snapshot, which replaces the table's content."""
        return self.is_snapshot and target.transaction_version(self.app) is None


def arrow_schema(target: DeltaTable) -> pa.Schema:
    """The table's schema in Arrow types."""
    return pa.schema(target.schema().to_arrow())


def scan(target: DeltaTable) -> pa.RecordBatchReader:
    """The table's rows as a stream; types are those of `arrow_schema` but for views of strings and bytes."""
    return pa.RecordBatchReader.from_stream(target.scan())


def read_table(root: str, table: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """All rows of the replica of `schema.table`. Raises SinkError when there is none."""
    target = _existing(root, table, storage_options)
    return scan(target).read_all().cast(arrow_schema(target))


def row_count(root: str, table: str, storage_options: Mapping[str, str] | None = None) -> int:
    """How many rows the replica of `schema.table` has. Raises SinkError when there is none."""
    return int(_existing(root, table, storage_options).count())


def _existing(root: str, table: str, storage_options: Mapping[str, str] | None) -> DeltaTable:
    place = Target(root, table, storage_options or {})
    target = place.open()
    if target is None:
        raise SinkError("there is no replica of this table", where=table, remedy=f"look for it under {root}")
    return target
