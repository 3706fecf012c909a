"""What continuous reconciliation costs: CPU time of pipeline and server under a trickle, and how long a backlog takes.

`python benchmarks/continuous.py`; README.md says how it measures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contestants
import measure
import workload
import yaml

from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.verified import Verified, stored
from tailrace.testing.postgres import EmbeddedPostgres

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run", "--json"]
KINDS: dict[str, dict[str, Any]] = {
    "not compared": {},
    "rate 2000": {"reconcile": {"continuous": True, "rate": 2000}},
    "as fast as it may": {"reconcile": {"continuous": True, "rate": 10_000_000}},
}
COLUMNS = (
    "id bigint PRIMARY KEY, customer bigint, amount numeric(12,2), day date, at timestamptz, a text, b text, c int"
)
VALUES = "n, n % 1000, n / 7.0, '2024-01-01', now(), 'text of row ' || n, repeat('x', 20), n % 7"
PATIENCE_SECONDS = 600.0


def main() -> None:
    """The whole benchmark, a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--seconds", type=float, default=60, help="how long the trickle lasts")
    parser.add_argument("--backlog", type=int, default=300_000, help="updates of the backlog")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rows:,} rows")
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server:
        for number, kind in enumerate(KINDS):
            with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
                print(
                    kind, *measured(server, Path(folder), f"bench{number}", KINDS[kind], options), sep="; ", flush=True
                )


def measured(
    server: EmbeddedPostgres, folder: Path, name: str, more: dict[str, Any], options: argparse.Namespace
) -> list[str]:
    """The figures of one run, as texts."""
    server.create_database(name)
    with server.connect(name) as connection:
        connection.execute(f"CREATE TABLE items ({COLUMNS})".encode())
        connection.execute(f"INSERT INTO items SELECT {VALUES} FROM generate_series(1, {options.rows}) n".encode())
        connection.execute("VACUUM ANALYZE items")
        config = {**server.properties(name), "topic.prefix": name, "slot.name": name, "publication.name": name}
        content = {"source": {"config": config}, "sink": {"replica": {"path": "lake"}}, "checkpoint": "state", **more}
        file = folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*COMMAND, str(file)], stdout=log, stderr=log)
        try:
            state = str(folder / "state")
            await_(lambda: _is_there(connection, state))
            with measure.Tree(process.pid) as tree, measure.Tree(workload.pid(server)) as there:
                before, verified, begun = (tree.cpu(), there.cpu()), _verified(state), time.monotonic()
                while time.monotonic() < begun + options.seconds:
                    connection.execute(
                        "UPDATE items SET customer = customer + 1 WHERE id % 20000 = (random() * 19999)::int"
                    )
                    time.sleep(0.1)
                wall = time.monotonic() - begun
                own, others = (now - was for now, was in zip((tree.cpu(), there.cpu()), before, strict=True))
                rows = _verified(state) - verified
            connection.execute(b"UPDATE items SET c = c + 1 WHERE id <= %s", [options.backlog])
            begun = time.monotonic()
            await_(lambda: _is_there(connection, state))
            taken = time.monotonic() - begun
        finally:
            process.terminate()
            process.wait()
    return [
        f"{own / wall:.2f} CPU s a second of the pipeline, {others / wall:.2f} of the server",
        f"{rows / wall:,.0f} rows a second compared",
        f"the backlog took {taken:.1f} s ({options.backlog / taken:,.0f} changes a second)",
    ]


def await_(is_so: Callable[[], bool]) -> None:
    """Wait until something is so. Ends the benchmark if it does not come."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit("the pipeline does not come to the end of the log")
        time.sleep(0.1)


def _is_there(connection: Any, state: str) -> bool:
    """Whether all that the server has is committed."""
    from tailrace.connectors.postgres.position import parse_lsn

    committed = position(state).committed
    if committed is None or committed.offset.get("phase") != "stream" or not committed.offset["position"]:
        return False
    (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    return parse_lsn(committed.offset["position"]) >= parse_lsn(end)


def _verified(state: str) -> int:
    """How many rows the passes so far have compared, of a pass that is not over."""
    return next(iter(stored(state).values()), Verified()).rows


if __name__ == "__main__":
    main()
