"""Each fault of a running pipeline shows in the console's figures, in metrics and in `tailrace status` alike, soon.

Faults that end a server or its answers, a sink that cannot be written and a table whose type no longer fits are in
test_operate.py.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from tailrace.connectors.postgres.options import DATABASE_USER, SLOT_NAME
from tailrace.pipeline.definition import load
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour.operated import LIMIT, MORE, Asked, operated
from tests.behaviour.test_operate import ALL, dropped, execute, printed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this module's own, whose roles change."""
    with EmbeddedPostgres(18) as server:
        yield server


@pytest.fixture
def pipeline(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Path]:
    """A replica of two tables, read by a role of its own."""
    name = f"shop_{time.time_ns()}"
    server.create_database(name)
    server.create_role(name, "secret")
    with server.connect(name) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("CREATE TABLE other (id int PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (1, 'a')")
        connection.execute("CREATE PUBLICATION pub FOR ALL TABLES")
        connection.execute(f"GRANT SELECT ON orders, other TO {name}".encode())
    own = {"topic.prefix": "shop", "slot.name": name, "publication.name": "pub", "database.user": name}
    own |= {"database.password": "secret", "publication.autocreate.mode": "disabled"}
    content = {
        "name": "shop",
        "source": {"config": {**server.properties(name), **own}},
        "sink": {"replica": {"path": "lake", "on_incomplete": "tell"}},
        "checkpoint": "state",
        "trigger": "200ms",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    yield file
    server.drop_database(name)


def told(asked: Asked, pipeline: Path, conditions: tuple[str, ...], words: str, todo: str) -> None:
    """Within ten seconds all three say it: condition, what is the matter, what to do."""
    began = time.monotonic()
    (shown,) = asked.json("/status")

    def is_told() -> bool:
        nonlocal shown
        (shown,) = asked.json("/status")
        return shown["condition"] in conditions and words in shown["what"]

    asked.eventually(is_told, LIMIT + MORE, lambda: (shown["condition"], shown["what"], shown["todo"]))
    assert todo in shown["todo"], shown["todo"]
    assert asked.metric("tailrace_condition", pipeline="shop", condition=shown["condition"]) == 1
    _, text = printed(pipeline)
    assert words in text, text
    assert todo in text, text
    assert time.monotonic() - began < LIMIT + 2 * MORE


Fault = tuple[Callable[[EmbeddedPostgres, Path], object], tuple[str, ...], str, str]


def password(server: EmbeddedPostgres, pipeline: Path) -> None:
    role = load(pipeline).config()[DATABASE_USER]
    execute(server, pipeline, f"ALTER ROLE {role} PASSWORD 'another'")


def publication(server: EmbeddedPostgres, pipeline: Path) -> None:
    execute(server, pipeline, "DROP PUBLICATION pub")
    execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")


def published(server: EmbeddedPostgres, pipeline: Path) -> None:
    execute(server, pipeline, "ALTER PUBLICATION pub SET (publish = 'insert')")
    execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")


def folder(server: EmbeddedPostgres, pipeline: Path) -> None:
    shutil.rmtree(pipeline.parent / "lake" / "public.orders")
    execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")


def slot(server: EmbeddedPostgres, pipeline: Path) -> None:
    name = load(pipeline).config()[SLOT_NAME]
    deadline = time.monotonic() + 30
    while not dropped(server, name):
        assert time.monotonic() < deadline


FAULTS: dict[str, Fault] = {
    "password": (password, ("stuck", "failed"), "password authentication failed", "database.password"),
    "publication": (publication, ("failed", "stuck"), "does not exist", "create the publication"),
    "published": (published, ("incomplete",), "pub does not send updates, deletes", "`tailrace check` shows where"),
    "folder": (folder, ("incomplete",), "the replica's table was deleted", "execute-snapshot"),
    "slot": (slot, ("failed", "stuck"), "the slot does not exist", "snapshot.mode=when_needed"),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=() if name == "publication" else pytest.mark.long) for name in FAULTS]
)
def test_a_fault_is_told_alike_in_ten_seconds(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession, fault: str
) -> None:
    cause, conditions, words, todo = FAULTS[fault]
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 1, 60)
        cause(server, pipeline)
        told(asked, pipeline, conditions, words, todo)
    assert "secret" not in str(printed(pipeline))


@pytest.mark.long
def test_a_table_that_is_dropped_is_gone_and_the_others_go_on(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: asked.metric("tailrace_tables", state="complete") == 2, 60)
        execute(server, pipeline, "DROP TABLE other")
        execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")
        asked.eventually(lambda: asked.metric("tailrace_tables", state="gone") == 1, LIMIT + MORE)
        states = {each["table"]: each["state"] for each in asked.json("/status")[0]["replica"]}
        assert states == {"public.orders": "complete", "public.other": "gone"}
        code, text = printed(pipeline)
        assert (code, "public.other" in text, "gone" in text) == (0, True, True)


@pytest.mark.long
def test_a_right_that_is_taken_away_stops_nothing_and_the_check_tells_it(
    server: EmbeddedPostgres, pipeline: Path, spark: SparkSession
) -> None:
    role = load(pipeline).config()[DATABASE_USER]
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        execute(server, pipeline, f"REVOKE SELECT ON orders FROM {role}")
        execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 2, 60)
        assert asked.health()[1] == "streaming"
        code, text = printed(pipeline, "check")
        assert (code, f'GRANT SELECT ON "public"."orders" TO "{role}"' in text) == (1, True), text


@pytest.mark.long
def test_kafka_that_is_killed(server: EmbeddedPostgres, pipeline: Path, spark: SparkSession) -> None:
    broker = EmbeddedKafka()
    broker.start()
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["sink"] = {"kafka": {"bootstrap.servers": broker.bootstrap}}
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    try:
        with operated(load(pipeline), spark) as asked:
            asked.until("streaming", ALL)
            asked.eventually(lambda: asked.metric("tailrace_events_total") == 1, 60)
            broker.kill()
            told(asked, pipeline, ("sink away",), f"Kafka at {broker.bootstrap} does not answer", "bootstrap.servers")
            assert asked.metric("tailrace_sink_up") == 0
            broker.start()
            asked.until("streaming", ALL)
    finally:
        broker.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.long
def test_a_disk_that_is_full(server: EmbeddedPostgres, pipeline: Path, spark: SparkSession, small_disk: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["checkpoint"] = str(small_disk / "state")
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    with operated(load(pipeline), spark) as asked:
        asked.until("streaming", ALL)
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 1, 60)
        filled = subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'filler'}"], capture_output=True, check=False)
        assert b"No space left" in filled.stderr
        execute(server, pipeline, "INSERT INTO orders VALUES (2, 'b')")
        told(asked, pipeline, ("failed",), "a disk is full", "free space")
