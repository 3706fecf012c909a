"""`tailrace run FOLDER`: several pipelines in one process, their files, and their REST interface."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tailrace.cli.demo import QUICK_START
from tailrace.errors import TailraceError
from tailrace.operate.server import TOKEN
from tailrace.sinks.replica.sink import read_table
from tailrace.testing.process import free_port
from tests.behaviour.operated import Asked
from tests.behaviour.test_cli import COMMAND, tailrace
from tests.conftest import Database
from tests.unit.operate import kcctl

pytestmark = pytest.mark.timeout(600)

SPARK = {"spark.master": "local[2]", **QUICK_START}


def put(folder: Path, name: str, database: Database, table: str = "orders", **properties: str) -> Path:
    """Write the file of a pipeline that reads one table into JSON lines."""
    own = {"topic.prefix": name, "slot.name": f"{name}_{database.name}", "publication.name": f"pub_{name}"}
    more = {"publication.autocreate.mode": "filtered", "table.include.list": rf"public\.{table}", **properties}
    content = {
        "name": name,
        "source": {"config": {**database.properties, **own, **more}},
        "sink": {"json": {"path": f"../out_{name}"}},
        "checkpoint": f"../state_{name}",
        "trigger": "200ms",
        "spark": SPARK,
    }
    file = folder / f"{name}.yaml"
    file.with_suffix(".new").write_text(yaml.safe_dump(content), encoding="utf-8")
    file.with_suffix(".new").replace(file)
    return file


@contextmanager
def running(folder: Path, port: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    log = folder.parent / "stderr"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "run", str(folder), "--http", str(port), "--log-format", "json", *arguments],
            stderr=stderr,
            env={**os.environ, TOKEN: "t0ken"},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder.parent / "stderr").read_text(encoding="utf-8").splitlines()]


def conditions(asked: Asked) -> dict[str, str]:
    try:
        return {each["name"]: each["condition"] for each in json.loads(asked.get("/health")[1])["pipelines"]}
    except urllib.error.URLError:
        return {}


def send(asked: Asked, method: str, path: str, token: str = "t0ken", body: Any = None) -> tuple[int, Any]:
    headers, data = {"Authorization": f"Bearer {token}"}, None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(asked.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def until(asked: Asked, seconds: float = 120, **wanted: str | None) -> None:
    """Wait until pipelines are in conditions; None: there is none."""

    def is_so() -> bool:
        found = conditions(asked)
        return bool(found) and all(found.get(name) == condition for name, condition in wanted.items())

    asked.eventually(is_so, seconds, lambda: conditions(asked))


@pytest.mark.long
def test_a_pipeline_that_fails_does_not_stop_the_others_and_files_are_followed(
    database: Database, tmp_path: Path
) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO other VALUES (1)",
    )
    folder, port = tmp_path / "pipelines", free_port()
    folder.mkdir()
    asked = Asked(f"http://127.0.0.1:{port}")
    put(folder, "good", database)
    put(folder, "bad", database, **{"database.password": "wrong"})
    (folder / "broken.yaml").write_text("name: [", encoding="utf-8")
    with running(folder, port) as process:
        until(asked, good="streaming", bad="failed", **{"broken.yaml": "failed"})  # type: ignore[arg-type]
        assert asked.get("/ready")[0] == 503
        assert asked.get("/health")[0] == 200
        (bad,) = (each for each in asked.json("/health")["pipelines"] if each["name"] == "bad")
        assert "password authentication failed" in bad["what"]
        assert "database.password" in bad["todo"]
        connect_steers_them(asked, database)

        put(folder, "bad", database, "other")
        (folder / "broken.yaml").unlink()
        until(asked, good="streaming", bad="streaming", **{"broken.yaml": None})  # type: ignore[arg-type]
        assert asked.get("/ready")[0] == 200
        (folder / "good.yaml").unlink()
        until(asked, good=None, bad="streaming")
        asked.eventually(lambda: not (tmp_path / "state_good" / "lease.json").exists(), 30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(240) == 0
    assert not (tmp_path / "state_bad" / "lease.json").exists()
    found = lines(folder)
    assert {"good", "bad"} <= {line.get("pipeline") for line in found}
    assert any(line.get("position") and line.get("pipeline") == "good" for line in found)
    (failed,) = {line["message"] for line in found if line["level"] == "error" and line.get("pipeline") == "bad"}
    assert "password authentication failed" in failed
    assert "None" not in {line["message"] for line in found}
    assert database.server.password not in json.dumps(found)


def connect_steers_them(asked: Asked, database: Database) -> None:
    assert sorted(asked.json("/connectors")) == ["bad", "good"]
    found = asked.json("/connectors?expand=info&expand=status")
    assert found["good"]["status"]["connector"]["state"] == "RUNNING"
    assert found["bad"]["status"]["connector"]["state"] == "FAILED"
    assert "password authentication failed" in found["bad"]["status"]["tasks"][0]["trace"]
    assert found["good"]["info"]["config"]["database.password"] == "********"
    assert database.server.password not in json.dumps(found)
    assert send(asked, "PUT", "/connectors/good/pause", token="no")[0] == 401
    assert send(asked, "PUT", "/connectors/good/pause") == (202, None)
    until(asked, good="paused")
    assert asked.json("/connectors/good/status")["connector"]["state"] == "PAUSED"
    (stored,) = asked.json("/connectors/good/offsets")["offsets"]
    assert (stored["partition"], stored["offset"]["phase"]) == ({"server": "good"}, "stream")
    time.sleep(1)
    assert conditions(asked)["good"] == "paused"
    assert send(asked, "PUT", "/connectors/good/resume") == (202, None)
    until(asked, good="streaming")
    assert send(asked, "POST", "/connectors/good/restart?includeTasks=true")[0] == 202
    asked.eventually(lambda: asked.metric("tailrace_starts_total", pipeline="good") == 3, 240)
    until(asked, good="streaming")
    assert send(asked, "PUT", "/connectors/none/pause")[0] == 404


@pytest.mark.long
def test_offsets_are_read_and_reset_while_a_pipeline_is_stopped(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    folder, port = tmp_path / "pipelines", free_port()
    folder.mkdir()
    file = put(folder, "one", database)
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**content, "sink": {"replica": {"path": "../lake"}}}), encoding="utf-8")
    asked, offsets = Asked(f"http://127.0.0.1:{port}"), "/connectors/one/offsets"
    with running(folder, port):
        until(asked, one="streaming")
        asked.eventually(lambda: asked.metric("tailrace_table_rows_total", table="public.orders") == 1, 60)
        status, said = send(asked, "DELETE", offsets)
        assert (status, "'/connectors/one/stop' endpoint" in said["message"]) == (400, True)
        assert send(asked, "PUT", "/connectors/one/stop")[0] == 204
        until(asked, one="stopped")
        asked.eventually(lambda: asked.json(offsets)["offsets"] != [], 30)
        (entry,) = asked.json(offsets)["offsets"]
        status, said = send(asked, "PATCH", offsets, body={"offsets": [entry]})
        assert (status, said) == (200, {"message": "The offsets for this connector have been altered successfully"})
        other = {**entry, "offset": {**entry["offset"], "position": "0/1"}}
        status, said = send(asked, "PATCH", offsets, body={"offsets": [other]})
        assert (status, "checkpoint, server and sink would disagree" in said["message"]) == (400, True)
        status, said = send(asked, "PATCH", offsets, body={"offsets": [{**entry, "offset": None}]})
        assert status == 200, said
        assert f"slot one_{database.name}: there is none" in said["message"]
        assert list(tmp_path.glob("state_one.reset-*/offsets"))
        asked.eventually(lambda: asked.json(offsets)["offsets"] == [], 30)
        database.execute("INSERT INTO orders VALUES (2)")
        assert send(asked, "PUT", "/connectors/one/resume")[0] == 202
        until(asked, one="streaming")
        rows = read_table(str(tmp_path / "lake"), "public.orders")
        assert sorted(rows.column("id").to_pylist()) == [1, 2]


@pytest.mark.long
def test_one_file_is_served_paused_and_resumed_and_ends_by_a_signal(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    folder, port = tmp_path / "pipelines", free_port()
    folder.mkdir()
    file = put(folder, "one", database)
    asked = Asked(f"http://127.0.0.1:{port}")
    with running(file, port) as process:
        until(asked, one="starting")
        assert asked.get("/ready")[0] == 503
        until(asked, one="streaming")
        assert asked.get("/ready")[0] == 200
        assert asked.metric("debezium_metrics_SnapshotCompleted", name="one", context="snapshot") == 1
        connect_steers_it(asked, database)
        assert asked.json("/log")[0]["pipeline"] == "one"
        assert send(asked, "PUT", "/connectors/one/pause") == (202, None)
        until(asked, one="paused")
        process.send_signal(signal.SIGTERM)
        assert process.wait(240) == 0
    assert {line.get("pipeline") for line in lines(file)} == {"one"}


def connect_steers_it(asked: Asked, database: Database) -> None:
    """A pause, in which a restart changes nothing, and a restart of what runs."""
    assert send(asked, "PUT", "/connectors/one/pause") == (202, None)
    until(asked, one="paused")
    database.execute("INSERT INTO orders VALUES (2)")
    assert send(asked, "POST", "/connectors/one/restart")[0] == 204
    time.sleep(1)
    assert asked.json("/connectors/one/status")["connector"]["state"] == "PAUSED"
    assert asked.metric("tailrace_events_total", pipeline="one") == 1
    assert send(asked, "PUT", "/connectors/one/resume") == (202, None)
    until(asked, one="streaming")
    asked.eventually(lambda: asked.metric("tailrace_events_total", pipeline="one") == 2, 240)
    assert send(asked, "POST", "/connectors/one/restart")[0] == 204
    asked.eventually(lambda: asked.metric("tailrace_starts_total", pipeline="one") == 3, 240)
    until(asked, one="streaming")


@pytest.mark.long
def test_a_folder_that_is_read_once(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    folder = tmp_path / "pipelines"
    folder.mkdir()
    put(folder, "one", database)
    put(folder, "two", database)
    with running(folder, free_port(), "--once") as process:
        assert process.wait(240) == 0, lines(folder)
    assert all(list((tmp_path / f"out_{name}").glob("part-*")) for name in ("one", "two"))
    put(folder, "two", database, **{"database.password": "wrong"})
    with running(folder, free_port(), "--once") as process:
        assert process.wait(240) == 1


@pytest.mark.long
def test_commands_beside_a_running_folder(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    database.execute("CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    folder, port = tmp_path / "pipelines", free_port()
    folder.mkdir()
    file = put(folder, "one", database)
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**content, "sink": {"replica": {"path": "../lake"}}}), encoding="utf-8")
    asked = Asked(f"http://127.0.0.1:{port}")

    def rows(table: str = "public.orders") -> list[int]:
        try:
            return sorted(read_table(str(tmp_path / "lake"), table).column("id").to_pylist())
        except TailraceError:
            return []

    with running(folder, port):
        until(asked, one="streaming")
        asked.eventually(lambda: rows() == [1], 60, rows)
        for arguments in (["--yes"], ["--yes", "--force"]):
            said = tailrace("drop", file, *arguments, code=1).stderr
            assert "the pipeline needs what would be dropped: it is running: process" in said
        assert "the checkpoint is in use by another run: process" in tailrace("run", file, code=1).stderr
        assert "the pipeline moves its position" in tailrace("offset", file, code=1).stderr
        tailrace("check", file)
        assert "streaming" in tailrace("status", file).stdout
        tailrace("signal", file, "execute-snapshot", "-t", "public.orders")
        tailrace("retry", file)
        assert "equal" in tailrace("reconcile", file).stdout
        tailrace("add", file, "public.other")
        asked.eventually(lambda: rows("public.other") == [1], 90, lambda: conditions(asked))
        until(asked, one="streaming")
        tailrace("remove", file, "public.other")
        database.execute("INSERT INTO orders VALUES (2)")
        asked.eventually(lambda: rows() == [1, 2], 60, rows)
        until(asked, one="streaming")
        kcctl.check_reads(asked.json, "one", "PostgresConnector")
