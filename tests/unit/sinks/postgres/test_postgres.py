"""A replica as tables of a PostgreSQL database: what they hold, read by the sink and by a client of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, SinkAwayError, SinkError, TableError
from tailrace.model.change import COMMIT, ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.schema_change import ALTER, SchemaChange
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica import contents
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.health import seen
from tailrace.sinks.replica.lakes import lake_at
from tailrace.sinks.replica.marks import Extent, LogPlace, newest
from tailrace.sinks.replica.parts import Part, parts
from tailrace.sinks.replica.postgres import connections, ledger, table
from tailrace.sinks.replica.reports import TableReport
from tailrace.sinks.replica.roots import database_root
from tailrace.sinks.replica.table import Lake, LostRaceError, Mark, Table
from tailrace.sinks.replica.target import read_table
from tests.conftest import Database

NAME = "public.orders"
ORDERS = TableSchema(
    TableId("db", "public", "orders"),
    (
        Column("id", ConnectSchema("int32", False), pa.int32()),
        Column("note", ConnectSchema("string", True), pa.string()),
    ),
    ("id",),
    ("id",),
)
BAG = replace(ORDERS, key=(), identity=("id", "note"))
Row = dict[str, Any]
Change = tuple[str, Row | None, Row | None]
MARK = Mark("tailrace/query", 1, "{}")


class Replica:
    """A schema of a database with a replica that micro-batches write as the sink's tasks do."""

    def __init__(self, database: Database) -> None:
        self.database, self.number = database, 0
        self.options = {"url": database.server.url(database.name)}
        self.root = database_root(self.options["url"], "lake")

    @property
    def lake(self) -> Lake:
        return lake_at(self.root, self.options)

    @property
    def table(self) -> Table:
        opened = self.lake.open(NAME)
        assert opened is not None
        return opened

    def batch(self, **more: Any) -> MicroBatch:
        return MicroBatch(self.root, "query", self.number, self.options, **more)

    def write(
        self, *changes: Change, schema: TableSchema = ORDERS, again: bool = False, keeps: bool = False, **more: Any
    ) -> TableReport:
        """A micro-batch of one transaction, or the one before again. `keeps`: the log does not repeat the notes."""
        self.number += not again
        columns = {
            "op": pa.array([op for op, _, _ in changes]),
            "order": pa.array(range(len(changes)), pa.int64()),
            "ts_us": pa.array([0] * len(changes), pa.int64()),
            "before": pa.array([before for _, before, _ in changes], schema.row_type),
            "after": pa.array([after for _, _, after in changes], schema.row_type),
            COMMIT: pa.array([self.number] * len(changes), pa.int64()),
        }
        if keeps:
            columns["unchanged"] = pa.array([{"note": True}] * len(changes), pa.struct([("note", pa.bool_())]))
        batch = ChangeBatch(schema, pa.RecordBatch.from_pydict(columns))
        (part,) = parts([pa.py_buffer(batch.to_ipc())])
        return contents.write(self.batch(**more), NAME, part)

    def alter(self, *renamed: tuple[str, str], dropped: Sequence[str] = ()) -> None:
        self.number += 1
        change = SchemaChange(ALTER, None, self.number, renamed=renamed, dropped=tuple(dropped))
        contents.write(self.batch(), NAME, Part(Extent(0, None, LogPlace(self.number, 1)), change=change))

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """What a client of the database reads."""
        with self.database.connect() as connection:
            return connection.execute(text.encode()).fetchall()

    def rows(self) -> list[Row]:
        """The rows, which the sink and a client of the database read alike."""
        found = read_table(self.root, NAME, self.options).to_pylist()
        names = ", ".join(f'"{name}"' for name in self.table.schema.names)
        other = self.query(f'SELECT {names} FROM lake."public.orders"')
        assert sorted(map(repr, other)) == sorted(repr(tuple(row.values())) for row in found)
        return sorted(found, key=repr)


def order(id_: int, note: str | None = "n", **more: Any) -> Row:
    return {"id": id_, "note": note, **more}


@pytest.fixture
def replica(database: Database) -> Replica:
    """One with the orders 1 to 5."""
    made = Replica(database)
    made.write(*(("c", None, order(id_)) for id_ in range(1, 6)))
    return made


def test_changes_of_a_micro_batch_are_written_once_in_one_commit(replica: Replica) -> None:
    changes = (("u", None, order(1, "new")), ("d", order(2, None), None), ("c", None, order(6, "a\tb\\N\n\r{},\"'")))
    first = replica.table.version
    assert replica.write(*changes).upserted == 2
    assert replica.write(*changes, again=True).upserted == 0
    assert [commit.version for commit in replica.table.commits()] == [first + 1, first]
    expected = [order(1, "new"), order(3), order(4), order(5), order(6, "a\tb\\N\n\r{},\"'")]
    assert replica.rows() == sorted(expected, key=repr)
    assert replica.table.count() == 5


def test_a_value_that_the_log_does_not_repeat_stays(replica: Replica) -> None:
    report = replica.write(("u", None, order(1, None)), ("u", None, order(9, None)), keeps=True)
    assert report.lacking is not None, "the row 9 is not in the replica"
    assert replica.rows() == [order(id_) for id_ in range(1, 6)]


def test_a_bag_loses_as_many_equal_rows_as_were_deleted(database: Database) -> None:
    replica = Replica(database)
    replica.write(*(("c", None, order(1, None)) for _ in range(3)), ("c", None, order(2)), schema=BAG)
    gone = ("d", order(1, None), None)
    replica.write(gone, gone, ("u", order(2), order(3)), schema=BAG)
    assert replica.rows() == [order(1, None), order(3)]
    replica.write(gone, ("c", None, order(1, None)), ("d", order(9), None), schema=BAG)
    assert replica.rows() == [order(1, None), order(3)]


def test_columns_change_names_and_places_and_no_row_is_written_again(replica: Replica) -> None:
    before = replica.query('SELECT xmin::text FROM lake."public.orders"')
    replica.alter(("id", "note"), ("note", "id"))
    assert replica.query('SELECT xmin::text FROM lake."public.orders"') == before
    assert replica.rows() == [{"note": id_, "id": "n"} for id_ in range(1, 6)]
    replica.alter(dropped=["id"])
    assert replica.rows() == [{"note": id_} for id_ in range(1, 6)]


@pytest.mark.parametrize(("kind", "schema", "value"), [(pa.int64(), "int64", 1 << 40), (pa.string(), "string", "one")])
def test_a_column_takes_a_wider_type(replica: Replica, kind: pa.DataType, schema: str, value: Any) -> None:
    replica.database.execute('CREATE VIEW lake.v AS SELECT id FROM lake."public.orders"')
    replica.write(("c", None, order(6, size=1)), schema=with_size(pa.int32(), "int32"))
    replica.write(("c", None, order(7, size=value)), schema=with_size(kind, schema))
    sizes = [row["size"] for row in replica.rows()]
    assert sizes == [*[None] * 5, "1" if kind == pa.string() else 1, value]
    assert len(replica.query("SELECT * FROM lake.v")) == 7, "columns that stay keep their views"


def with_size(kind: pa.DataType, schema: str) -> TableSchema:
    return replace(ORDERS, columns=(*ORDERS.columns, Column("size", ConnectSchema(schema, True), kind)))


def test_values_of_all_types_are_read_as_they_were_written(database: Database) -> None:
    replica = Replica(database)
    moment = datetime(9999, 12, 31, 23, 59, 59, 999999)
    rows = pa.table(
        {
            "b": pa.array([True, None, False]),
            "small": pa.array([-(1 << 15), None, (1 << 15) - 1], pa.int16()),
            "large": pa.array([-(1 << 63), None, (1 << 63) - 1], pa.int64()),
            "single": pa.array([float("nan"), None, 0.1], pa.float32()),
            "double": pa.array([float("-inf"), None, 5e-324], pa.float64()),
            "number": pa.array([Decimal("1E-10"), None, Decimal("9" * 28 + "." + "9" * 10)], pa.decimal128(38, 10)),
            "wide": pa.array([Decimal(-1), None, Decimal("9" * 60)], pa.decimal256(60, 0)),
            "text": pa.array(["\\N", None, 'é\t\r\n\\ "{},NULL\b\f\v😀']),
            "bytes": pa.array([b"\0\\\xff\n", None, b""]),
            "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
            "at": pa.array([datetime(1, 1, 1), None, moment], pa.timestamp("us")),
            "zoned": pa.array([moment.replace(tzinfo=timezone.utc), None, None], pa.timestamp("us", "UTC")),
            "texts": pa.array([['a"b\\', None, "NULL", "", "é,{}"], None, []], pa.list_(pa.string())),
            "numbers": pa.array([[1, None], None, []], pa.list_(pa.int32())),
            "decimals": pa.array([[Decimal("1.50"), None], None, []], pa.list_(pa.decimal128(9, 2))),
            "blobs": pa.array([[b"\0\\", None], None, []], pa.list_(pa.binary())),
            "days": pa.array([[date(1, 1, 1)], None, []], pa.list_(pa.date32())),
            "times": pa.array([[moment], None, []], pa.list_(pa.timestamp("us"))),
            "flags": pa.array([[True, None], None, []], pa.list_(pa.bool_())),
        }
    )
    replica.lake.create(NAME, rows.slice(1), MARK, None)
    table = replica.table
    table.append(rows.slice(0, 1), Mark("tailrace/query", 2, "{}"))
    assert table.schema == rows.schema
    found = table.scan().read_all()
    assert found.schema == rows.schema
    assert repr(found.to_pylist()) == repr([rows.to_pylist()[at] for at in (1, 2, 0)])


def test_what_is_made_of_other_values_is_json(database: Database) -> None:
    replica = Replica(database)
    kinds = {"point": pa.struct([("x", pa.float64())]), "grid": pa.list_(pa.list_(pa.int32()))}
    columns = {"point": [{"x": 1.5}, None], "grid": [[[1], [2, None]], None]}
    rows = pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})
    replica.lake.create(NAME, rows, MARK, None)
    assert replica.table.scan().read_all().to_pylist()[0] == {"point": '{"x":1.5}', "grid": "[[1],[2,null]]"}
    found = "SELECT point ->> 'x', grid -> 1 FROM lake.\"public.orders\" WHERE point IS NOT NULL"
    assert replica.query(found) == [("1.5", [2, None])]


def test_names_that_are_long_or_differ_by_case_stay_apart(database: Database) -> None:
    replica = Replica(database)
    names = [f"{'long' * 20}{number}" for number in (1, 2)]
    rows = pa.table({**{f"{'é' * 40}{number}": [number] for number in (1, 2)}, "Id": [3], 'a"b%s{}': [4]})
    for name in (*names, NAME, NAME.upper()):
        replica.lake.create(name, rows, MARK, None)
    assert replica.lake.names() == {*names, NAME, NAME.upper()}
    for name in replica.lake.names():
        opened = replica.lake.open(name)
        assert opened is not None
        assert opened.scan().read_all().to_pylist() == rows.to_pylist()


def test_a_text_with_a_nul_is_an_error_of_its_table(replica: Replica) -> None:
    with pytest.raises(TableError) as error:
        replica.write(("c", None, order(6, "a\0b")))
    assert "U+0000" in str(error.value)
    assert replica.rows() == [order(id_) for id_ in range(1, 6)]


def test_who_else_has_written_a_table_is_told_and_by_which_statement(replica: Replica) -> None:
    known = {NAME: seen(replica.table)}
    assert replica.write(("u", None, order(1, "new")), known=known).lacking is None
    known = {NAME: seen(replica.table)}
    replica.database.execute("UPDATE lake.\"public.orders\" SET note = 'theirs' WHERE id = 2")
    lacking = replica.write(("u", None, order(3, "new")), known=known).lacking
    assert lacking is not None
    assert "written by postgres with " in lacking
    assert "UPDATE" in lacking
    assert replica.write(("u", None, order(4, "new")), known={NAME: seen(replica.table)}).lacking is None


def test_a_table_that_was_put_back_says_its_older_version(replica: Replica) -> None:
    comment = replica.query("SELECT obj_description('lake.\"public.orders\"'::regclass)")[0][0]
    replica.write(("u", None, order(1, "new")))
    known = {NAME: seen(replica.table)}
    # As a dump of the table alone does it: the ledger is not in it.
    replica.database.execute(
        "CREATE TABLE lake.dumped AS SELECT id, 'n' AS note FROM lake.\"public.orders\"",
        'DROP TABLE lake."public.orders"',
        'ALTER TABLE lake.dumped RENAME TO "public.orders"',
        f"COMMENT ON TABLE lake.\"public.orders\" IS '{comment}'",
    )
    record = newest(replica.table, "query")
    assert record is not None
    assert record.place == LogPlace(1, 5)
    lacking = replica.write(("u", None, order(2, "new")), known=known).lacking
    assert lacking is not None
    assert "put back to version" in lacking
    replica.database.execute('DELETE FROM lake."public.orders"')
    assert [commit.operation for commit in replica.table.commits()] == ["DELETE", "MERGE", "CREATE"], "it is watched"


@pytest.mark.long
def test_what_people_write_into_a_tables_comment_stays(replica: Replica) -> None:
    replica.database.execute("COMMENT ON TABLE lake.\"public.orders\" IS 'All orders'")
    for note in ("new", "newer"):
        replica.write(("u", None, order(1, note)))
    (comment,) = replica.query("SELECT obj_description('lake.\"public.orders\"'::regclass)")[0]
    assert comment == f"All orders [replica {replica.table.id} by Tailrace, version {replica.table.version}]"


def test_a_table_of_somebody_else_is_left_as_it_is(database: Database) -> None:
    replica = Replica(database)
    database.execute("CREATE SCHEMA lake", 'CREATE TABLE lake."public.orders" (id int)')
    with pytest.raises(TableError, match="this replica has not made"):
        replica.write(("c", None, order(1)))
    database.execute('DROP TABLE lake."public.orders"')
    replica.write(("c", None, order(1)))
    database.execute('DROP TABLE lake."public.orders"')
    assert replica.lake.open(NAME) is None, "as one that was never made"
    database.execute('CREATE TABLE lake."public.orders" (id int)')
    with pytest.raises(TableError, match="this replica has not made"):
        replica.write(("c", None, order(2)))


def test_a_task_that_was_thought_dead_writes_nothing(replica: Replica) -> None:
    late = replica.table
    replica.write(("u", None, order(1, "new")))
    with pytest.raises(LostRaceError):
        late.append(pa.table({"id": pa.array([7], pa.int32()), "note": ["late"]}), MARK)
    assert order(7, "late") not in replica.rows()


@pytest.mark.long
def test_a_transaction_of_another_writer_is_waited_for(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections._SETTINGS, "lock_timeout", "200ms")
    with psycopg.connect(replica.database.dsn) as other:
        other.execute("UPDATE lake.\"public.orders\" SET note = 'theirs' WHERE id = 2")
        with pytest.raises(SinkAwayError, match="lock"):
            replica.write(("u", None, order(1, "new")))
        assert replica.rows() == [order(id_) for id_ in range(1, 6)], "readers are not held up"
        other.rollback()
    replica.write(("u", None, order(1, "new")), again=True)
    assert order(1, "new") in replica.rows()


@pytest.mark.long
def test_a_connection_that_the_server_has_ended_is_opened_again(replica: Replica) -> None:
    replica.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tailrace replica'"
    )
    replica.write(("u", None, order(1, "new")))
    assert order(1, "new") in replica.rows()


def test_errors_name_the_remedy_and_no_password(database: Database) -> None:
    database.server.create_role(f"poor_{database.name}", "s3cret/@", "LOGIN")
    url = (
        f"postgresql://poor_{database.name}:s3cret%2F%40@{database.server.host}:{database.server.port}/{database.name}"
    )
    replica = Replica(database)
    replica.options, replica.root = {"url": url}, database_root(url, "lake")
    with pytest.raises(SinkError) as denied:
        replica.write(("c", None, order(1)))
    assert "ermission denied" in str(denied.value)
    assert "CREATE on the database" in str(denied.value)
    replica.options = {"url": url, "password": "s3cret-2"}
    with pytest.raises(SinkError, match="ermission denied by the database") as wrong:
        replica.write(("c", None, order(1)))
    replica.options = {"url": url.replace(f":{database.server.port}/", ":1/")}
    with pytest.raises(SinkAwayError) as away:
        replica.write(("c", None, order(1)))
    replica.options = {"url": f"{url}?ssl=s3cret"}
    with pytest.raises(ConfigError) as unreadable:
        replica.write(("c", None, order(1)))
    database.execute(f"DROP ROLE poor_{database.name}")
    assert not any("s3cret" in str(error.value) + replica.root for error in (denied, wrong, away, unreadable))


@pytest.mark.long
def test_old_commits_are_removed_but_the_last_mark_of_each_query(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ledger, table):
        monkeypatch.setattr(module, "KEPT_COMMITS", 4)
    for note in "abc":
        replica.write(("u", None, order(1, note)))
    for _ in range(5):
        replica.database.execute("UPDATE lake.\"public.orders\" SET note = 'theirs' WHERE id = 2")
    files = replica.table.maintenance()
    assert files.is_crowded
    files.remove(MARK)
    assert [commit.operation for commit in replica.table.commits()] == ["UPDATE", "UPDATE", "MERGE"]
    assert replica.table.written("tailrace/query") == replica.number << 16


@pytest.mark.long
def test_a_changed_type_whose_column_has_a_view_says_to_drop_that(replica: Replica) -> None:
    replica.database.execute('CREATE VIEW lake.v AS SELECT note FROM lake."public.orders"')
    rows = pa.table({"id": pa.array([1], pa.int32()), "note": pa.array([1])})
    with pytest.raises(Exception, match="other objects depend on it") as error:
        replica.table.overwrite(rows, MARK, reshapes=True)
    assert "drop the views" in error.value.remedy  # type: ignore[attr-defined]
    replica.table.overwrite(rows.slice(0, 0).cast(replica.table.schema), MARK, reshapes=True)
    assert replica.query("SELECT * FROM lake.v") == []
