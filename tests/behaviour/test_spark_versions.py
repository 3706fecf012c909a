"""The same source on every supported Spark: `tailrace run` and a query of one's own, in an environment of each.

`make spark-versions` makes the environments, see tools/spark_environments.py; without one a test is skipped.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable

import tailrace
from tailrace.cli.demo import QUICK_START
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.run_state import run_state
from tailrace.spark.versions import TRIED, release
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed
from tests.behaviour.test_cli import records
from tests.conformance.mongodb import MongoSubject
from tests.conformance.pipelines import Line
from tests.conformance.postgres import PostgresSubject
from tests.conformance.sqlserver import SqlServerSubject
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Subject
from tests.conftest import Database

ENVIRONMENTS = Path(__file__).parents[2] / ".work" / "spark"
OWN = release(pyspark.__version__)
RELEASES = [".".join(map(str, each)) for each in TRIED]
COMMAND = ("-c", "from tailrace.cli.main import main; main()")
SECONDS = 240
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
SUBJECTS: dict[str, Subject] = {
    each.connector: each for each in (PostgresSubject(), MongoSubject(), SqlServerSubject())
}
if find_spec("ibm_db"):  # IBM has no driver for Linux on other processors than x86_64
    from tests.conformance.db2 import Db2Subject

    SUBJECTS["db2"] = Db2Subject()
INSERT = "INSERT INTO orders SELECT n, repeat('y', 200) FROM generate_series({}, {}) n"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def has_spark(version: str) -> bool:
    """Whether this release of Spark is here."""
    return release(version) == OWN or (ENVIRONMENTS / version / "bin" / "python").exists()


def python(version: str) -> str:
    """The Python that has this release of Spark."""
    if not has_spark(version):
        pytest.skip(f"there is no Spark {version}: run `make spark-versions`")
    return sys.executable if release(version) == OWN else str(ENVIRONMENTS / version / "bin" / "python")


def start(file: Path, version: str, *options: str) -> subprocess.Popen[str]:
    """`tailrace run` of a pipeline file on that Spark."""
    command = [python(version), *COMMAND, "run", str(file), *options]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run_once(file: Path, version: str) -> None:
    """Run a pipeline up to where the log ends at the start."""
    process = start(file, version, "--once")
    try:
        printed, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, printed


class Pipeline:
    """A pipeline file, and what it has written so far."""

    def __init__(self, database: Database, folder: Path, sink: dict[str, object], **properties: str) -> None:
        self.folder, self.name = folder, database.name
        given = {
            **database.properties,
            "topic.prefix": "t",
            "slot.name": f"slot_{database.name}",
            "publication.name": f"publication_{database.name}",
            "table.include.list": r"public\.orders",
            "tombstones.on.delete": "false",
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
        self.checkpoint = folder / "checkpoint"
        content = {
            "source": {"connector": "postgres", "config": given},
            "sink": sink,
            "checkpoint": str(self.checkpoint),
            "spark": {"spark.master": "local[2]", **QUICK_START},
        }
        self.file = folder / "pipeline.yaml"
        self.file.write_text(json.dumps(content))

    def start(self, version: str, *options: str) -> subprocess.Popen[str]:
        """`tailrace run` on that Spark."""
        return start(self.file, version, *options)

    def once(self, version: str) -> None:
        """Run up to where the log ends at the start."""
        run_once(self.file, version)

    def newest(self) -> int:
        """The number of the newest micro-batch."""
        there = position(str(self.checkpoint)).planned
        assert there is not None
        return there.number

    def planned(self) -> int:
        """The number of the newest micro-batch of a pipeline that has ended: it is committed."""
        there = position(str(self.checkpoint))
        assert there.committed == there.planned
        return self.newest()

    def events(self) -> Counter[tuple[str, int]]:
        """How often each change came."""
        return Counter(map(change, records(self.folder / "events")))


def change(record: dict[str, Any]) -> tuple[str, int]:
    """An event's operation and key."""
    event = record["value"]["payload"] if "payload" in record["value"] else record["value"]
    return event["op"], (event["after"] or event["before"])["id"]


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for what a running pipeline does."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.3)


@pytest.fixture
def orders(database: Database) -> Database:
    """A database with a table of 100 rows."""
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders SELECT n, repeat('x', 200) FROM generate_series(1, 100) n",
    )
    return database


@pytest.mark.parametrize("version", RELEASES)
def test_each_change_comes_once_whatever_ends_a_run(orders: Database, tmp_path: Path, version: str) -> None:
    pipeline = Pipeline(orders, tmp_path, {"json": {"path": str(tmp_path / "events")}}, maxBytesPerTrigger="65536")
    expected = Counter({("r", n): 1 for n in range(1, 101)})
    pipeline.once(version)
    assert pipeline.events() == expected
    pipeline.once(version)
    before = pipeline.planned()
    orders.execute(*(INSERT.format(n, n + 99) for n in range(1001, 3001, 100)))
    expected += Counter({("c", n): 1 for n in range(1001, 3001)})
    pipeline.once(version)
    assert pipeline.events() == expected
    assert pipeline.planned() > before + 3, "a backlog is read in micro-batches of the size that is set"
    process = pipeline.start(version)
    orders.execute("UPDATE orders SET note = 'z' WHERE id <= 50")
    expected += Counter({("u", n): 1 for n in range(1, 51)})
    until(lambda: pipeline.events() == expected, process)
    orders.execute("DELETE FROM orders WHERE id <= 50")
    expected += Counter({("d", n): 1 for n in range(1, 51)})
    time.sleep(0.3)
    process.kill()
    process.communicate()
    process = pipeline.start(version)
    until(lambda: pipeline.events() == expected, process)
    before = pipeline.newest()
    time.sleep(5)
    assert pipeline.newest() <= before + 2, "only what the server itself writes to its log makes a micro-batch"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert pipeline.events() == expected


@pytest.mark.parametrize("version", RELEASES)
def test_an_idle_run_ends_without_micro_batches(orders: Database, tmp_path: Path, version: str) -> None:
    """One may be planned for what the server itself has written to its log."""
    pipeline = Pipeline(orders, tmp_path, {"json": {"path": str(tmp_path / "events")}})
    pipeline.once(version)
    before = pipeline.planned()
    pipeline.once(version)
    assert pipeline.planned() <= before + 1
    assert pipeline.events() == Counter({("r", n): 1 for n in range(1, 101)})


PROGRAM = """
import json, os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.streaming.triggerAvailableNowWrapper.enabled", given["asks_early"])
spark = builder.getOrCreate()
for _ in range(given["runs"]):
    changes = spark.readStream.format("postgres-cdc").options(**given["options"]).load()
    writer = changes.writeStream.format("json").option("path", given["path"])
    query = writer.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start()
    query.awaitTermination()
"""


class Query:
    """A query of one's own with AvailableNow, each time in a new process."""

    def __init__(self, database: Database, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version
        options = {
            **database.properties,
            "topic.prefix": "t",
            "slot.name": f"slot_{database.name}",
            "publication.name": f"publication_{database.name}",
            "table.include.list": r"public\.orders",
            "maxBytesPerTrigger": "65536",
        }
        self.given = {"options": options, "path": str(folder / "out"), "checkpoint": str(folder / "checkpoint")}

    def run(self, runs: int = 1, *, asks_early: bool = False) -> subprocess.CompletedProcess[str]:
        """So many runs."""
        given = json.dumps({**self.given, "runs": runs, "asks_early": str(asks_early).lower()})
        command = [python(self.version), "-c", PROGRAM, given]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    def operations(self) -> Counter[str]:
        """How many changes of each kind came."""
        return Counter(json.loads(line["value"])["payload"]["op"] for line in records(self.folder / "out"))


@pytest.mark.parametrize("version", RELEASES)
def test_a_query_of_ones_own_reads_what_there_is(orders: Database, tmp_path: Path, version: str) -> None:
    """On 4.0 and 4.1 AvailableNow is one micro-batch: the snapshot, then the whole backlog in spite of the limit."""
    query = Query(orders, tmp_path, version)
    done = query.run()
    assert done.returncode == 0, done.stderr
    assert query.operations() == {"r": 100}
    orders.execute(*(INSERT.format(n, n + 99) for n in range(1001, 3001, 100)))
    done = query.run(2)
    assert done.returncode == 0, done.stderr
    assert query.operations() == {"r": 100, "c": 2000}


@pytest.mark.parametrize("version", RELEASES[:2])
def test_a_setting_that_asks_before_the_checkpoint_is_read_loses_nothing(
    orders: Database, tmp_path: Path, version: str
) -> None:
    query = Query(orders, tmp_path, version)
    assert query.run().returncode == 0
    orders.execute(INSERT.format(1001, 1100))
    done = query.run(asks_early=True)
    assert done.returncode != 0
    assert "the slot exists already" in done.stderr, "the reader takes the query for a new one"
    assert query.run().returncode == 0
    assert query.operations() == {"r": 100, "c": 100}


@pytest.mark.parametrize("version", RELEASES)
def test_a_replica_equals_its_source(orders: Database, tmp_path: Path, version: str) -> None:
    pipeline = Pipeline(orders, tmp_path, {"replica": {"path": str(tmp_path / "replica")}})
    pipeline.once(version)
    orders.execute("UPDATE orders SET note = 'z' WHERE id <= 50", "DELETE FROM orders WHERE id > 90")
    pipeline.once(version)
    rows = DeltaTable(str(tmp_path / "replica" / "public.orders")).to_pyarrow_table().to_pylist()
    with orders.connect() as connection:
        expected = connection.execute("SELECT id, note FROM orders ORDER BY id").fetchall()
    assert sorted((row["id"], row["note"]) for row in rows) == expected


@pytest.mark.parametrize("version", RELEASES)
def test_a_run_says_up_to_when_its_sink_is_complete(orders: Database, tmp_path: Path, version: str) -> None:
    """Also in a quiet database, of which Spark says every ten seconds how far a query is."""
    pipeline = Pipeline(orders, tmp_path, {"replica": {"path": str(tmp_path / "replica")}})

    def is_passed(table: str | None) -> bool:
        return (tailrace.complete_until(pipeline.file, table) or begun) > begun

    begun = datetime.now(timezone.utc)
    process = pipeline.start(version)
    for statement in (None, "INSERT INTO orders VALUES (1000, 'new')", None):
        begun = datetime.now(timezone.utc)
        if statement is not None:
            orders.execute(statement)
            begun = datetime.now(timezone.utc)
        until(lambda: is_passed(None) and is_passed("public.orders"), process)
    rows = DeltaTable(str(tmp_path / "replica" / "public.orders")).to_pyarrow_table().column("id").to_pylist()
    assert 1000 in rows
    run = run_state(str(pipeline.checkpoint))
    assert run.caught_up is not None
    assert run.caught_up >= begun.timestamp() - 30, "the lag is known as well"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.mark.parametrize("version", RELEASES)
def test_kafka_has_each_change_once(orders: Database, kafka: EmbeddedKafka, tmp_path: Path, version: str) -> None:
    topic = f"t_{orders.name}.public.orders"
    sink: dict[str, object] = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
    pipeline = Pipeline(orders, tmp_path, sink, topic__prefix=f"t_{orders.name}")
    pipeline.once(version)
    orders.execute("UPDATE orders SET note = 'z' WHERE id <= 50")
    pipeline.once(version)
    values = [json.loads(message.value() or b"") for message in consumed(kafka, topic)]
    assert Counter(value["payload"]["op"] for value in values) == {"r": 100, "u": 50}


@pytest.mark.parametrize("connector", SUBJECTS)
def test_a_checkpoint_goes_from_one_spark_to_the_next_and_back(
    connector: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With a setting that would have 4.0 and 4.1 ask before they read the checkpoint, if a run used AvailableNow."""
    subject = SUBJECTS[connector]
    subject.start(request)
    expected: list[tuple[str, int]] = []
    with subject.source() as source:
        source.create("items")
        spark = {"spark.master": "local[2]", WRAPPER: "true", **QUICK_START}
        line = Line(subject, source, tmp_path / "line", tables=["items"], spark=spark)
        for number, version in enumerate([*RELEASES, *reversed(RELEASES[:-1])]):
            source.commit(Insert("items", {KEY: number, VALUE: 0, NOTE: version}))
            source.settle()
            run_once(line.file, version)
            expected.append(("c" if number else "r", number))
            assert line.keys("items") == expected, f"Spark {version}"
