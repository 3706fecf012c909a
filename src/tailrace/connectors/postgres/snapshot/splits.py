"""Cuts tables into splits that are read under one exported snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.overrides import overrides
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.notifications import Notice
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.server.user_sql import one_statement
from tailrace.connectors.postgres.snapshot import ranges
from tailrace.connectors.postgres.snapshot.exported import Export, adopt
from tailrace.connectors.postgres.snapshot.partitions import side_by_side
from tailrace.connectors.postgres.snapshot.ranges import PrimaryKeyRange, Range
from tailrace.connectors.postgres.snapshot.rows import EmptySplit, Moment, SnapshotSplit
from tailrace.connectors.postgres.snapshot.selects import Selects, as_table, in_order, refusals
from tailrace.connectors.snapshot_ports import Cuts
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.connectors.split_sizes import fits, is_chunked, pieces
from tailrace.model.table import TableId, TableSchema
from tailrace.override import override

Split = SnapshotSplit | EmptySplit


class PostgresCuts(Cuts):
    """Implements Cuts under an exported snapshot: a table is cut by its blocks, its partitions or its primary key.

    `wanted` has the tables that a signal asks for, and their SELECTs. At a `place` tables that one micro-batch cannot
    read are cut by their keys, so that a restart can resume inside of them.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        config: Config,
        export: Export,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
    ) -> None:
        self._connection, self._config, self._export = connection, config, export
        self._wanted, self._place = wanted, place
        self.is_chunked = is_chunked(config)
        self._moment = _moment(connection, export)
        self._catalog = Catalog(connection, config)
        self._selects = Selects(config)
        self._given = overrides(config) if wanted is None else wanted
        self._empty: dict[TableId, TableSchema] = {}

    @override
    def tables(self) -> list[TableId]:
        return self._catalog.tables()

    @override
    def to_read(self) -> list[TableId]:
        return to_read(self._connection, self._config)

    @override
    def in_order(self, tables: list[TableId]) -> list[TableId]:
        """That of snapshot.tables.order.by.row.count."""
        return in_order(self._connection, self._config, tables)

    @override
    def prepare(self, tables: Sequence[TableId]) -> None:
        """Locks the tables if the snapshot was exported without, and reads as of it from here on."""
        if self._wanted is not None or (self._place is not None and not self._place.is_whole):
            self._export.lock(self._config, tables)
        adopt(self._connection, self._config, self._export.name)
        self._catalog = Catalog(self._connection, self._config)

    @override
    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> list[SnapshotSplit] | None:
        """Those that have rows at their edges; a table without rows has none."""
        captured = self._catalog.table(table)
        if captured is None:
            return None
        is_read_at_all, select = self._selects.of(captured, self._given.get(str(table)))
        if not is_read_at_all:
            return None
        origin = self._selects.origin(table, select, self._wanted)
        with refusals(self._config, table, origin):
            if select is not None and origin is not None:
                # Before tasks fail of it, and before it becomes part of COPY.
                select = as_table(self._catalog, captured, select, origin)
            cut = _ranges(self._catalog, captured, select, self._place, resumed)
            splits = _table_splits(self._connection, self._moment, captured, cut)
        if not splits:
            self._empty[table] = captured.schema
        return splits

    @override
    def has_rows(self, split: SnapshotSplit) -> bool:
        """Each split at the edge of a table has."""
        return True

    @override
    def count(self, split: SnapshotSplit) -> int:
        whole = replace(split, range=ranges.WHOLE, select=None)
        row = self._connection.execute(sql.SQL("SELECT count(*){}").format(whole.query)).fetchone()
        assert row is not None
        return int(row[0])

    @override
    def without_rows(self, tables: Sequence[TableId], notices: tuple[Notice, ...]) -> list[EmptySplit]:
        """One split has all tables without rows."""
        return [EmptySplit(self._moment, tuple(self._empty[table] for table in tables), notices)]


def to_read(connection: psycopg.Connection, config: Config) -> list[TableId]:
    """The tables that a first snapshot reads, in order."""
    return in_order(connection, config, Catalog(connection, config).snapshot_tables())


def _moment(connection: psycopg.Connection, export: Export) -> Moment:
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id()::text::int8 END, "
        "(extract(epoch FROM clock_timestamp()) * 1000000)::int8"
    ).fetchone()
    assert row is not None
    return Moment(export.name, export.lsn, row[0], row[1])


def verified(config: Config, export: Export, place: SnapshotPlace) -> SnapshotPlace:
    """The place, with its first table begun again where that was truncated, rewritten or given another key since."""
    if place.last is None:
        return place
    with connect(config, application="tailrace planner") as connection:
        adopt(connection, config, export.name)
        catalog = Catalog(connection, config)
        table = next((table for table in catalog.tables() if str(table) == place.left[0]), None)
        key = () if table is None else ranges.primary_key(connection, table)
        same = table is not None and ranges.storage(connection, table) == place.storage
        return place if same and len(key) == len(place.last) else place.restarted()


@dataclass(frozen=True)
class _Cut:
    """What a split reads: a range of the table, or a SELECT instead of it; `bytes` is about how much that is."""

    range: Range = ranges.WHOLE
    select: str | None = None
    bytes: int = 0


def _ranges(
    catalog: Catalog,
    table: CapturedTable,
    select: str | None,
    place: SnapshotPlace | None,
    resumed: SnapshotPlace | None,
) -> list[_Cut]:
    """What the splits of a table read."""
    if select:
        return [_Cut(select=select)]
    connection, config, id_ = catalog.connection, catalog.config, table.schema.id
    size = ranges.table_bytes(connection, id_)
    count = pieces(config, str(id_), size)
    key: tuple[ranges.PrimaryKeyColumn, ...] = ()
    if resumed is not None or (place is not None and not fits(config, [(str(id_), size)])):
        key = ranges.primary_key(connection, id_)
    if key:
        above = None if resumed is None else resumed.last
        cut = [_Cut(part) for part in ranges.key_ranges(connection, id_, key, above, count)]
    else:
        names = [column.name for column in table.schema.columns]
        selects = [] if table.is_alone else side_by_side(connection, id_, names, count)
        blocks = [] if selects else ranges.block_ranges(connection, id_, -(-size // count))
        cut = [*(_Cut(select=part.as_string(connection)) for part in selects), *map(_Cut, blocks)]
    return [replace(part, bytes=size // len(cut)) for part in cut]


def _table_splits(
    connection: psycopg.Connection,
    moment: Moment,
    table: CapturedTable,
    cut: list[_Cut],
) -> list[SnapshotSplit]:
    """The splits of one table that hold rows at their edges: empty ones at either end are left out."""
    number = ranges.storage(connection, table.schema.id) if isinstance(cut[0].range, PrimaryKeyRange) else None
    id_ = table.schema.id
    splits = [
        SnapshotSplit(moment, id_, part.bytes, captured=table, range=part.range, select=part.select, storage=number)
        for part in cut
    ]
    while splits and _empty(connection, splits[0]):
        splits.pop(0)
    while splits and _empty(connection, splits[-1]):
        splits.pop()
    return splits


def _empty(connection: psycopg.Connection, split: SnapshotSplit) -> bool:
    return one_statement(connection, sql.SQL("SELECT 1{} LIMIT 1").format(split.query)).fetchone() is None
