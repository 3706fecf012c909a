"""Plans the splits of a snapshot: tables, order, ranges and markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.config.overrides import overrides
from tailrace.connectors.base import Key
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.notifications import is_wanted
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.server.user_sql import one_statement
from tailrace.connectors.postgres.snapshot import ranges
from tailrace.connectors.postgres.snapshot.exported import Export, adopt
from tailrace.connectors.postgres.snapshot.partitions import side_by_side
from tailrace.connectors.postgres.snapshot.ranges import Keys, Range
from tailrace.connectors.postgres.snapshot.rows import EmptySplit, Moment, SnapshotSplit
from tailrace.connectors.postgres.snapshot.selects import Selects, as_table, in_order, refusals
from tailrace.connectors.snapshot_notices import around_splits
from tailrace.connectors.snapshots import Place, what_is_left
from tailrace.connectors.split_sizes import fits, is_chunked, pieces
from tailrace.model.table import TableId, TableSchema

Split = SnapshotSplit | EmptySplit


def to_read(connection: psycopg.Connection, config: Config) -> list[TableId]:
    """The tables that a first snapshot reads, in order."""
    return in_order(connection, config, Catalog(connection, config).snapshot_tables())


def plan(
    config: Config, export: Export, wanted: Mapping[str, str | None] | None = None, place: Place | None = None
) -> list[Split]:
    """Splits under an exported snapshot, in snapshot order, markers included.

    Of all captured tables, or of those in `wanted`, which may give a SELECT to read instead, or of what is left at
    `place`: then tables that one micro-batch cannot read are cut by their keys.
    """
    with connect(config, application="tailrace planner") as connection:
        moment = _moment(connection, export)
        tables = _tables(connection, config, wanted, place)
        if wanted is not None or (place is not None and not place.is_whole):
            export.lock(config, tables)
        adopt(connection, config, export.name)
        catalog = Catalog(connection, config)
        splits: list[SnapshotSplit] = []
        empty: list[TableSchema] = []
        selects, given = Selects(config), overrides(config) if wanted is None else wanted
        for table in tables:
            captured = catalog.table(table)
            is_read_at_all, select = (False, None) if captured is None else selects.of(captured, given.get(str(table)))
            if captured is None or not is_read_at_all:
                continue
            resumed = None if place is None else place.of(table)
            origin = selects.origin(table, select, wanted)
            with refusals(config, table, origin):
                if select is not None and origin is not None:
                    # Before tasks fail of it, and before it becomes part of COPY.
                    select = as_table(catalog, captured, select, origin)
                cut = _ranges(catalog, captured, select, place, resumed)
                found = _table_splits(connection, moment, captured, cut)
            is_first = not splits and not empty and (place is None or place.is_whole)
            if not found and resumed is None:
                empty.append(captured.schema)
            splits.extend(_with_beginning(found, resumed, is_first=is_first))
        if splits:
            splits[-1] = replace(splits[-1], last="last")
        if is_wanted(config):
            known, lists = catalog.tables(), catalog.filter.lists
            listed = tables if wanted is not None else [one for one in known if lists(one)]
            return _with_notices(catalog, moment, splits, empty, tables, listed)
        return [*splits, *([EmptySplit(moment, tuple(empty))] if empty else [])]


def _with_beginning(found: list[SnapshotSplit], resumed: Place | None, *, is_first: bool) -> list[SnapshotSplit]:
    """A table's splits with the snapshot that began it if it is `resumed`, else with the marker of its first row."""
    if resumed is not None:
        return [replace(split, began=resumed.began) for split in found]
    first = "first" if is_first else "first_in_data_collection"
    return [replace(split, first=first) for split in found[:1]] + found[1:]


def _moment(connection: psycopg.Connection, export: Export) -> Moment:
    row = connection.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id()::text::int8 END, "
        "(extract(epoch FROM clock_timestamp()) * 1000000)::int8"
    ).fetchone()
    assert row is not None
    return Moment(export.name, export.lsn, row[0], row[1])


def _tables(
    connection: psycopg.Connection, config: Config, wanted: Mapping[str, str | None] | None, place: Place | None
) -> list[TableId]:
    catalog = Catalog(connection, config)
    tables = what_is_left(catalog.tables, lambda: to_read(connection, config), wanted, place)
    return tables if wanted is None else in_order(connection, config, tables)


def _with_notices(
    catalog: Catalog,
    moment: Moment,
    splits: list[SnapshotSplit],
    empty: list[TableSchema],
    tables: list[TableId],
    listed: list[TableId],
) -> list[Split]:
    """The splits with what is to be sent around them, in the order of `tables`; those `listed` are named with each.

    Tasks only know how many rows they read themselves: those of a table that several read are counted here.
    """
    connection, config = catalog.connection, catalog.config
    read = Counter(split.table.schema.id for split in splits)
    several = {split.table.schema.id: split for split in splits if read[split.table.schema.id] > 1 or _is_part(split)}
    counts = {str(table): _count(connection, split) for table, split in several.items()}
    names = [str(split.table.schema.id) for split in splits]
    seen = {*names, *(str(schema.id) for schema in empty)}
    order = [name for name in map(str, tables) if name in seen]
    around, notices = around_splits(names, order, [str(table) for table in listed], counts, chunked=is_chunked(config))
    with_notices = [replace(split, before=one[0], after=one[1]) for split, one in zip(splits, around, strict=True)]
    return [*with_notices, *([EmptySplit(moment, tuple(empty), notices)] if empty or notices else [])]


def verified(config: Config, export: Export, place: Place) -> Place:
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


def _is_part(split: SnapshotSplit) -> bool:
    return split.range != ranges.WHOLE


def _count(connection: psycopg.Connection, split: SnapshotSplit) -> int:
    whole = replace(split, range=ranges.WHOLE, select=None)
    row = connection.execute(sql.SQL("SELECT count(*){}").format(whole.query)).fetchone()
    assert row is not None
    return int(row[0])


@dataclass(frozen=True)
class _Cut:
    """What a split reads: a range of the table, or a SELECT instead of it; `bytes` is about how much that is."""

    range: Range = ranges.WHOLE
    select: str | None = None
    bytes: int = 0


def _ranges(
    catalog: Catalog, table: CapturedTable, select: str | None, place: Place | None, resumed: Place | None
) -> list[_Cut]:
    """What the splits of a table read."""
    if select:
        return [_Cut(select=select)]
    connection, config, id_ = catalog.connection, catalog.config, table.schema.id
    size = ranges.table_bytes(connection, id_)
    count = pieces(config, str(id_), size)
    key: tuple[ranges.KeyColumn, ...] = ()
    if resumed is not None or (place is not None and not fits(config, [(str(id_), size)])):
        key = ranges.primary_key(connection, id_)
    if key:
        above = None if resumed is None else cast("Key | None", resumed.last)  # a primary key has no nulls
        cut = [_Cut(one) for one in ranges.key_ranges(connection, id_, key, above, count)]
    else:
        names = [column.name for column in table.schema.columns]
        selects = [] if table.is_alone else side_by_side(connection, id_, names, count)
        blocks = [] if selects else ranges.block_ranges(connection, id_, -(-size // count))
        cut = [*(_Cut(select=one.as_string(connection)) for one in selects), *map(_Cut, blocks)]
    return [replace(one, bytes=size // len(cut)) for one in cut]


def _table_splits(
    connection: psycopg.Connection,
    moment: Moment,
    table: CapturedTable,
    cut: list[_Cut],
) -> list[SnapshotSplit]:
    """The splits of one table that hold rows at their edges: empty ones at either end are left out."""
    number = ranges.storage(connection, table.schema.id) if isinstance(cut[0].range, Keys) else None
    splits = [
        SnapshotSplit(moment, table, one.range, select=one.select, bytes=one.bytes, storage=number) for one in cut
    ]
    while splits and _empty(connection, splits[0]):
        splits.pop(0)
    while splits and _empty(connection, splits[-1]):
        splits.pop()
    if splits:
        splits[-1] = replace(splits[-1], last="last_in_data_collection")
    return splits


def _empty(connection: psycopg.Connection, split: SnapshotSplit) -> bool:
    return one_statement(connection, sql.SQL("SELECT 1{} LIMIT 1").format(split.query)).fetchone() is None
