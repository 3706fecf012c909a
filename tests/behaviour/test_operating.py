"""Commands on a running pipeline, with Spark and a replica."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import tailrace
from tailrace.cli.main import app
from tailrace.config.filters import TableFilter
from tailrace.config.options.filters import TABLES
from tailrace.errors import ConfigError, SourceError
from tailrace.model.table import TableId
from tailrace.pipeline import tables
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState
from tailrace.pipeline.definition import load
from tailrace.pipeline.runner import Pipeline, Run
from tailrace.pipeline.tables import add, remove
from tailrace.sinks.replica.sink import read_table
from tests.behaviour.signalling import ROWS, write
from tests.conftest import Database

LARGE = "ALTER TABLE t ALTER note SET STORAGE EXTERNAL"


def command(*arguments: object, code: int = 0) -> dict[str, Any]:
    """What a command prints with --json, and that it ends with this exit code."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def lacking(pipeline: Path) -> dict[str, str]:
    """Why tables of the replica are incomplete."""
    said = CliRunner().invoke(app, ["status", str(pipeline), "--json"], catch_exceptions=False)
    found = {each["table"]: each["why"] for each in json.loads(said.stdout)["replica"] if each["is_lacking"]}
    assert said.exit_code == bool(found)
    return found


@pytest.fixture
def pipeline(database: Database, tmp_path: Path) -> Path:
    """A pipeline of `other` into a replica, with a table `t` beside it."""
    database.execute(*ROWS, LARGE, "UPDATE t SET note = repeat('x', 5000)", "CREATE TABLE other (id int PRIMARY KEY)")
    config = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}"}
    more = {
        "publication.name": "shop",
        "publication.autocreate.mode": "filtered",
        "table.include.list": r"public\.other",
        "signal.poll.interval.ms": "200",
        "incremental.snapshot.chunk.size": "2",
        "notification.enabled.channels": "log,file",
        "notification.file": str(tmp_path / "told.jsonl"),
    }
    content = {"name": "shop", "source": {"config": {**config, **more}}, "sink": {"replica": {"path": "out"}}}
    file = tmp_path / "pipeline.yaml"
    text = yaml.safe_dump({**content, "checkpoint": "state", "trigger": "100ms"}, sort_keys=False)
    file.write_text("# by hand\n" + text, encoding="utf-8")
    return file


@pytest.fixture
def running(pipeline: Path, spark: SparkSession) -> Iterator[Run]:
    run = Pipeline(load(pipeline), spark).start()
    until(lambda: run.progress().offset.get("phase") == "stream", run)
    yield run
    run.stop()


def until(is_so: Callable[[], bool], run: Run) -> None:
    """Wait for it, while the pipeline runs."""
    deadline = time.monotonic() + 200
    while not is_so():
        assert time.monotonic() < deadline
        assert not run.await_(0.2)


def rows(pipeline: Path, table: str) -> dict[int, Any]:
    """Rows of the replica by id; none as long as there is no table."""
    root = str(pipeline.parent / "out")
    if not (pipeline.parent / "out" / table / "_delta_log").exists():
        return {}
    return {row["id"]: row for row in read_table(root, table).to_pylist()}


def notified(pipeline: Path) -> list[str]:
    file = pipeline.parent / "told.jsonl"
    notes = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    return [note["type"] for note in notes if note["aggregate_type"] == "Incremental Snapshot"]


def test_a_table_is_added_under_traffic_read_again_and_removed(
    database: Database, pipeline: Path, running: Run
) -> None:
    over = threading.Event()
    writers = [threading.Thread(target=write, args=(database, number, over)) for number in range(2)]
    for writer in writers:
        writer.start()
    try:
        change = command("add", pipeline, "public.t")
        assert change["published"] == ["public.t"]
        assert change["edit"]["written"]
        until(lambda: notified(pipeline)[-1:] == ["COMPLETED"], running)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    database.execute("INSERT INTO t VALUES (1000, 0, 'end')", "INSERT INTO other VALUES (1)")
    until(lambda: 1000 in rows(pipeline, "public.t") and 1 in rows(pipeline, "public.other"), running)
    with database.connect() as connection:
        expected = {row[0]: row[1:] for row in connection.execute("SELECT id, version, note FROM t")}
    assert {id_: (row["version"], row["note"]) for id_, row in rows(pipeline, "public.t").items()} == expected

    told_before = len(notified(pipeline))
    sent = command("signal", pipeline, "execute-snapshot", "-t", "public.t", "--filter", "id < 10", "--id", "again")
    assert sent["data"]["additional-conditions"] == [{"data-collection": "public.t", "filter": "id < 10"}]
    until(lambda: notified(pipeline)[told_before:][-1:] == ["COMPLETED"], running)

    assert command("remove", pipeline, "public.t")["edit"]["value"] == r"public\.other"
    until(lambda: running.progress().offset["snapshots"]["tables"] == {}, running)
    database.execute("DELETE FROM t WHERE id = 1000", "INSERT INTO other VALUES (2)")
    until(lambda: 2 in rows(pipeline, "public.other"), running)
    assert 1000 in rows(pipeline, "public.t"), "the target keeps what it has"
    assert pipeline.read_text(encoding="utf-8").startswith("# by hand\n")
    status = command("status", pipeline)
    assert status["snapshot"] is None


def test_a_table_that_cannot_be_added_or_removed_is_an_error_at_once(database: Database, pipeline: Path) -> None:
    database.execute("CREATE TABLE keyless (id int)", "CREATE TABLE other_too (id int PRIMARY KEY)")
    with pytest.raises(ConfigError, match=r"public\.o: there is no such table"):
        add(pipeline, ["public.o"])
    with pytest.raises(ConfigError, match="--snapshot blocking"):
        add(pipeline, ["public.keyless"])
    with pytest.raises(ConfigError, match=r"public\.t: is not captured"):
        remove(pipeline, ["public.t"])
    with pytest.raises(ConfigError, match="no table would be left"):
        remove(pipeline, ["public.other"])
    change = add(pipeline, ["public.keyless", "public.t"], "blocking")
    assert (change.signal, change.published) == (None, ()), "the first start reads the file"
    wide = pipeline.read_text(encoding="utf-8").replace(
        r"public\.other,public\.keyless,public\.t", r"public\.other.*,public\.t|public\.keyless"
    )
    pipeline.write_text(wide, encoding="utf-8")
    done = CliRunner().invoke(app, ["remove", str(pipeline), "public.other", "public.keyless"])
    assert "table.include.list is changed" in done.stdout
    captured = load(pipeline).config()[TABLES.include]
    names = ["public.other", "public.other_too", "public.keyless", "public.t"]
    assert [name for name in names if any(pattern.fullmatch(name) for pattern in captured)] == names[1::2]
    again = add(pipeline, ["public.t"])
    assert again.edit is None


@pytest.mark.long
def test_a_table_that_may_not_be_added_is_refused_with_all_that_it_takes_shown_and_read_later(
    database: Database, pipeline: Path, spark: SparkSession
) -> None:
    """`add` refuses it; asked for by a signal it is shown as incomplete, until it is read."""
    role = f"reader_{uuid4().hex[:8]}"
    database.server.create_role(role, "secret")
    database.execute(
        "CREATE PUBLICATION shop FOR TABLE other", "CREATE TABLE keyless (id int)", f"GRANT SELECT ON other TO {role}"
    )
    text = pipeline.read_text(encoding="utf-8").replace(
        "publication.autocreate.mode: filtered", "publication.autocreate.mode: disabled"
    )
    user, password = database.server.user, database.server.password
    text = text.replace(f"database.user: {user}", f"database.user: {role}").replace(password, "secret")
    pipeline.write_text(text, encoding="utf-8")
    grant = f'GRANT SELECT ON "public"."t" TO "{role}"'
    run = Pipeline(load(pipeline), spark).start()
    try:
        until(lambda: run.progress().offset.get("phase") == "stream", run)
        done = CliRunner().invoke(app, ["add", str(pipeline), "public.t", "public.keyless"])
        assert done.exit_code == 1
        said, owner = str(done.exception), 'ALTER PUBLICATION "shop" ADD TABLE "public"."keyless", "public"."t"'
        assert "does not own the publication shop and does not own public.keyless, public.t" in said
        for needed in (grant, f'GRANT SELECT ON "public"."keyless" TO "{role}"', owner, "--snapshot blocking"):
            assert needed in said, "all that is missing is told at once"
        database.execute(owner)
        assert pipeline.read_text(encoding="utf-8") == text
        tailrace.signal(pipeline, "add-tables", {"data-collections": ["public.t"]})
        until(lambda: "public.t" in lacking(pipeline), run)
        assert grant in lacking(pipeline)["public.t"]
        database.execute(f"GRANT SELECT ON t TO {role}")
        command("signal", pipeline, "execute-snapshot", "-t", "public.t")
        until(lambda: len(rows(pipeline, "public.t")) == 10, run)
        until(lambda: lacking(pipeline) == {}, run)
        database.execute("ALTER PUBLICATION shop SET (publish = 'insert')")
        with pytest.raises(SourceError, match="shop does not publish update, delete"):
            until(lambda: False, run)
        (problem,) = command("status", pipeline, code=1)["problems"]
        assert problem["what"].startswith("shop does not publish update, delete")
    finally:
        run.stop()
    database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_file_that_cannot_be_edited_stays_and_the_needed_text_is_printed(database: Database, pipeline: Path) -> None:
    text = pipeline.read_text(encoding="utf-8")
    pipeline.write_text(text.replace(r"public\.other", ">-\n      public\\.other"), encoding="utf-8")
    before = pipeline.read_text(encoding="utf-8")
    said = CliRunner().invoke(app, ["add", str(pipeline), "public.t"]).stdout
    assert r"table.include.list: public\.other,public\.t" in said
    assert pipeline.read_text(encoding="utf-8") == before
    pipeline.write_text(text.replace("table.include.list: public\\.other", "table.exclude.list: public\\.t"))
    change = add(pipeline, ["public.t"])
    assert change.edit is not None
    assert (change.edit.written, change.edit.value) == (False, None)


def test_names_with_dots_and_quotes_and_partitions(
    database: Database, pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever way they are written, the signal has them so that they cannot be misread."""
    database.execute(
        'CREATE SCHEMA "My.Schema"',
        'CREATE TABLE "My.Schema"."Order.Items" (id int PRIMARY KEY)',
        'CREATE SCHEMA "My"',
        'CREATE TABLE "My"."Other ""one""" (id int PRIMARY KEY)',
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts DEFAULT",
        "CREATE PUBLICATION shop FOR TABLE other",
    )
    begun = CheckpointState(CheckpointBatch(0, {}), None)
    monkeypatch.setattr(tables, "position_of", lambda _: begun)
    dotted, quoted = '"My.Schema"."Order.Items"', 'My."Other ""one"""'
    change = add(pipeline, [dotted, quoted, "public.parts_1"])
    assert change.tables == ("My.Schema.Order.Items", 'My.Other "one"', "public.parts_1")
    assert change.published == change.tables
    assert change.signal is not None
    assert change.signal.data["data-collections"] == [dotted, quoted, "public.parts_1"]
    filters = TableFilter.from_config(load(pipeline).config())
    assert filters.captures(TableId("", "My.Schema", "Order.Items"))
    assert filters.captures(TableId("", "My", 'Other "one"'))
    change = remove(pipeline, ["My.Schema.Order.Items", quoted])
    assert change.edit is not None
    assert change.edit.value == r"public\.other,public\.parts_1"
    assert change.signal is not None
    assert change.signal.data["data-collections"] == [dotted, quoted]
    database.execute('CREATE TABLE "My"."Schema.Order.Items" (id int PRIMARY KEY)')
    with pytest.raises(ConfigError, match=r'means several tables(.|\n)*My."Schema.Order.Items" or "My.Schema"'):
        add(pipeline, ["My.Schema.Order.Items"])
    with pytest.raises(ConfigError, match="Did you mean"):
        add(pipeline, ['"My.Schema"."Order.Item"'])
