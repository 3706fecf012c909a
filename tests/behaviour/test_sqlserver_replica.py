"""What happens to SQL Server's tables outside their change tables, and what replicas make of it. On the stand-in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tailrace.operate.status import look
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.sinks.replica.descriptions import PROPERTY
from tailrace.sinks.replica.target import read_table
from tests.behaviour.streams import eventually
from tests.conformance.sqlserver import ENABLE, SqlServerSource

DISABLE = (
    "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', @source_name = 'orders', @capture_instance = 'dbo_orders'"
)
SECOND = f"{ENABLE.format('orders')}, @capture_instance = 'second'"
Rows = list[dict[str, Any]]


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


class Replica:
    """A pipeline that keeps a replica, and the tables that it has marked as incomplete."""

    def __init__(self, source: SqlServerSource, folder: Path, running: Run, definition: Definition) -> None:
        self.source, self.folder, self.running, self.definition = source, folder, running, definition
        self._caught: pytest.LogCaptureFixture | None = None

    def rows(self, table: str) -> Rows:
        self.running.await_(0.05)
        name = f"{self.source.name}.dbo.{table}"
        if not (self.folder / "lake" / name / "_delta_log").exists():
            return []
        found: Rows = read_table(str(self.folder / "lake"), name).to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def becomes(self, table: str, *rows: Any) -> None:
        """Wait until the replica has these rows."""
        wanted = sorted(rows, key=lambda row: row["id"])

        def is_equal() -> bool:
            self.found = self.rows(table)
            return self.found == wanted

        try:
            eventually(is_equal)
        except AssertionError:
            assert self.found == wanted

    def is_described(self, table: str) -> None:
        """Wait until what the catalogue says of a table is stored with it."""
        name = f"{self.source.name}.dbo.{table}"
        path = str(self.folder / "lake" / name)
        eventually(lambda: self.rows(table) and PROPERTY in DeltaTable(path).metadata().configuration)

    def state(self, table: str) -> str | None:
        self.running.await_(0.05)
        name = f"{self.source.name}.dbo.{table}"
        return next((each.state for each in look(self.definition).replica if each.table == name), None)

    def is_complete(self, table: str) -> bool:
        return self.state(table) == "complete"


Begin = Callable[..., Any]


@pytest.fixture
def begin(spark: SparkSession, source: SqlServerSource, tmp_path: Path) -> Begin:
    @contextmanager
    def begun(tables: str, *, watch_ms: int = 200, **sink: Any) -> Iterator[Replica]:
        config = {
            **source.properties("p"),
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "topic.prefix": "t",
            "table.include.list": tables,
            "signal.poll.interval.ms": "100",
            "table.watch.interval.ms": str(watch_ms),
        }
        content = {
            "source": {"config": config},
            "sink": {"replica": {"path": str(tmp_path / "lake"), "read_again": {"at_most_every": "0s"}, **sink}},
            "checkpoint": "state",
            "trigger": "200ms",
        }
        definition = from_content(content, base=tmp_path, where="test")
        running = Pipeline(definition, session=spark).start()
        try:
            yield Replica(source, tmp_path, running, definition)
        finally:
            running.stop()

    return begun


def order(id_: int, v: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": id_, "v": v, "note": "a", **more}


def marked(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "is incomplete" in each.getMessage()]


def test_first_rows_long_after_an_instance_began_bring_its_columns(source: SqlServerSource, begin: Begin) -> None:
    """They come before the catalogue is looked at again."""
    source.create("others")
    source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO orders VALUES (2, 1, N'a')")
    with begin(r"dbo\.(orders|others)", watch_ms=3_600_000) as replica:
        replica.becomes("orders", order(1), order(2))
        replica.is_described("orders")
        source.run("ALTER TABLE orders ADD x int", "UPDATE orders SET x = id * 10", SECOND)
        source.run("INSERT INTO others VALUES (1, 1, N'a')")
        replica.becomes("others", order(1))
        source.run("UPDATE orders SET v = 2 WHERE id = 2")
        replica.becomes("orders", order(1, x=10), order(2, 2, x=20))


def test_old_rows_have_the_default_of_a_new_column(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    """ALTER TABLE fills them without a change in the log; with GETDATE() with one value that no catalogue has."""
    source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO orders VALUES (2, 1, N'a')")
    with begin(r"dbo\.orders") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("orders", order(1), order(2))
        replica.is_described("orders")
        added = (
            "ALTER TABLE orders ADD five int NOT NULL DEFAULT 5, at datetime2 NOT NULL DEFAULT SYSDATETIME(), free int"
        )
        source.run(added, SECOND)
        at = source.run("SELECT TOP 1 at FROM orders")[0][0]
        filled = {"five": 5, "at": at, "free": None}
        replica.becomes("orders", order(1, **filled), order(2, **filled))
        source.run("INSERT INTO orders VALUES (3, 1, N'a', 6, '2026-01-02', 7)", "UPDATE orders SET v = 2 WHERE id = 1")
        eventually(lambda: [row["v"] for row in replica.rows("orders")] == [2, 1, 1])
        assert [(row["five"], row["free"]) for row in replica.rows("orders")] == [(5, None), (5, None), (6, 7)]
        assert marked(caplog) == []


@pytest.mark.long
def test_values_of_a_new_column_before_its_instance_begins_are_read_again(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with begin(r"dbo\.orders") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("orders", order(1))
        source.run("ALTER TABLE orders ADD extra int")
        source.run("INSERT INTO orders VALUES (2, 1, N'a', 22)")
        source.run(SECOND)
        source.run("INSERT INTO orders VALUES (3, 1, N'a', 33)")
        replica.becomes("orders", order(1, extra=None), order(2, extra=22), order(3, extra=33))
        eventually(lambda: replica.is_complete("orders"))
        assert len(marked(caplog)) == 1
        assert "extra" in marked(caplog)[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "value", "altered", "now", "is_marked"),
    [
        ("decimal(10, 2)", "1.26", "decimal(9, 1)", "1.3", True),
        ("datetime2(7)", "'2026-01-02 03:04:05.1234567'", "datetime2(0)", "2026-01-02 03:04:05", True),
        ("int", "7", "bigint", "7", False),
        ("varchar(10)", "'x'", "varchar(50)", "x", False),
        ("varchar(10)", "'x'", "nvarchar(10)", "x", False),
    ],
)
def test_a_type_that_is_altered_is_followed_or_read_again(
    source: SqlServerSource,
    begin: Begin,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    value: str,
    altered: str,
    now: str,
    is_marked: bool,
) -> None:
    source.run(f"CREATE TABLE typed (id int PRIMARY KEY, c {kind})", ENABLE.format("typed"))
    source.run(f"INSERT INTO typed VALUES (1, {value})")
    with begin(r"dbo\.typed") as replica, caplog.at_level(logging.WARNING):
        replica.is_described("typed")
        source.run(f"ALTER TABLE typed ALTER COLUMN c {altered}")
        source.run("INSERT INTO typed VALUES (2, NULL)")
        eventually(lambda: len(replica.rows("typed")) == 2)
        if is_marked:
            eventually(lambda: marked(caplog) and replica.is_complete("typed"))
        replica.running.await_(2)
        assert str(replica.rows("typed")[0]["c"]) == now
        assert len(marked(caplog)) == is_marked


@pytest.mark.long
def test_a_table_whose_capture_was_enabled_again_is_read_again(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    source.create("items")
    source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO items VALUES (1, 1, N'a')")
    with begin(r"dbo\.(orders|items)") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("orders", order(1))
        replica.becomes("items", order(1))
        source.run(DISABLE, "INSERT INTO orders VALUES (2, 2, N'a')", ENABLE.format("orders"))
        source.run("INSERT INTO orders VALUES (3, 3, N'a')", "UPDATE items SET v = 5")
        replica.becomes("orders", order(1), order(2, 2), order(3, 3))
        replica.becomes("items", order(1, 5))
        eventually(lambda: replica.is_complete("orders"))
        assert ["dbo.orders" in each for each in marked(caplog)] == [True]


@pytest.mark.long
def test_a_narrower_instance_takes_columns_away_and_says_so(source: SqlServerSource, begin: Begin) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with begin(r"dbo\.orders") as replica:
        replica.becomes("orders", order(1))
        replica.is_described("orders")
        source.run(f"{ENABLE.format('orders')}, @capture_instance = 'audit', @captured_column_list = N'id'")
        source.run("INSERT INTO orders VALUES (2, 2, N'b')")
        replica.becomes("orders", {"id": 1}, {"id": 2})
        (warning,) = (each.what for each in look(replica.definition).problems if each.name == "instances")
        assert "is read from the capture instance audit" in warning
        assert "which lacks note, v" in warning


@pytest.mark.long
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_table_that_is_captured_later_is_read_if_the_log_lacks_rows_of_it(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture, is_whole: bool
) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with begin(r"dbo\.(orders|later|loose)") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("orders", order(1))
        for table, key in (("later", "PRIMARY KEY"), ("loose", "NOT NULL")):
            steps = [f"CREATE TABLE {table} (id int {key}, v int)", ENABLE.format(table)]
            steps.insert(2 if is_whole else 1, f"INSERT INTO {table} VALUES (1, 1)")
            source.run(*steps[:1])
            for step in steps[1:]:
                source.run(step)
            source.run(f"INSERT INTO {table} VALUES (2, 2)")
        for table in ("later", "loose"):
            replica.becomes(table, {"id": 1, "v": 1}, {"id": 2, "v": 2})
            eventually(lambda table=table: replica.is_complete(table))  # type: ignore[misc]
        replica.running.await_(2)
        assert len(marked(caplog)) == (0 if is_whole else 2)


@pytest.mark.long
def test_a_renamed_table_is_another_one_whose_rows_are_read(source: SqlServerSource, begin: Begin) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with begin(r"dbo\.(orders|renamed)") as replica:
        replica.becomes("orders", order(1))
        source.run("EXEC sp_rename 'dbo.orders', 'renamed'")
        source.run("INSERT INTO renamed VALUES (2, 2, N'a')")
        replica.becomes("renamed", order(1), order(2, 2))
        eventually(lambda: replica.state("orders") == "gone")


@pytest.mark.long
def test_a_replica_has_no_computed_columns(source: SqlServerSource, begin: Begin) -> None:
    source.run("CREATE TABLE parts (id int PRIMARY KEY, n int, twice AS (n * 2))", ENABLE.format("parts"))
    source.run("INSERT INTO parts (id, n) VALUES (1, 1)")
    with begin(r"dbo\.parts") as replica:
        replica.becomes("parts", {"id": 1, "n": 1})
        source.run("UPDATE parts SET n = 3")
        replica.becomes("parts", {"id": 1, "n": 3})


@pytest.mark.parametrize("rebuilt", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_table_that_was_switched_with_another_is_read_again(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture, rebuilt: bool
) -> None:
    """Its rows come and go without a change in the log. An index that is rebuilt moves rows as well."""
    server, other = source.server, "CREATE TABLE other (id int PRIMARY KEY, v int, note nvarchar(400))"
    source.run(other, "INSERT INTO orders VALUES (1, 1, N'a')")
    with begin(r"dbo\.orders") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("orders", order(1))
        replica.is_described("orders")
        if rebuilt:
            server.move(source.name, "orders")
            source.run("INSERT INTO orders VALUES (2, 2, N'a')")
            replica.becomes("orders", order(1), order(2, 2))
            replica.running.await_(1)
            assert marked(caplog) == []
            return
        server.switch(source.name, "orders", "other")
        source.run("UPDATE other SET v = 7")
        replica.becomes("orders")
        server.switch(source.name, "other", "orders")
        replica.becomes("orders", order(1, 7))
        eventually(lambda: replica.is_complete("orders"))
        source.run("INSERT INTO orders VALUES (2, 2, N'a')")
        replica.becomes("orders", order(1, 7), order(2, 2))


@pytest.mark.long
@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_partition_that_was_switched_has_its_table_read_again(
    source: SqlServerSource, begin: Begin, caplog: pytest.LogCaptureFixture, is_allowed: bool
) -> None:
    """Out and in again between two looks as well, where the number of rows tells nothing; unless it is forbidden."""
    server, name = source.server, source.name
    source.run("CREATE TABLE parts (id int PRIMARY KEY, v int, note nvarchar(400))")
    source.run(
        f"{ENABLE.format('parts')}, @allow_partition_switch = {int(is_allowed)}",
        "INSERT INTO parts VALUES (1, 1, N'a')",
    )
    server.partition(name, "parts", 3)
    server.move(name, "parts", 2, 5)
    with begin(r"dbo\.parts") as replica, caplog.at_level(logging.WARNING):
        replica.becomes("parts", order(1))
        replica.is_described("parts")
        server.move(name, "parts", 2, 5)
        if is_allowed:
            eventually(lambda: replica.rows("parts") and marked(caplog))
            assert "partition 2" in marked(caplog)[0]
            eventually(lambda: replica.is_complete("parts"))
        replica.running.await_(1)
        server.partition(name, "parts", 4)  # SPLIT: the new one is empty
        replica.running.await_(1)
        assert len(marked(caplog)) == is_allowed
