"""What `source` says with a new structure of a table."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tailrace.config.filters import TableFilter
from tailrace.connectors.change_tables.changes import INSERTED, ChangeRows, in_log_order, paired
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.gap import is_retyped, known_up_to
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.change_tables.reader import RangeReader
from tailrace.connectors.change_tables.schema_changes import Switch, initial_batches
from tailrace.connectors.change_tables.tables import Instance
from tailrace.connectors.db2.snapshot import DIALECT as DB2
from tailrace.connectors.sql_tables.captured import CapturedTables
from tailrace.connectors.sql_tables.tables import Described
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.snapshot import DIALECT
from tailrace.model.table import TableId
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE

TABLE = TableId("shop", "dbo", "t", DATABASE_SCHEMA_TABLE)
GIVEN = {"database.hostname": "h", "database.names": "shop", "topic.prefix": "server1"}
CONFIG = resolve(GIVEN)


def inserts(*commits: str) -> ChangeRows:
    size = len(commits)
    return ChangeRows(
        commit=pa.array(commits),
        change=pa.array(commits),
        kind=np.full(size, INSERTED, np.int64),
        ts_us=pa.array([int(each) for each in commits], pa.int64()),
        images=pa.StructArray.from_arrays([pa.nulls(size, pa.int64())], names=["n"]),
        mask=pa.nulls(size, pa.binary()),
    )


def test_it_has_the_last_change_before_the_first_lsn_of_the_structure() -> None:
    """The table's own first change comes later: changes of another table are between, as in the reference engine."""
    ordered = in_log_order([paired(inserts("1", "4"), "other"), paired(inserts("5"), "t")], 0)
    instance = Instance("dbo_t_v2", TABLE, 1, 2, start="3", changes="[cdc].[dbo_t_v2_CT]")
    reader = RangeReader(DIALECT, CONFIG, "shop", "0", "9", 0)
    reader._look_before(instance, ordered)
    reader._remember(ordered, int(ordered[1].order[0]))
    batch = reader._switched(Switch(instance, Described(TABLE, (), ()), is_new=False), 9)
    assert batch.rows.column("source").to_pylist()[0]["commit_lsn"] == "1"
    assert batch.rows.column("ts_us").to_pylist() == [1]
    assert batch.schema_change is not None
    assert batch.schema_change.position == "4"


class Planned(CapturedTables):
    """Plans without asking a server."""

    def __init__(self, dialect: Dialect, tables: str, **properties: str) -> None:
        given = {name.replace("__", "."): value for name, value in properties.items()}
        self.dialect, self.config = dialect, resolve({**GIVEN, **given})
        self.numbers = {
            TableId("shop", *name.split("."), shown=DATABASE_SCHEMA_TABLE): place  # type: ignore[arg-type, misc]
            for place, name in enumerate(tables.split())
        }
        lists = TableFilter.from_config(self.config)
        first = [table for table in self.numbers if lists.snapshots(table)]
        known = {"filter": lists, "databases": lambda: ["shop"], "read_first": lambda: first}
        self.catalog = SimpleNamespace(**known)

    def size_of(self, table: TableId) -> tuple[int, int]:
        return 0, self.numbers[table]

    def described(self, table: TableId) -> Described:
        return Described(table, (), ())


def test_a_first_snapshot_sends_structures_by_name_or_in_its_order() -> None:
    def order_of_structures(dialect: Dialect) -> list[str]:
        planner = Planned(dialect, "dbo.b dbo.c dbo.a", table__include__list="dbo.c,dbo.b")
        return [each.id.table for each in planner.structures()]

    assert order_of_structures(DIALECT) == ["a", "b", "c"]
    # Db2SnapshotChangeEventSource: those of captured tables, in the order of their rows.
    assert order_of_structures(DB2) == ["c", "b"]


def test_tables_that_a_snapshot_does_not_read_have_their_structures_there_too() -> None:
    given = {"snapshot__include__collection__list": "shop.dbo.b"}
    for dialect in (DB2, DIALECT):
        assert [each.id.table for each in Planned(dialect, "dbo.a dbo.b", **given).structures()] == ["a", "b"]


@pytest.mark.parametrize(
    ("only", "expected"), [("", "a.t b.t b.u"), ("databases", "b.t b.u"), ("tables", "b.u"), ("both", "b.u")]
)
def test_structures_are_those_of_all_tables_or_of_captured_schemas_or_tables(only: str, expected: str) -> None:
    """RelationalTableFilters.eligibleForSchemaDataCollectionFilter."""
    flags = {
        f"schema__history__internal__store__only__captured__{kind}__ddl": "true"
        for kind in ("databases", "tables")
        if only in (kind, "both")
    }
    planner = Planned(DIALECT, "b.u a.t b.t", schema__include__list="b", table__include__list="b.u", **flags)
    assert [each.id.filtered for each in planner.structures()] == expected.split()


def test_tables_are_ordered_by_their_rows() -> None:
    given = {"snapshot__tables__order__by__row__count": "descending"}
    planner = Planned(DIALECT, "dbo.a dbo.b dbo.c", table__include__list="dbo.a,dbo.b,dbo.c", **given)
    assert [each.table for each in planner.to_read()] == ["c", "b", "a"]


def test_types_that_were_altered_in_place_are_those_of_another_structure() -> None:
    """Change tables follow ALTER COLUMN: beside a new instance the older one looks as if it had always been so."""
    before = Instance("dbo_t", TABLE, 1, 2, start="1", changes="[cdc].[dbo_t_CT]", types=5)
    known = known_up_to({}, LsnPosition.of({"shop": "1"}), [before])
    assert not is_retyped(known, before)
    altered = replace(before, types=6)
    later = known_up_to(known, LsnPosition.of({"shop": "2"}), [altered])
    assert is_retyped(later, altered)
    assert not is_retyped({"shop": {"dbo_t": [1, "dbo", "t", 0]}}, altered)  # an offset that does not have types
    assert not is_retyped({"shop": {"dbo_t": [1, "dbo", "t", 0, 6]}}, altered)
    assert is_retyped(known, replace(before, rest=7))  # a default


def test_without_rows_the_last_structure_of_each_database_is_marked() -> None:
    ids = [TableId(database, "dbo", name, DATABASE_SCHEMA_TABLE) for database in ("a", "b") for name in ("t", "u")]
    structures = [Described(each, (), ()) for each in ids]

    def markers(*, ends: bool) -> list[str]:
        batches = initial_batches(DIALECT, structures, {}, ends=ends)
        return [batch.rows.column("snapshot")[0].as_py() for batch in batches]

    assert markers(ends=True) == ["true", "last", "true", "last"]
    assert markers(ends=False) == ["true"] * 4
