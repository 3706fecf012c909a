"""Spark Connect: a client without Java, a server of its own process, and every sink."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tailrace.sinks.replica.sink import read_table
from tailrace.testing.jars import resolve_jars
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour import connect_client
from tests.behaviour.engines import DELTA, JARS, catalog
from tests.behaviour.engines import database as database_of_replica
from tests.behaviour.kafka_topics import consumed, topic
from tests.behaviour.streams import properties
from tests.conftest import Database
from tests.servers.connect.server import ConnectServer

CREATE = (
    "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(9,2))",
    "INSERT INTO orders SELECT n, n FROM generate_series(1, 3) n",
)
CHANGE = (
    "UPDATE orders SET amount = 20 WHERE id = 2",
    "DELETE FROM orders WHERE id = 3",
    "INSERT INTO orders VALUES (4, 4)",
)
AFTER = [{"id": 1, "amount": "1.00"}, {"id": 2, "amount": "20.00"}, {"id": 4, "amount": "4.00"}]

NEWEST = [(1, "r", "1.00"), (2, "u", "20.00"), (4, "c", "4.00")]
PAST = [(2, "r", "2.00"), (3, "r", "3.00")]


class Client:
    """Runs the client's program, which has no Java that it could start by mistake."""

    def __init__(self, url: str, empty: Path) -> None:
        surroundings = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
        self._process = subprocess.Popen(
            [sys.executable, connect_client.__file__, url],
            env={**surroundings, "PATH": str(empty)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self, **given: Any) -> dict[str, Any]:
        """The program's answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert not found["has_java"]
        return found

    def close(self) -> None:
        """End the program."""
        self._process.communicate(timeout=120)


@contextmanager
def connected(server: ConnectServer, empty: Path) -> Iterator[Client]:
    """A client of a server that is started meanwhile."""
    with server:
        client = Client(server.url, empty)
        yield client
        client.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connected(ConnectServer(), tmp_path_factory.mktemp("empty")) as client:
        yield client


@dataclass(frozen=True)
class Case:
    """A test's database, and its folder, which has the checkpoint and what the sinks write."""

    client: Client
    database: Database
    folder: Path

    def run(self, sink: str, target: object = "", **more: Any) -> Any:
        """What the sink returns."""
        answer = self.answer(sink, target, **more)
        assert "error" not in answer, answer["error"]
        return answer["told"]

    def error(self, sink: str, target: object = "", **more: Any) -> str:
        """How the sink fails."""
        return str(self.answer(sink, target, **more)["error"])

    def answer(self, sink: str, target: object, **more: Any) -> dict[str, Any]:
        """The client's answer."""
        options = properties(self.database, topic__prefix=self.database.name)
        given = {"options": options, "checkpoint": str(self.checkpoint)}
        return self.client.answer(**given, sink=sink, target=str(target), more=more)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def forget_last_commit(self) -> None:
        """As if the run was killed before it committed its last micro-batch."""
        commits = self.checkpoint / "commits"
        last = max(commits.iterdir(), key=lambda path: int(path.name) if path.name.isdigit() else -1)
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def case(client: Client, database: Database, tmp_path: Path) -> Case:
    database.execute(*CREATE)
    return Case(client, database, tmp_path)


def test_the_replica_follows_its_source(case: Case) -> None:
    root = case.folder / "replica"
    first, _ = case.run("replica", root)
    case.database.execute(*CHANGE)
    second, _ = case.run("replica", root)
    assert first == second, "the query's id is the checkpoint's"
    assert content(root) == AFTER


@pytest.mark.long
def test_a_repeated_micro_batch_changes_no_replica(case: Case) -> None:
    root = case.folder / "replica"
    case.run("replica", root)
    case.database.execute(*CHANGE)
    case.run("replica", root)
    case.forget_last_commit()
    case.run("replica", root)
    assert content(root) == AFTER


def place(lake: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The root of a replica in that format, and its options."""
    places = {"iceberg": ("iceberg://lake", catalog(folder / "lake")), "postgres": database_of_replica(folder / "lake")}
    return places.get(lake, (str(folder / "replica"), {}))


@pytest.mark.long
@pytest.mark.parametrize("lake", ["iceberg", "postgres"])
def test_a_replica_of_another_format_follows_its_source(case: Case, lake: str) -> None:
    root, options = place(lake, case.folder)
    case.run("replica", root, storage_options=options)
    case.database.execute(*CHANGE)
    case.run("replica", root, storage_options=options)
    assert content(root, options) == AFTER
    case.forget_last_commit()
    case.run("replica", root, storage_options=options)
    assert content(root, options) == AFTER, "a repeated micro-batch changes nothing"


@pytest.mark.long
@pytest.mark.parametrize("lake", ["delta", "iceberg", "postgres"])
def test_a_history_has_every_version_once(case: Case, lake: str) -> None:
    root, options = place(lake, case.folder)
    more = {"mode": "history", "storage_options": options}
    case.run("replica", root, **more)
    case.database.execute(*CHANGE)
    case.run("replica", root, **more)
    case.forget_last_commit()
    case.run("replica", root, **more)
    rows = read_table(root, "public.orders", options).to_pylist()
    found = sorted((row["id"], row["_op"], str(row["amount"]), row["valid_to"] is None) for row in rows)
    assert [(id_, op, amount) for id_, op, amount, is_newest in found if is_newest] == NEWEST
    assert [(id_, op, amount) for id_, op, amount, is_newest in found if not is_newest] == PAST


@pytest.mark.long
def test_the_replica_by_spark_follows_its_source(database: Database, tmp_path: Path) -> None:
    root, empty = tmp_path / "replica", tmp_path / "empty"
    empty.mkdir()
    database.execute(*CREATE)
    with connected(ConnectServer(resolve_jars(JARS), DELTA), empty) as client:
        case = Case(client, database, tmp_path)
        case.run("replica", root, engine="spark")
        database.execute(*CHANGE)
        case.run("replica", root, engine="spark")
    assert content(root) == AFTER


@pytest.mark.long
def test_kafka_gets_each_change_once(case: Case, kafka: EmbeddedKafka) -> None:
    name = topic(kafka, name=f"{case.database.name}.public.orders")
    case.run("kafka", kafka.bootstrap)
    case.database.execute(*CHANGE)
    case.run("kafka", kafka.bootstrap)
    case.forget_last_commit()
    case.run("kafka", kafka.bootstrap)
    values = [json.loads(message.value() or b"null") for message in consumed(kafka, name)]
    assert [value and value["payload"]["op"] for value in values] == ["r"] * 3 + ["u", "d", None, "c"]


@pytest.mark.long
def test_a_replica_beside_another_query_needs_a_name(case: Case) -> None:
    root = case.folder / "replica"
    error = case.error("beside", root)
    assert "does not say which of the session's 2 queries" in error
    assert "query_id" in error
    case.run("beside", root, query_id="orders")
    case.database.execute(*CHANGE)
    case.run("beside", root, query_id="orders")
    assert content(root) == AFTER


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_files_have_each_change_once(case: Case, kind: str) -> None:
    root = case.folder / "files"
    case.run("files", root, kind=kind)
    case.database.execute(*CHANGE)
    case.run("files", root, kind=kind)
    case.forget_last_commit()
    case.run("files", root, kind=kind)
    if kind == "parquet":
        found = pq.read_table(root, columns=["op"]).column("op").to_pylist()
        assert sorted(found) == ["c", "d", "r", "r", "r", "u"]
    else:
        lines = [line for path in root.glob("*.txt") for line in path.read_text().splitlines()]
        assert len(lines) == 7, "a tombstone is a record, too"


@pytest.mark.long
def test_a_function_of_ones_own_gets_typed_tables(case: Case) -> None:
    root = case.folder / "lake"
    case.run("tables", root)
    case.database.execute(*CHANGE)
    case.run("tables", root)
    rows = pq.read_table(root / "public.orders").sort_by([("op", "ascending"), ("id", "ascending")])
    found = [(row["op"], row["id"], str(row["amount"])) for row in rows.to_pylist()]
    read = [("r", 1, "1.00"), ("r", 2, "2.00"), ("r", 3, "3.00")]
    assert [each for each in found if each[0] != "d"] == [("c", 4, "4.00"), *read, ("u", 2, "20.00")]
    assert [each[:2] for each in found if each[0] == "d"] == [("d", 3)]


def test_typed_rows_can_be_read(case: Case) -> None:
    rows, amounts = case.run("typed")
    assert rows == [["1", "1.00"], ["2", "2.00"], ["3", "3.00"]]
    assert amounts == ["1.00", "2.00", "3.00"]


def test_a_pipeline_file_is_refused_with_what_to_do(case: Case) -> None:
    file = case.folder / "pipeline.yaml"
    source = {"connector": "postgres", "config": properties(case.database)}
    file.write_text(json.dumps({"source": source, "sink": "null", "checkpoint": str(case.checkpoint)}))
    error = case.error("pipeline", file)
    assert "needs a Spark session with Java" in error
    assert "with a sink in a query of your own" in error
    assert not case.checkpoint.exists()


def content(root: Path | str, options: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The replica's rows."""
    rows = read_table(str(root), "public.orders", options).to_pylist()
    return sorted(({**row, "amount": str(row["amount"])} for row in rows), key=lambda row: row["id"])
