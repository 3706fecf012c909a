"""A sink that is away is told within seconds, by the run and by `status`, and no more when it is back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tailrace.cli.run_output import waiting
from tailrace.connectors.finding import SINK, Finding
from tailrace.operate.status import Status, look
from tailrace.pipeline import sink_health
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.pipeline.sink_health import SinkWatch, problem
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed
from tests.behaviour.streams import eventually, properties
from tests.conftest import Database

# The limit is 5 seconds, by the pauses; a machine that does other work may take more.
SOON = 90


def pipeline(folder: Path, sink: dict[str, Any], config: dict[str, str] | None = None) -> Definition:
    given = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    content = {"source": {"config": config or given}, "sink": sink, "checkpoint": "state", "trigger": "100ms"}
    return from_content(content, base=folder, where="test")


@contextmanager
def watching(definition: Definition) -> Iterator[Callable[[], str | None]]:
    """What a run says of its sink."""
    watch = SinkWatch(definition)
    try:
        yield lambda: watch.problem
    finally:
        watch.stop()


def the_problem(definition: Definition) -> Finding:
    found = problem(definition)
    assert found is not None
    return found


def away(status: Status) -> list[str]:
    return [found.what for found in status.problems if found.name == SINK]


def test_a_sink_that_is_away_is_told_within_five_seconds() -> None:
    assert sink_health._PAUSE_SECONDS + sink_health._ANSWER_SECONDS < 5


def test_kafka_goes_away_and_comes_back(tmp_path: Path) -> None:
    broker = EmbeddedKafka()
    definition = pipeline(tmp_path, {"kafka": {"bootstrap.servers": broker.bootstrap}})
    try:
        with watching(definition) as said:
            eventually(said, seconds=SOON)
            assert f"Kafka at {broker.bootstrap} does not answer: " in str(said())
            assert "goes on by itself; remedy: Check bootstrap.servers" in str(said())
            assert str(said()).startswith(the_problem(definition).what.partition(": ")[0])
            broker.start()
            eventually(lambda: said() is None, seconds=SOON)
            eventually(lambda: problem(definition) is None, seconds=SOON)
            broker.kill()
            eventually(said, seconds=SOON)
    finally:
        broker.close()


@pytest.mark.long
def test_a_run_and_status_tell_that_kafka_is_away_and_that_it_is_back(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with EmbeddedKafka() as broker:
        definition = pipeline(tmp_path, {"kafka": {"bootstrap.servers": broker.bootstrap}}, properties(database))
        run = Pipeline(definition, session=spark).start()
        try:
            until(run, lambda: run.progress().events == 1)
            assert (run.progress().sink_problem, away(look(definition))) == (None, [])
            broker.kill()
            database.execute("INSERT INTO t VALUES (2)")
            until(run, lambda: run.progress().sink_problem is not None, SOON)
            said = str(run.progress().sink_problem)
            assert f"Kafka at {broker.bootstrap} does not answer: " in said
            assert "goes on by itself; remedy: Check bootstrap.servers" in said
            until(run, lambda: run.progress().activity == "writes")
            assert "is being read and written, for " in waiting(run.progress(), str)
            status = look(definition)
            assert away(status) == [the_problem(definition).what]
            assert status.to_json()["problems"][0]["name"] == "sink"
            assert not status.is_lost, "the run waits for it"
            assert status.condition.value == "sink away"
            broker.start()
            until(run, lambda: run.progress().sink_problem is None, SOON)
            assert away(look(definition)) == []
            until(run, lambda: run.progress().events == 2)
        finally:
            run.stop()
        assert [message.value() is not None for message in consumed(broker, "t.public.t")] == [True, True]
        broker.kill()
        assert look(definition).is_lost, "nobody waits for it"


def until(run: Run, is_so: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        assert not run.await_(0.2)


@contextmanager
def object_store(port: int) -> Iterator[None]:
    """A store that has nothing, in place of S3."""

    class Empty(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            body = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Empty) as server:  # it may reuse an address that is reserved
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def test_the_storage_of_a_replica_goes_away_and_comes_back(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        # Nobody listens, and nobody else gets the port.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        goes_away_and_comes_back(tmp_path, reserved.getsockname()[1])


def goes_away_and_comes_back(tmp_path: Path, port: int) -> None:
    options = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    definition = pipeline(tmp_path, {"replica": {"path": "s3://bucket/lake", "storage_options": options}})
    with watching(definition) as said:
        eventually(said, seconds=SOON)
        assert "the replica's storage s3://bucket/lake does not answer: " in str(said())
        assert "check the storage" in str(said())
        assert "secret" not in str(said())
        assert str(said()).startswith(the_problem(definition).what)
        with object_store(port):
            eventually(lambda: said() is None, seconds=SOON)
            eventually(lambda: problem(definition) is None, seconds=SOON)
        eventually(said, seconds=SOON)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, {"replica": {"path": "lake"}})
    with watching(definition) as said:
        time.sleep(2)
        assert said() is None
        (tmp_path / "lake").touch()
        eventually(said, seconds=SOON)
        assert f"{tmp_path}/lake is a file" in str(said())
        (tmp_path / "lake").unlink()
        eventually(lambda: said() is None, seconds=SOON)


@pytest.mark.long
def test_a_sink_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a folder of a server that is gone does."""
    hangs = threading.Event()

    class Hanging:
        def look(self, seconds: float) -> None:
            hangs.wait()

    monkeypatch.setattr(sink_health, "probe", lambda definition: (Hanging(), "see that it is mounted"))
    monkeypatch.setattr(sink_health, "_COMMAND_SECONDS", 1.0)
    monkeypatch.setattr(sink_health, "_ANSWER_SECONDS", 0.5)
    definition = pipeline(tmp_path, {"json": {"path": "out"}})
    try:
        assert the_problem(definition).what == "the sink does not answer within 1 s"
        with watching(definition) as said:
            eventually(said, seconds=SOON)
            assert str(said()).startswith("the sink does not answer; the pipeline waits")
    finally:
        hangs.set()


def test_a_slow_answer_of_kafka_is_no_problem_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[tuple[str, bool] | None] = [("late", False), None, ("late", False), ("late", False)]

    class Slow:
        def look(self, seconds: float) -> tuple[str, bool] | None:
            asked.append(len(asked))
            return answers[min(len(asked), len(answers)) - 1]

    asked: list[int] = []
    monkeypatch.setattr(sink_health, "probe", lambda definition: (Slow(), "wait"))
    monkeypatch.setattr(sink_health, "_PAUSE_SECONDS", 0.05)
    with watching(pipeline(tmp_path, {"json": {"path": "out"}})) as said:
        eventually(said, seconds=SOON)
        assert len(asked) >= 4
