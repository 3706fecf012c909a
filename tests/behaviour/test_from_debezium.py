"""From a running Debezium to Tailrace without a new snapshot, as docs/from-debezium.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from tailrace.cli.demo import QUICK_START
from tests.behaviour.streams import eventually
from tests.behaviour.test_cli import records, tailrace
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
    config.update({**database.properties, "slot.name": slot, "offset.takeover": str(tmp_path / "offsets.json")})
    with database.connect() as connection:
        query = "SELECT (confirmed_flush_lsn - '0/0'::pg_lsn)::int8 FROM pg_replication_slots WHERE slot_name = %s"
        (lsn,) = connection.execute(query, [slot]).fetchone() or (None,)
    stored = {"partition": {"server": "shop"}, "offset": {"lsn": lsn, "snapshot_completed": True}}
    (tmp_path / "offsets.json").write_text(json.dumps({"offsets": [stored]}), encoding="utf-8")
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
    del config["slot.takeover"], config["offset.takeover"], config["snapshot.mode"]
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    database.execute("INSERT INTO orders VALUES (4)")
    tailrace("run", pipeline, "--once")
    assert sorted(keys()) == [3, 4]
