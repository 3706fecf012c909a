"""The first steps of README and of the PostgreSQL page, run as written by a user who has just prepared a server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from tailrace.errors import SinkError
from tailrace.sinks.replica.sink import read_table
from tailrace.testing.process import free_port
from tests.conftest import Database
from tests.unit.test_docs import blocks


def shown(marker: str) -> str:
    """The block that is marked so."""
    (block,) = [block for block in blocks() if block.marker == marker]
    return block.text


def ran(script: str, folder: Path, password: str) -> str:
    """What a script prints that runs in a folder and a process of its own, with a Java that starts sooner."""
    quick = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in quick.items()))
    environment = {**os.environ, "PGPASSWORD": password, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["SPARK_CONF_DIR"] = str(folder)
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
        )
        if "failed to connect back" not in done.stderr:  # a busy machine took longer than Spark waits (10 s)
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_five_minutes(database: Database, tmp_path: Path) -> None:
    role = f"cdc_{database.name}"
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, item text)",
        "CREATE TABLE customers (id bigint PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 'tea'), (2, 'salt')",
    )
    statements = re.sub(r"\bcdc\b", role, shown("server")).split(";\n")
    database.execute(*filter(str.strip, statements))
    script = shown("source")
    for there, here in (
        ('"localhost"', repr(database.server.host)),
        ('"5432"', repr(str(database.server.port))),
        ('"cdc"', repr(role)),
        ('dbname", "shop"', f'dbname", {database.name!r}'),
        ('"shop_events"', repr(f"slot_{database.name}")),
    ):
        assert script.count(there) == 1
        script = script.replace(there, here)
    try:
        assert "shop.public.orders" in ran(script, tmp_path, "change me")
        database.execute("UPDATE orders SET item = 'rice' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
        ran(script, tmp_path, "change me")
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    events = pq.read_table(tmp_path / "events").to_pylist()
    found = sorted((event["op"], event["key"], event["after"]) for event in events)
    assert found == [
        ("d", '{"id":2}', None),
        ("r", '{"id":1}', '{"id":1,"item":"tea"}'),
        ("r", '{"id":2}', '{"id":2,"item":"salt"}'),
        ("u", '{"id":1}', '{"id":1,"item":"rice"}'),
    ]


class Shell:
    """Runs commands of the README in a folder, for a database of its own in place of the one that they name."""

    def __init__(self, database: Database, folder: Path) -> None:
        server, self._folder = database.properties, folder
        place = "{database.user}@{database.hostname}:{database.port}/{database.dbname}"
        for name, value in server.items():
            place = place.replace(f"{{{name}}}", quote(value))
        self._other = {
            "cdc@localhost:5432/shop": place,
            "9404": str(free_port()),
        }
        self._environment = {
            **os.environ,
            "PGPASSWORD": server.get("database.password", ""),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "COLUMNS": "200",
        }

    def _command(self, line: str) -> list[str]:
        for there, here in self._other.items():
            line = line.replace(there, here)
        program, *arguments = shlex.split(line, comments=True)
        assert program == "tailrace"
        return [sys.executable, "-c", "from tailrace.cli.main import main; main()", *arguments]

    def run(self, line: str) -> str:
        """What a command prints that ends well."""
        done = subprocess.run(
            self._command(line),
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=240,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, line: str) -> Iterator[Callable[[Callable[[], bool]], None]]:
        """A command that runs until the block ends; gives what waits for a condition while it does."""
        log = self._folder / "run.log"
        with log.open("ab") as out:
            command = self._command(line)
            process = subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=out, stderr=out)

        def until(is_so: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 240
            while not is_so():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.5)

        try:
            yield until
            process.terminate()
            process.wait(timeout=120)
        finally:
            process.kill()
            process.wait()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_commands_of_a_pipeline(database: Database, tmp_path: Path) -> None:
    """In the order of the README; a table that was made after `init` is added."""
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, item text)", "INSERT INTO orders VALUES (1, 'tea')")
    lines = [line for line in shown("pipeline").splitlines() if line.startswith("tailrace ")]
    init, verify, check, run, with_console, status, add, reconcile = lines
    assert verify.startswith("tailrace verify "), "which tests/behaviour/test_verify.py runs"
    shell = Shell(database, tmp_path)

    def ids(table: str) -> list[int]:
        try:
            return sorted(read_table(str(tmp_path / "replica"), f"public.{table}").column("id").to_pylist())
        except SinkError:  # there is no table yet
            return []

    shell.run(init)
    shell.run(check)
    with shell.running(run) as until:
        until(lambda: ids("orders") == [1])
    database.execute(
        "INSERT INTO orders VALUES (2, 'salt')",
        "CREATE TABLE customers (id bigint PRIMARY KEY)",
        "INSERT INTO customers VALUES (7)",
    )
    with shell.running(with_console) as until:
        until(lambda: ids("orders") == [1, 2])
        shell.run(status)
        shell.run(add)
        until(lambda: ids("customers") == [7])
        shell.run(reconcile)
