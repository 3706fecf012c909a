"""The Spark source as users meet it: how it is found, its shapes and triggers, its parallel snapshot, its secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from tailrace.model.change import ChangeBatch, from_ipc
from tests.behaviour.streams import Stream, eventually, payload, properties, started
from tests.conftest import Database

SECRET = "such-a-secret-5b1d"


@pytest.fixture
def shop(database: Database) -> Database:
    """A database with a table of three rows."""
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric(9,2), day date, at timestamp)",
        "INSERT INTO orders SELECT n, 'item ' || n, n + 0.5, '2024-02-29', '2024-02-29 12:30' "
        "FROM generate_series(1, 3) n",
    )
    return database


def traces(database: Database) -> list[tuple[Any, ...]]:
    """What lies about on the server: slots and publications of the database."""
    query = (
        "SELECT slot_name FROM pg_replication_slots WHERE database = %s UNION ALL SELECT pubname FROM pg_publication"
    )
    with database.connect() as connection:
        return connection.execute(query, [database.name]).fetchall()


def table(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    return spark.read.format("postgres-cdc").options(**options).load()


def test_a_bounded_read_is_the_tables_as_of_now_and_leaves_nothing_behind(spark: SparkSession, shop: Database) -> None:
    rows = table(spark, properties(shop)).collect()
    assert [payload(row)["after"]["id"] for row in rows] == [1, 2, 3]
    assert {(row["topic"], payload(row)["op"]) for row in rows} == {("t.public.orders", "r")}
    assert [payload(row)["source"]["snapshot"] for row in rows] == ["first", "true", "last"]
    assert traces(shop) == []


def test_the_shape_event(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop, shape="event"), tmp_path)
    stream.run()
    shop.execute("UPDATE orders SET item = 'new' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    *read, updated, deleted = stream.run()
    assert [(row["op"], row["key"], row["before"]) for row in read] == [("r", f'{{"id":{n}}}', None) for n in (1, 2, 3)]
    assert (updated["op"], updated["before"], json.loads(updated["after"])["item"]) == ("u", None, "new")
    assert (deleted["op"], json.loads(deleted["before"])["id"], deleted["after"]) == ("d", 2, None)
    assert updated["source"]["schema"] == "public"
    assert updated["source"]["table"] == "orders"
    assert read[0]["position"] <= updated["position"] < deleted["position"]
    assert isinstance(deleted["ts"], datetime)


def test_sparks_progress_shows_the_lag_and_the_retained_log(
    spark: SparkSession, shop: Database, tmp_path: Path
) -> None:
    def latest() -> list[dict[str, Any]]:
        found = [progress["sources"][0]["latestOffset"] for progress in query.recentProgress]
        return [shown for text in found if text and (shown := json.loads(text)) and "lag_ms" in shown]

    with Stream(spark, properties(shop, shape="event"), tmp_path).running() as query:
        (*_, caught_up) = eventually(latest, query)
    assert (caught_up["lag_ms"], caught_up["lag_bytes"]) == (0, 0)
    assert caught_up["log_retained_bytes"] >= 0
    assert re.fullmatch("[0-9A-F]+/[0-9A-F]+", caught_up["position"])
    shop.execute("INSERT INTO orders SELECT n, repeat('x', 100) FROM generate_series(10, 2000) n")
    small = properties(shop, shape="event", maxBytesPerTrigger="20000")
    with Stream(spark, small, tmp_path).running() as query:
        eventually(lambda: any(shown["lag_bytes"] == 0 for shown in latest()), query)
        first, *_ = latest()
    assert first["lag_bytes"] > 20_000
    assert first["lag_ms"] > 0


def test_the_shape_table_has_native_types(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    given = properties(shop, shape="table", table__include__list="public.orders")
    stream = Stream(spark, given, tmp_path)
    kinds = {field.name: field.dataType.simpleString() for field in stream.frame().schema["after"].dataType.fields}  # type: ignore[attr-defined]
    assert kinds == {"id": "int", "item": "string", "price": "decimal(9,2)", "day": "date", "at": "timestamp_ntz"}
    stream.run()
    shop.execute("UPDATE orders SET price = 9.99 WHERE id = 3", "DELETE FROM orders WHERE id = 1")
    *_, updated, deleted = stream.run()
    expected = (3, "item 3", Decimal("9.99"), date(2024, 2, 29), datetime(2024, 2, 29, 12, 30))
    assert (updated["op"], tuple(updated["after"])) == ("u", expected)
    assert (deleted["op"], deleted["before"]["id"], deleted["after"]) == ("d", 1, None)


def test_the_shape_arrow_holds_batches(spark: SparkSession, shop: Database) -> None:
    (row,) = table(spark, properties(shop, shape="arrow")).collect()
    batch = from_ipc(row["bytes"])
    assert isinstance(batch, ChangeBatch)
    assert (row["table"], row["count"], str(batch.table.id)) == ("public.orders", 3, "public.orders")
    assert batch.rows.column("after").field("item").to_pylist() == ["item 1", "item 2", "item 3"]


def test_the_shape_table_takes_one_table(spark: SparkSession, shop: Database) -> None:
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)")
    with pytest.raises(Exception, match="the filters let 2 through") as caught:
        table(spark, properties(shop, shape="table"))
    assert "table.include.list" in str(caught.value)


@pytest.mark.parametrize("trigger", [{"availableNow": True}, pytest.param({"once": True}, marks=pytest.mark.long)])
def test_a_run_that_ends_by_itself(
    spark: SparkSession, shop: Database, tmp_path: Path, trigger: dict[str, Any]
) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    assert len(stream.run(**trigger)) == 3
    shop.execute("INSERT INTO orders (id) VALUES (4)", "INSERT INTO orders (id) VALUES (5)")
    assert [payload(row)["after"]["id"] for row in stream.run(**trigger)] == [1, 2, 3, 4, 5]


def test_a_run_that_continues(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop), tmp_path)
    with stream.running(processingTime="50 milliseconds") as query:
        for number in (4, 5, 6):
            shop.execute(f"INSERT INTO orders (id) VALUES ({number})")
            eventually(lambda number=number: len(stream.rows) == number, query)  # type: ignore[misc]
    assert [payload(row)["after"]["id"] for row in stream.rows] == [1, 2, 3, 4, 5, 6]


def test_a_backlog_is_read_in_batches_of_bounded_size(spark: SparkSession, shop: Database, tmp_path: Path) -> None:
    stream = Stream(spark, properties(shop, maxBytesPerTrigger="400000"), tmp_path)
    stream.run()
    noise = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 3200))"
    shop.execute("ALTER TABLE orders ALTER item SET STORAGE EXTERNAL")
    shop.execute(*[f"INSERT INTO orders (id, item) VALUES ({n}, {noise})" for n in range(10, 22)])
    before = len(stream.batches)
    stream.run()
    filled = [rows for number, rows in stream.batches.items() if number >= before and rows]
    # 100 kB of log a row.
    assert len(filled) >= 3
    assert all(len(rows) <= 6 for rows in filled)
    assert [payload(row)["after"]["id"] for row in stream.rows] == [1, 2, 3, *range(10, 22)]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"snapshot.mode": "sometimes"}, "snapshot.mode"),
        ({"table.include.list": "a", "table.exclude.list": "b"}, '"table.include.list" is already specified'),
        ({"topic.prefix": ""}, "topic.prefix: A value is required"),
        ({"shape": "round"}, "shape"),
        ({"maxBytesPerTrigger": "many"}, "maxBytesPerTrigger"),
    ],
)
def test_a_wrong_property_is_refused_before_anything_is_created(
    spark: SparkSession, shop: Database, wrong: dict[str, str], told: str
) -> None:
    given = {**properties(shop), **wrong, "database.password": SECRET}
    for reader in (spark.read, spark.readStream):
        with pytest.raises(Exception, match=r"tailrace\.errors\.ConfigError") as caught:
            reader.format("postgres-cdc").options(**given).load()
        assert told in str(caught.value)
        assert SECRET not in str(caught.value)
    assert traces(shop) == []


FRESH = """
import json, logging, sys
from pathlib import Path
from pyspark.sql import SparkSession

options, folder = json.loads(sys.stdin.read()), Path(sys.argv[1])
settings = {
    "spark.ui.enabled": "true", "spark.ui.port": "0", "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": f"file://{folder}/events", "spark.sql.streaming.checkpointLocation": f"{folder}/state",
    "spark.driver.host": "127.0.0.1", "spark.log.structuredLogging.enabled": "false",
    "spark.eventLog.compress": "false",
}
builder = SparkSession.builder.master("local[1]")
settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={folder}/log4j.properties"
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for form in ("plain", "json"):
    given = options if form == "plain" else {"tailrace.properties": json.dumps(options)}
    read = spark.read.format("postgres-cdc").options(**given).load()
    read.explain(extended=True)
    assert read.count() == 3
    stream = spark.readStream.format("postgres-cdc").options(**given).option("slot.name", options["slot.name"] + form)
    stream.option("slot.takeover", "true")  # that an attempt on a busy machine may have left
    stream.load().explain(extended=True)
    for _ in range(4):
        query = stream.load().writeStream.format("noop").queryName(form).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(120)
            break
        except Exception as error:
            assert "failed to connect back" in str(error), error  # a busy machine
    query.explain(extended=True)
    print(query.lastProgress)
import urllib.request
for page in ("SQL/", "environment/", "StreamingQuery/", "jobs/", "stages/"):
    print(urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/" + page, timeout=30).read().decode())
spark.stop()
print("found")
"""
# Spark lowers a shell's log to WARN unless the level is set for the shell's own class.
LOG4J = """
rootLogger.level = info
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
"""


@pytest.mark.long
def test_a_fresh_process_finds_the_source_and_shows_no_secret(shop: Database, tmp_path: Path) -> None:
    """Neither plan, offset, log at level INFO, event log nor the pages of the UI hold the password."""
    role = f"cdc_{shop.name}"
    shop.server.create_role(role, SECRET, "LOGIN SUPERUSER")
    (tmp_path / "events").mkdir()
    (tmp_path / "log4j.properties").write_text(LOG4J, encoding="utf-8")
    given = properties(shop, database__user=role, database__password=SECRET)
    try:
        done = subprocess.run(
            [sys.executable, "-c", FRESH, str(tmp_path)],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            input=json.dumps({**given, "heartbeat.intervall.ms": "1"}),
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
    finally:
        with shop.connect() as admin:
            admin.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER".encode())
        shop.execute(f"DROP ROLE {role}")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.endswith("found\n")
    assert " INFO " in done.stderr, "Spark's log is not at the level this is about"
    assert "heartbeat.intervall.ms: unknown property, ignored (did you mean heartbeat.interval.ms?)" in done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.parent.name == "offsets" for path in written)
    assert any("SparkListenerSQLExecutionStart" in path.read_text(errors="replace") for path in written)
    assert [str(path) for path in written if SECRET in path.read_text(errors="replace")] == []
    assert lines_with(SECRET, done.stdout) == []
    assert lines_with(SECRET, done.stderr) == []


def lines_with(text: str, printed: str) -> list[str]:
    return [line[:300] for line in printed.splitlines() if text in line]


PAGES = """
CREATE TABLE {name} (n int, v int, filler text);
ALTER TABLE {name} ALTER filler SET STORAGE PLAIN;
INSERT INTO {name} SELECT n, 0, repeat('x', 3900) FROM generate_series(1, 17500) n
"""


@contextmanager
def busy(database: Database) -> Iterator[None]:
    """Writers that insert into, update and delete from both tables meanwhile."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            with database.connect() as connection:
                number = 100_000
                while not stop.is_set():
                    number += 1
                    for name in ("keyed", "keyless"):
                        touch(connection, name, number)
                    stop.wait(0.01)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def touch(connection: psycopg.Connection, name: str, number: int) -> None:
    """A few changes of old and new rows in one transaction; rows of both tables are known by n."""
    with connection.transaction():
        connection.execute(f"INSERT INTO {name} VALUES (%s, 1, 'new'), (%s, 1, 'new')".encode(), [number, -number])
        place = number * 7919 % 17500 + 1
        connection.execute(f"UPDATE {name} SET v = v + 1 WHERE n = %s".encode(), [place])
        connection.execute(f"DELETE FROM {name} WHERE n IN (%s, %s)".encode(), [(place + 3) % 17500, 1 - number])


@pytest.mark.timeout(600)
def test_a_parallel_snapshot_under_writes_and_the_log_after_it_give_the_tables(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    database.execute(PAGES.format(name="keyed"), "ALTER TABLE keyed ADD PRIMARY KEY (n)")
    database.execute(PAGES.format(name="keyless"), "CREATE INDEX ON keyless (n)")
    database.execute("ALTER TABLE keyless REPLICA IDENTITY FULL", "ALTER TABLE keyed REPLICA IDENTITY FULL")
    taken: dict[int, list[Any]] = {}

    def keep(frame: DataFrame, number: int) -> None:
        image = "from_json({}, 'n int, v int') AS {}"
        columns = [image.format(name, name) for name in ("before", "after")]
        taken[number] = frame.selectExpr("spark_partition_id() AS part", "source.table AS t", "op", *columns).collect()

    stream = Stream(spark, properties(database, shape="event"), tmp_path)
    writer = stream.frame().writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    with busy(database):
        query = started(writer.trigger(processingTime="200 milliseconds"))
        try:
            eventually(lambda: sum(map(bool, taken.values())) >= 4, query, 240)
        except BaseException:
            query.stop()
            raise
    query.processAllAvailable()
    query.stop()

    rows = [row for number in sorted(taken) for row in taken[number]]
    for name in ("keyed", "keyless"):
        mine = [row for row in rows if row["t"] == name and row["op"] == "r"]
        assert len({row["part"] for row in mine}) >= 2, "the table was not split"
        twice = [n for n, times in Counter(row["after"]["n"] for row in mine).items() if times > 1]
        assert twice == []
        assert replayed([row for row in rows if row["t"] == name]) == source(database, name)


def replayed(rows: list[Any]) -> Counter[tuple[int, ...]]:
    """The rows that are there when all changes are done one after another; each undoes an image that is there."""
    there: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        if row["before"] is not None:
            assert there[tuple(row["before"])] == 1, row
            there[tuple(row["before"])] -= 1
        if row["after"] is not None:
            there[tuple(row["after"])] += 1
    return +there


def source(database: Database, name: str) -> Counter[tuple[int, ...]]:
    with database.connect() as connection:
        return Counter(connection.execute(f"SELECT n, v FROM {name}".encode()).fetchall())


@pytest.mark.long
def test_a_filtered_publication_takes_in_a_table_named_later(
    spark: SparkSession, shop: Database, tmp_path: Path
) -> None:
    shop.execute("CREATE TABLE later (id int PRIMARY KEY)")
    more = {"publication__autocreate__mode": "filtered", "table__include__list": "public.orders"}
    Stream(spark, properties(shop, **more), tmp_path).run()
    assert published(shop) == ["orders"]
    more["table__include__list"] = "public.orders,public.later"
    stream = Stream(spark, properties(shop, **more), tmp_path)
    stream.run()
    assert published(shop) == ["later", "orders"]
    shop.execute("INSERT INTO later VALUES (7)")
    stream.run()
    assert [(row["topic"], payload(row)["after"]) for row in stream.rows] == [("t.public.later", {"id": 7})]


def published(database: Database) -> list[str]:
    with database.connect() as connection:
        return [row[0] for row in connection.execute("SELECT tablename FROM pg_publication_tables ORDER BY 1")]
