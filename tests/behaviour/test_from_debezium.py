"""From a running Debezium to Tailrace without a new snapshot, as docs/from-debezium.md says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from tailrace.cli.demo import QUICK_START
from tests.behaviour.capture import capturing
from tests.behaviour.streams import eventually
from tests.behaviour.test_cli import records, tailrace
from tests.behaviour.test_modes import read
from tests.conftest import Database
from tests.unit.test_docs import blocks


@contextmanager
def standing_in(database: Database, slot: str, publication: str) -> Iterator[None]:
    """What stands for Debezium here: a program that reads the slot."""
    dsn = database.server.dsn(database.name, application_name="Debezium Streaming", replication="database")
    with closing(psycopg.connect(dsn, autocommit=True)) as stream:
        options = f"(proto_version '1', publication_names '{publication}')"
        answer = stream.pgconn.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 {options}".encode())
        assert answer.status == psycopg.pq.ExecStatus.COPY_BOTH
        yield


def shown() -> dict[str, Any]:
    """The pipeline file of the page."""
    (block,) = [block for block in blocks("yaml") if block.marker == "from_debezium"]
    content: dict[str, Any] = yaml.safe_load(block.text)
    return content


@pytest.mark.timeout(600)
@pytest.mark.long
def test_the_page(database: Database, tmp_path: Path) -> None:
    content, slot, publication = shown(), f"slot_{database.name}", "dbz_publication"
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        f"CREATE PUBLICATION {publication} FOR ALL TABLES",
        f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')",
        "INSERT INTO orders VALUES (2)",
        f"SELECT pg_logical_slot_get_binary_changes('{slot}', NULL, NULL, 'proto_version', '1', 'publication_names', "
        f"'{publication}')",
        "INSERT INTO orders VALUES (3)",
    )
    config = content["source"]["config"]
    assert (config["slot.name"], config["publication.name"]) == ("debezium", publication)
    config.update({**database.properties, "slot.name": slot})
    content["sink"], content["spark"] = {"json": {"path": "out"}}, {"spark.master": "local[2]", **QUICK_START}
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    with standing_in(database, slot, publication):
        said = tailrace("check", pipeline, code=1).stdout
        assert "is in use by Debezium Streaming" in said
    eventually(lambda: "is in use" not in tailrace("check", pipeline, code=0).stdout)
    tailrace("run", pipeline, "--once")

    def keys() -> list[int]:
        return [record["key"]["payload"]["id"] for record in records(tmp_path / "out")]

    assert keys() == [3], "no snapshot, and nothing between is missing"
    del config["slot.takeover"], config["snapshot.mode"]
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    database.execute("INSERT INTO orders VALUES (4)")
    tailrace("run", pipeline, "--once")
    assert sorted(keys()) == [3, 4]


@pytest.fixture
def engine() -> Path:
    """The program that runs a real Debezium; skips without."""
    folder = os.environ.get("TAILRACE_REFERENCE")
    if folder is None:
        pytest.skip("needs a Debezium engine, name its folder in TAILRACE_REFERENCE")
    return Path(folder) / "run.sh"


class Debezium:
    """A connector of the engine, with its offsets in a file."""

    def __init__(self, engine: Path, database: Database, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.output, self.stop = folder / "events.jsonl", folder / "stop"
        self.config = {
            **database.properties,
            "name": "shop",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "topic.prefix": "t",
            "slot.name": f"slot_{database.name}",
            "publication.name": f"publication_{database.name}",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(folder / "offsets"),
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """The connector, until it streams and for the length of the block."""
        self.stop.unlink(missing_ok=True)
        file = self.folder / "connector.json"
        file.write_text(json.dumps({"name": "shop", "config": self.config}), encoding="utf-8")
        command = [self.engine, "--config", file, "--output", self.output, "--stop-file", self.stop]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert any("STREAMING" in line for line in process.stdout)
            try:
                yield
            finally:
                self.stop.touch()
                process.communicate(timeout=120)

    def ids(self) -> list[int]:
        """The keys of the events that the last run wrote."""
        lines = map(json.loads, self.output.read_text(encoding="utf-8").splitlines())
        found = (line["value"] if isinstance(line["value"], dict) else json.loads(line["value"]) for line in lines)
        return [event.get("payload", event)["after"]["id"] for event in found]


@pytest.mark.crash
def test_from_a_real_debezium_and_back(database: Database, engine: Path, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    debezium = Debezium(engine, database, tmp_path)
    with debezium.running():
        database.execute("INSERT INTO t VALUES (2)")
        eventually(lambda: debezium.output.exists() and debezium.ids() == [1, 2])
    database.execute("INSERT INTO t VALUES (3)")
    continuing = {"snapshot__mode": "no_data", "slot__takeover": "true", "publication__autocreate__mode": "disabled"}
    with capturing(database, **continuing) as capture:
        assert capture.plan() == []
        found = read(capture)
        assert found[-1] == ("c", 3)
        assert set(found) <= {("c", 2), ("c", 3)}, "what was not confirmed comes again"
        database.execute("INSERT INTO t VALUES (4)")
        assert read(capture) == [("c", 4)]
    database.execute("INSERT INTO t VALUES (5)")
    with debezium.running():
        eventually(lambda: 5 in debezium.ids())
        assert set(debezium.ids()) <= {3, 4, 5}
