"""The commands against real servers, as a user calls them.

Some are called in a process of their own. Others are called in this one, which takes a tenth of the time.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from tailrace.cli.demo import QUICK_START
from tailrace.cli.main import main
from tailrace.connectors.postgres.position import parse_lsn
from tailrace.errors import SourceError
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.run_state import LAST_RUN, LEASE, ended
from tests.conftest import Database

# Each test starts Spark several times, which a busy machine takes its time for.
pytestmark = pytest.mark.timeout(600)

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()"]


def tailrace(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=600, **options
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@dataclass(frozen=True)
class Said:
    """What a command printed."""

    stdout: str
    stderr: str


def here(*arguments: object, code: int = 0, env: dict[str, str] | None = None) -> Said:
    """A command in this process."""
    with (
        patch.object(sys, "argv", ["tailrace", *map(str, arguments)]),
        patch.dict(os.environ, env or {}),
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        pytest.raises(SystemExit) as ended_with,
    ):
        main()
    said = Said(out.getvalue(), err.getvalue())
    assert (ended_with.value.code or 0) == code, said
    return said


@pytest.fixture
def pipeline(database: Database, tmp_path: Path) -> Path:
    """A pipeline file for a database with two tables and some rows."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)",
        "CREATE TABLE log (line text)",
        "INSERT INTO orders SELECT n, 'item ' || n FROM generate_series(1, 5) n",
    )
    return written(tmp_path, database, {"json": {"path": "out"}})


def written(folder: Path, database: Database, sink: dict[str, Any], **more: Any) -> Path:
    config = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}"}
    content = {
        "name": "shop",
        "source": {"config": {**config, "publication.name": "shop", "table.include.list": r"public\.orders"}},
        "sink": sink,
        "checkpoint": "state",
        "spark": {"spark.master": "local[2]", **QUICK_START},
        **more,
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of all files that the sink's log names: a process that was killed leaves others."""
    logs = [log.read_text(encoding="utf-8").splitlines()[1:] for log in folder.glob("_spark_metadata/[0-9]*")]
    names = {Path(json.loads(entry)["path"]).name for log in logs for entry in log}
    lines = [line for name in sorted(names) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def log_end(database: Database) -> int:
    with database.connect() as connection:
        row = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None
    return parse_lsn(row[0])


def test_init_writes_what_check_takes(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", 'CREATE TABLE "B c" (id int)')
    server = database.server
    url = f"postgresql://{server.user}@{server.host}:{server.port}/{database.name}"
    file = tmp_path / "p.yaml"
    environment = {"PGPASSWORD": server.password, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    found = tailrace("init", url, "-o", file, "--sink", "console", "--json", env=environment).stdout
    assert json.loads(found) == {
        "file": str(file),
        "tables": ["public.B c", "public.a"],
        "ddl": False,
        "preparation": [],
    }
    assert server.password not in file.read_text(encoding="utf-8")
    findings = json.loads(tailrace("check", file, "--json", env=environment, code=3).stdout)
    assert all(finding["ok"] is not False for finding in findings)
    assert "exists already" in tailrace("init", url, "-o", file, env=environment, code=1).stderr
    tailrace("init", url, "-o", file, "--force", env=environment)


def test_init_by_a_role_that_owns_nothing(database: Database, tmp_path: Path) -> None:
    """It writes what that role can start with, and prints what an owner has to run before."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    server, file, role = database.server, tmp_path / "p.yaml", f"plain_{database.name}"
    environment = {"PGPASSWORD": "x"}
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'")
    try:
        url = f"postgresql://{role}@{server.host}:{server.port}/{database.name}"
        said = here("init", url, "-o", file, "--json", env=environment).stdout
        text = file.read_text(encoding="utf-8")
        assert "publication.autocreate.mode: disabled" in text
        assert "    table.include.list:\n    - public\\.a\n    - public\\.b\n" in text
        database.execute(*json.loads(said)["preparation"])
        findings = json.loads(here("check", file, "--json", env=environment).stdout)
        assert all(finding["ok"] for finding in findings), findings
        removed = json.loads(here("remove", file, "public.b", "--json", env=environment).stdout)
        assert removed["edit"]["written"] is True
        left = file.read_text(encoding="utf-8")
        assert "    table.include.list:\n    - public\\.a\n" in left, left
        assert "public\\.b" not in left
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_init_encrypts_if_the_url_requires_it(database: Database, tmp_path: Path) -> None:
    """The server has no encryption: a connection in the clear must not be made in its place."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    server, file = database.server, tmp_path / "p.yaml"
    url = f"postgresql://{server.user}@{server.host}:{server.port}/{database.name}"
    environment = {"PGPASSWORD": server.password}
    said = here("init", f"{url}?sslmode=require", "-o", file, env=environment, code=1).stderr
    assert "server does not support SSL" in said
    assert "database.sslmode" in said
    assert not file.exists()
    assert "is not supported" in here("init", f"{url}?options=-c", "-o", file, env=environment, code=1).stderr
    here("init", f"{url}?sslmode=disable", "-o", file, env=environment)
    assert "database.sslmode: disable" in file.read_text(encoding="utf-8")


def test_init_makes_ddl_triggers_and_drop_removes_them(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    server, file = database.server, tmp_path / "p.yaml"
    place = f"{server.host}:{server.port}/{database.name}"
    environment = {"PGPASSWORD": server.password}
    init = ("init", f"postgresql://{server.user}@{place}", "--ddl", "-o", file)
    first, again = (here(*init, env=environment).stdout for _ in range(2))
    assert "wrote" in first
    assert "left" in again
    assert all("tailrace_ddl_end" in said for said in (first, again))
    dropped = here("drop", file, "--yes", env=environment).stdout.splitlines()
    assert dropped[2:] == ["DDL triggers: dropped"]
    assert len(here("drop", file, "--yes", env=environment).stdout.splitlines()) == 2

    role = f"plain_{database.name}"
    database.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{server.password}'")
    try:
        said = here("init", f"postgresql://{role}@{place}", *init[2:], env=environment, code=1).stderr
        assert "Remedy Have a superuser run this" in said
        database.execute(said.partition("\n\n")[2])  # what is printed can be run as it is
        assert here("drop", file, "--yes", env=environment).stdout.splitlines()[2:] == ["DDL triggers: dropped"]
    finally:
        database.execute(f"DROP ROLE {role}")


def test_check_reports_every_problem_with_its_remedy(pipeline: Path) -> None:
    here("check", pipeline)
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["source"]["config"]["database.password"] = "wrong"
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    said = here("check", pipeline, code=1).stdout
    assert "problem connection" in said
    assert "Remedy set database.user and database.password" in said


def test_run_checks_before_spark_starts(database: Database, pipeline: Path) -> None:
    role = f"plain_{database.name}"
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'")
    try:
        content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
        content["source"]["config"] |= {"database.user": role, "database.password": "x"}
        pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
        said = tailrace("run", pipeline, code=1).stderr
    finally:
        database.execute(f"DROP ROLE {role}")
    assert "Error there are 2 problems:" in said
    assert "select: the snapshot may not read public.orders; remedy: GRANT USAGE ON SCHEMA" in said
    assert "publication: " in said
    assert not (pipeline.parent / "state").exists(), "Spark was not started"


def test_status_shows_whether_a_pipeline_runs_and_why_it_ended(pipeline: Path) -> None:
    state = pipeline.parent / "state"
    state.mkdir()
    ended(LocalFile(state / LAST_RUN), SourceError("there is no slot", where="slot s", remedy="make one"))
    said = here("status", pipeline, code=1).stdout
    assert "failed at " in said
    assert "slot s: there is no slot; remedy: make one (at " in said
    with subprocess.Popen([sys.executable, "-c", ""]) as other:
        other.wait()
    (state / LEASE).write_text(replace(Owner.me(), pid=other.pid).content)
    told = json.loads(here("status", pipeline, "--json", code=1).stdout)
    assert (told["run"]["state"], told["run"]["owner"]["pid"]) == ("killed", other.pid)
    (state / LEASE).write_text(Owner.me().content)
    assert "running: process" in here("status", pipeline).stdout


def test_status_shows_what_is_known_without_the_server(pipeline: Path) -> None:
    """A run waits for a server that is away: a liveness probe must not end it."""
    state = pipeline.parent / "state"
    state.mkdir()
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["source"]["config"]["database.port"] = 1
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert "cannot connect: " in here("status", pipeline, code=1).stdout
    ended(LocalFile(state / LAST_RUN), SourceError("there is no slot"))
    told = json.loads(here("status", pipeline, "--json", code=1).stdout)
    assert (told["phase"], told["current"], told["run"]["last"]["error"]) == ("not started", None, "there is no slot")
    (problem,) = told["problems"]
    assert (problem["name"], problem["ok"]) == ("connection", False)
    assert problem["remedy"].startswith("check database.hostname")
    (state / LEASE).write_text(Owner.me().content)
    said = here("status", pipeline).stdout
    assert "running: process" in said
    assert "cannot connect: " in said


def test_signal_refuses_tables_that_are_not_captured(pipeline: Path) -> None:
    said = here("signal", pipeline, "execute-snapshot", "-t", "public.order", code=1).stderr
    assert "Error public.order: no captured table matches" in said
    assert "Did you mean public.orders?" in said
    assert "is no regular expression" in here("signal", pipeline, "execute-snapshot", "-t", "(", code=1).stderr
    assert "no captured table" in here("signal", pipeline, "execute-snapshot", "-t", "public.log", code=1).stderr
    said = here("signal", pipeline, "execute-snapshot", "-t", r"public\.o.*").stdout
    assert "It is carried out when the pipeline starts: it does not run now." in said


def test_a_damaged_checkpoint_is_a_sentence(pipeline: Path) -> None:
    offsets = pipeline.parent / "state" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n", encoding="utf-8")
    (offsets.parent / "metadata").write_text('{"id":"x"}', encoding="utf-8")
    for command, name in ((tailrace, "run"), (here, "status"), (here, "check")):
        said = command(name, pipeline, code=1).stderr
        assert "offsets/0: a file of the checkpoint is cut short" in said
        assert "Remedy delete it: micro-batch 0 was not committed and is planned again" in said


def test_check_and_drop_take_a_connector_file(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    config = {**database.properties, "topic.prefix": "x", "slot.name": f"slot_{database.name}"}
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": "x", "config": config}), encoding="utf-8")
    here("check", file)
    assert "and publication" in tailrace("drop", file, code=1, input="").stdout
    file.write_text(json.dumps({"name": "x", "config": {**config, "publication.autocreate.mode": "disabled"}}))
    asked = tailrace("drop", file, code=1, input="")
    assert "publication" not in asked.stdout, "one that is kept"
    assert asked.stderr == "\nAborted!\n"
    here("drop", file, "--yes")


@pytest.mark.long
def test_the_remedies_of_a_missing_publication_work(database: Database, pipeline: Path) -> None:
    tailrace("run", pipeline, "--once")
    database.execute("DROP PUBLICATION shop", "INSERT INTO orders VALUES (6, 'x')")
    tailrace("run", pipeline, "--once", code=1)
    database.execute("CREATE PUBLICATION shop FOR TABLE orders", "INSERT INTO orders VALUES (7, 'x')")
    tailrace("run", pipeline, "--once", code=1)
    for name, code in (("check", 3), ("status", 1)):
        said = " ".join(tailrace(name, pipeline, code=code).stdout.split())
        assert 'publication "shop"' in said
        assert "run `tailrace drop`, then set snapshot.mode=when_needed" in said

    tailrace("drop", pipeline, "--yes")
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["source"]["config"]["snapshot.mode"] = "when_needed"
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    tailrace("run", pipeline, "--once")
    out = pipeline.parent / "out"
    assert [record["key"]["payload"]["id"] for record in records(out)].count(7) == 1
    tailrace("check", pipeline)

    tailrace("drop", pipeline, "--yes")
    shutil.rmtree(pipeline.parent / "state")
    assert "another `path`" in tailrace("run", pipeline, "--once", code=1).stderr
    tailrace("drop", pipeline, "--yes", "--force")
    shutil.rmtree(pipeline.parent / "state")
    content["sink"]["json"]["path"] = "anew"
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    tailrace("run", pipeline, "--once")
    assert len(records(pipeline.parent / "anew")) == 7


@pytest.mark.long
def test_run_once_status_and_drop(database: Database, pipeline: Path) -> None:
    before = json.loads(tailrace("status", pipeline, "--json").stdout)
    assert (before["phase"], before["slot"]) == ("not started", None)

    told = tailrace("run", pipeline, "--once", "--json").stdout.splitlines()
    assert json.loads(told[-1])["events"] == 5
    database.execute("UPDATE orders SET item = 'new' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    changed = log_end(database)
    tailrace("run", pipeline, "--once")
    found = records(pipeline.parent / "out")
    assert sorted(record["value"]["payload"]["op"] for record in found if record["value"]) == list("drrrrru")
    assert [record["key"]["payload"] for record in found if record["value"] is None] == [{"id": 2}]

    after = json.loads(tailrace("status", pipeline, "--json").stdout)
    assert after["phase"] == "stream"
    assert after["slot"]["active"] is False
    assert parse_lsn(after["position"]) >= changed
    # Tests beside this one write to the server as well.
    assert 0 <= after["lag_bytes"] <= log_end(database) - changed
    assert f"slot_{database.name}" in tailrace("status", pipeline).stdout

    asked = tailrace("drop", pipeline, input="n\n", code=1)
    assert "Drop slot" in asked.stdout
    assert "Nothing is dropped" in asked.stderr
    assert tailrace("drop", pipeline, "--yes").stdout.splitlines() == [
        f"slot slot_{database.name}: dropped",
        "publication shop: dropped",
    ]
    assert tailrace("drop", pipeline, "--yes").stdout.count("there is none") == 2

    assert "problem slot: the slot does not exist; changes from" in tailrace("check", pipeline, code=1).stdout
    said = tailrace("add", pipeline, "public.log", "--snapshot", "blocking", code=1).stderr
    assert "the pipeline cannot continue: the slot does not exist" in said
    assert "public.log" not in pipeline.read_text(encoding="utf-8").replace("\\", "")

    said = tailrace("run", pipeline, "--once", code=1).stderr
    assert f"slot_{database.name}" in said, "a checkpoint without its slot is an error that names it"
    assert "Error" in said
    assert "Remedy" in said
    assert len(said.splitlines()) < 12


@pytest.mark.long
def test_ctrl_c_stops_cleanly_and_the_next_run_resumes(database: Database, pipeline: Path) -> None:
    # In a session of its own, all of which gets the signal, as from a terminal.
    with subprocess.Popen(
        [*COMMAND, "run", str(pipeline), "--json"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        # A slow machine has time for a line about the first snapshot.
        told = map(json.loads, process.stdout)
        assert next(line for line in told if line["batch"] is not None)["events"] == 5
        assert "Stop the pipeline that uses it first" in tailrace("drop", pipeline, "--yes", code=1).stderr
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=120) == 130
    database.execute("INSERT INTO orders VALUES (6, 'late')")
    tailrace("run", pipeline, "--once")
    keys = [record["key"]["payload"]["id"] for record in records(pipeline.parent / "out")]
    assert sorted(keys) == [1, 2, 3, 4, 5, 6]
