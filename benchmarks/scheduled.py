"""What a scheduled run costs that reads all there is and ends: its time, and the CPU time of all its processes.

Run it as `python benchmarks/scheduled.py`. A replica of a PostgreSQL table is brought up to date again and again:
without a change (`idle`), and with 100 new rows (`small`); by `tailrace run --once`, which starts a Spark each time,
and by a client of Spark Connect over a server that stays.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.testing.postgres import EmbeddedPostgres
from tests.behaviour import connect_client
from tests.servers.connect.server import ConnectServer

STEPS = ("snapshot", "idle", "idle", "small", "small")
RUN = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run"]
TABLE = "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(9,2))"
MORE = "INSERT INTO orders SELECT n, n FROM generate_series({0} + 1, {0} + 100) n"


class Meter(threading.Thread):
    """Adds up the CPU time of processes while they run: those of some sessions, as `setsid` has them."""

    def __init__(self, *sessions: int) -> None:
        super().__init__(daemon=True)
        self._sessions, self._seen, self._ended = sessions, dict[int, float](), threading.Event()

    @property
    def seconds(self) -> float:
        """The CPU time of all processes that were seen."""
        return sum(self._seen.values())

    def run(self) -> None:
        """Look ten times a second."""
        while not self._ended.wait(0.1):
            for process in psutil.process_iter():
                try:
                    if os.getsid(process.pid) in self._sessions:
                        self._seen[process.pid] = sum(process.cpu_times()[:2])
                except (psutil.Error, ProcessLookupError):  # noqa: PERF203  # it has ended meanwhile
                    continue

    def close(self) -> None:
        """End."""
        self._ended.set()
        self.join()


def by_command(properties: dict[str, str], folder: Path) -> None:
    """Runs of `tailrace run --once`."""
    content = {"source": {"config": properties}, "sink": {"replica": {"path": "lake"}}, "checkpoint": "state"}
    file = folder / "pipeline.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")

    def run() -> float:
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*RUN, str(file), "--once"], start_new_session=True, **silent)  # type: ignore[call-overload]
        meter = Meter(process.pid)
        meter.start()
        assert process.wait() == 0
        meter.close()
        return meter.seconds

    measured("tailrace run --once", run, properties)


def by_connect(properties: dict[str, str], folder: Path) -> None:
    """Runs of a client over a server that stays."""
    with ConnectServer() as server:
        client = subprocess.Popen(
            [sys.executable, connect_client.__file__, server.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert client.stdin is not None
        assert client.stdout is not None
        given = {"options": properties, "checkpoint": str(folder / "state"), "target": str(folder / "lake")}
        meter = Meter(server.pid, client.pid)
        meter.start()

        def run() -> float:
            before = meter.seconds
            print(json.dumps({**given, "sink": "replica"}), file=client.stdin, flush=True)
            answer = json.loads(client.stdout.readline())  # type: ignore[union-attr]
            assert "error" not in answer, answer
            return meter.seconds - before

        measured("Spark Connect", run, properties)
        meter.close()
        client.communicate()


def measured(way: str, run: Callable[[], float], properties: dict[str, str]) -> None:
    """Print what each step costs."""
    for number, step in enumerate(STEPS):
        if step == "small":
            server.connect(properties["database.dbname"]).execute(MORE.format(number * 100).encode())
        begun = time.monotonic()
        cpu = run()
        print(f"{way:20} {step:9} {time.monotonic() - begun:5.1f} s {cpu:5.1f} CPU-s", flush=True)


if __name__ == "__main__":
    ways: tuple[Callable[[dict[str, str], Path], Any], ...] = (by_command, by_connect)
    with EmbeddedPostgres(18) as server:
        for number, way in enumerate(ways):
            name = f"scheduled_{number}"
            server.create_database(name)
            server.connect(name).execute(TABLE.encode())
            own = {"topic.prefix": "t", "slot.name": name, "publication.name": name}
            with tempfile.TemporaryDirectory() as folder:
                way({**server.properties(name), **own}, Path(folder))
