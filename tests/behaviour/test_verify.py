"""`tailrace verify` against all four databases: what it says, that it drops what it made, and what its report has."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.connectors import registry
from tailrace.connectors.ports import ConnectorPackage
from tailrace.connectors.probe import Bench
from tailrace.verify import run as running
from tailrace.verify.clean_up import clean_up
from tailrace.verify.report import content, page
from tailrace.verify.run import VerifyRun
from tailrace.verify.runner import Job, Result, ask_all
from tailrace.verify.shared_probes import shared_probes
from tests.behaviour.verify_places import (
    COMMAND,
    PLANTED,
    VALUE,
    Done,
    Place,
    PostgresPlace,
    SqlServerPlace,
    placed,
    verified,
)
from tests.conftest import Database
from tests.servers.golden import differences, load, reports

pytestmark = pytest.mark.timeout(600)


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("sqlserver", "mongodb", "db2")]


@pytest.fixture(scope="module", params=["postgres", *LONG])
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """The command, run once on each database."""
    with placed(request.param, request) as place:
        yield verified(place, tmp_path_factory.mktemp("verify"))


def test_a_server_says_what_is_expected(done: Done) -> None:
    wrong = {name for name, outcome in done.outcomes.items() if outcome in ("differs", "error")}
    assert wrong <= done.place.deviating, done.output
    assert done.code == (1 if wrong else 0)
    assert len([outcome for outcome in done.outcomes.values() if outcome == "as expected"]) > 10


def test_everything_is_dropped_afterwards(done: Done) -> None:
    assert done.report["left"] == []
    assert done.place.left() == []


def test_a_report_has_no_secret_no_name_and_no_address(done: Done) -> None:
    # Of the report's own sentences `admin` is no name.
    for text in (json.dumps(done.report, ensure_ascii=False), done.page):
        found = [
            word for word in (*done.place.words, PLANTED, VALUE) if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        ]
        assert found == []
    secret = next(iter(done.place.environment.values()))
    assert secret not in done.output


def test_a_page_shows_what_is_expected_what_is_found_and_what_it_means(done: Done) -> None:
    for entry in done.report["probes"]:
        assert f"### {entry['name']}" in done.page
        assert entry["question"] in done.page
        assert entry["means"]
    assert "| | expected | found |" in done.page


def test_a_stand_in_says_what_real_servers_said(done: Done) -> None:
    """For PostgreSQL and MongoDB: a server says what one of its kind said before."""
    told = [line for path in reports(done.place.name) for line in differences(load(path), done.report)]
    allowed = done.place.deviating
    assert [line for line in told if line.partition(":")[0] not in allowed] == []


@pytest.mark.parametrize("name", ["postgres", *LONG])
def test_nothing_is_written_with_read_only(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with placed(name, request) as place:
        done = verified(place, tmp_path, "--read-only")
        assert place.left() == []
    assert set(done.outcomes.values()) <= {"as expected", "noted", "skipped", "differs"}
    assert done.outcomes["rows.events"] == "skipped"
    assert done.outcomes["identity.server"] in ("as expected", "noted")
    assert done.report["read_only"]


@pytest.mark.long
def test_an_interrupted_run_drops_everything(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    interrupted("postgres", signal.SIGINT, request, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["sqlserver", "mongodb", "db2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_databases_are_left_clean_by_an_interruption(
    name: str, number: signal.Signals, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    interrupted(name, number, request, tmp_path)


def interrupted(name: str, number: signal.Signals, request: pytest.FixtureRequest, folder: Path) -> None:
    """Interrupt a run when rows are written, and look at what is left."""
    out = folder / "report.json"
    with placed(name, request) as place:
        process = started(place, out)
        read_until(process, "rows.events")
        time.sleep(0.5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 130, errors
        assert "Traceback" not in errors
        assert place.left() == []
        assert load(out)["is_interrupted"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["postgres", "sqlserver", "mongodb", "db2"])
def test_what_a_killed_run_has_left_is_dropped_by_a_command(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with placed(name, request) as place:
        process = started(place, tmp_path / "report.json")
        read_until(process, "rows.events")
        process.kill()
        process.communicate(timeout=300)
        assert place.left()
        arguments = [*COMMAND, place.url]
        environment = {**os.environ, **place.environment}
        again = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert again.returncode == 2
        assert "--drop" in again.stderr
        subprocess.run([*arguments, "--drop"], capture_output=True, text=True, check=True, env=environment)
        assert place.left() == []


def started(place: Place, out: Path) -> subprocess.Popen[str]:
    """The command in the background."""
    return subprocess.Popen(
        [*COMMAND, place.url, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **place.environment},
    )


def read_until(process: subprocess.Popen[str], sign: str) -> None:
    """Read what a process prints, up to a line that has the sign."""
    assert process.stdout is not None
    assert any(sign in line for line in process.stdout)


def test_a_schema_of_somebody_else_is_left_alone(database: Database, tmp_path: Path) -> None:
    place = PostgresPlace(database)
    database.execute("CREATE SCHEMA tailrace_verify", "CREATE TABLE tailrace_verify.vrows (mine int)")
    arguments = [*COMMAND, place.url, "--out", str(tmp_path / "report.json")]
    environment = {**os.environ, **place.environment}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert not (tmp_path / "report.json").exists()
    with database.connect() as connection:
        assert connection.execute("SELECT count(mine) FROM tailrace_verify.vrows").fetchone() == (0,)


def bench_of(database: Database) -> tuple[ConnectorPackage, Bench]:
    """The bench of a database."""
    package = registry.named("postgres").load()
    return package, package.bench(package.resolve({**database.properties, "topic.prefix": "verify"}), "tailrace_verify")


def asked(package: ConnectorPackage, bench: Bench, *names: str) -> list[Result]:
    """The results of some probes, which are asked in this process."""
    every = {probe.name for probe in (*shared_probes(bench, package), *bench.probes())}
    told: list[Result] = []
    ask_all(bench, package, Job(done=frozenset(every - {*names})), lambda _: None, told.append)
    return told


def test_what_cannot_be_dropped_is_told_with_its_command(database: Database) -> None:
    """A view of somebody's on a table of the command keeps that table."""
    package, bench = bench_of(database)
    asked(package, bench, "rights.role")
    database.execute("CREATE VIEW keeper AS SELECT * FROM tailrace_verify.vquiet")
    commands = ['DROP TABLE IF EXISTS "tailrace_verify"."vquiet"', 'DROP SCHEMA IF EXISTS "tailrace_verify"']
    left = clean_up(bench)
    assert left == commands
    report = content(VerifyRun(left=left), bench, "PostgreSQL", read_only=False)
    assert all(f"- `{command}`" in page(report) for command in commands)
    database.execute("DROP VIEW keeper")
    assert clean_up(bench) == []
    assert PostgresPlace(database).left() == []


def test_a_server_that_deviates_is_told(database: Database) -> None:
    """Here a trigger changes what is written."""
    database.execute(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v = NEW.v + 1; RETURN NEW; END $$",
        "CREATE FUNCTION attach() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF to_regclass('tailrace_verify.vrows') IS NOT NULL THEN CREATE OR REPLACE TRIGGER spoil BEFORE INSERT "
        "ON tailrace_verify.vrows FOR EACH ROW EXECUTE FUNCTION public.spoil(); END IF; END $$",
        "CREATE EVENT TRIGGER attach ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION attach()",
    )
    package, bench = bench_of(database)
    try:
        results = asked(package, bench, "rows.events", "capture.messages")
    finally:
        assert clean_up(bench) == []
    (result,) = [each for each in results if each.outcome in ("differs", "error")]
    assert result.asked.name == "rows.events"
    assert result.found["events"][0] == ["r", 1, 11, "a"]
    assert result.means == ("Events would be missing or wrong in a pipeline of this server: please send the report.",)
    report = content(VerifyRun(list(results)), bench, "PostgreSQL", read_only=False)
    assert [line.partition(":")[0] for line in differences(load(reports("postgres")[0]), report)] == ["rows.events"]
    assert "**differs**" in page(report)


@pytest.mark.long
def test_a_database_without_capture_is_told_how_to_get_it(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with placed("sqlserver", request) as place:
        assert isinstance(place, SqlServerPlace)
        place.run("EXEC sys.sp_cdc_disable_db")
        done = verified(place, tmp_path)
    assert done.code == 1
    entry = next(each for each in done.report["probes"] if each["name"] == "rights.prepare")
    assert "EXEC sys.sp_cdc_enable_db" in entry["means"][0]
    assert done.outcomes["rows.events"] == "skipped"


def test_a_wrong_password_is_an_error_of_usage(database: Database, tmp_path: Path) -> None:
    place = PostgresPlace(database)
    url = place.url.replace("@", ":wrong-5d21@")
    arguments = [*COMMAND, url, "--out", str(tmp_path / "report.json")]
    environment = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "Remedy" in done.stderr
    assert "wrong-5d21" not in done.stdout + done.stderr


def test_a_probe_that_ends_its_process_ends_no_other(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a driver's fault does: what follows is asked by another process."""
    fatal = (
        "import os, signal; from tailrace.verify import runner; from tailrace.connectors.probe import Probe; "
        "fault = lambda: os.kill(os.getpid(), signal.SIGSEGV); "
        "runner.shared_probes = lambda *_: [Probe('rows.fatal', 'question', 'meaning', fault)]; "
        "from tailrace.verify.worker import main; main()"
    )
    monkeypatch.setattr(running, "COMMAND", (sys.executable, "-c", fatal))
    _, bench = bench_of(database)
    told: list[Result] = []
    done = running.run(registry.named("postgres"), bench, read_only=False, tell=told.append)
    outcomes = {each.asked.name: each.outcome for each in told}
    assert outcomes["rows.fatal"] == "error"
    assert outcomes["blocking.deadlock"] == "as expected"
    assert not done.is_as_expected
    assert PostgresPlace(database).left() == []
