"""How a replica grows and what its micro-batches cost under a steady trickle of small transactions.

    python benchmarks/replica.py --minutes 9 --trigger 500ms --settings '{"maintenance": false}'

A table of 3 MB takes two of three of 15 transactions a second: inserts, updates and deletes of rows anywhere in it.
Four small tables take the others. Each line says what the replica is then: bytes on the disk and those of the newest
versions, files, commits of the large table, and how long the last micro-batches took.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.testing.postgres import EmbeddedPostgres

WRITES_A_SECOND = 15
# The tables, and how many rows each has at first.
TABLES = {"orders": 45_000, **{f"small{number}": 200 for number in range(4)}}
TABLE = "CREATE TABLE {} (id int PRIMARY KEY, customer int, status text, note text, at timestamptz DEFAULT now())"
FILL = "INSERT INTO {} SELECT n, n % 97, 'new', md5(n::text) || md5((2 * n)::text) FROM generate_series(1, {}) n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--trigger", help="that of the pipeline file; else the default of a replica")
    parser.add_argument("--settings", type=json.loads, default={}, help="further settings of sink.replica, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(18) as server:
        server.create_database("shop")
        with server.connect("shop") as connection:
            for table, rows in TABLES.items():
                connection.execute(TABLE.format(table).encode())
                connection.execute(FILL.format(table, rows).encode())
        content = {
            "source": {"config": {**server.properties("shop"), "topic.prefix": "shop"}},
            "sink": {"replica": {"path": "lake", **given.settings}},
            "checkpoint": "state",
            **({"trigger": given.trigger} if given.trigger else {}),
            "spark": {"spark.master": "local[2]"},
        }
        running = Pipeline(from_content(content, base=Path(folder), where="benchmark")).start()
        over = threading.Event()
        writer = threading.Thread(target=write, args=(server, over))
        try:
            lake = Path(folder) / "lake"
            while not all((lake / f"public.{table}" / "_delta_log").exists() for table in TABLES):
                running.await_(1)
            writer.start()
            follow(running, lake, given.minutes * 60)
        finally:
            over.set()
            if writer.is_alive():
                writer.join()
            running.stop()


def follow(running: object, lake: Path, seconds: float) -> None:
    """A line every half minute."""
    start, durations, ratios = time.monotonic(), [], []
    last, events, due = None, 0, 30.0
    while time.monotonic() - start < seconds + 1:
        running.await_(0.25)  # type: ignore[attr-defined]
        progress = running.progress()  # type: ignore[attr-defined]
        if progress.batch != last and progress.events != events:
            last, events = progress.batch, progress.events
            durations.append(progress.batch_seconds)
            ratios.append(times_live(lake))
        if time.monotonic() - start >= due:
            due += 30
            line = {"seconds": round(time.monotonic() - start), **state(lake, durations), **spread(ratios)}
            print(json.dumps(line), flush=True)
            durations.clear()
            ratios.clear()


def spread(ratios: list[float]) -> dict[str, float]:
    """How often the replica takes the space of its newest version, after each micro-batch of half a minute."""
    if not ratios:
        return {}
    return {"times_live": round(statistics.mean(ratios), 2), "most_times_live": round(max(ratios), 2)}


def times_live(lake: Path) -> float:
    on_disk, live = size(lake), sum(live_bytes(DeltaTable(lake / f"public.{table}")) for table in TABLES)
    return on_disk / live


def size(folder: Path) -> int:
    """The bytes of a folder. Its files may vanish meanwhile."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def live_bytes(table: DeltaTable) -> int:
    return sum(pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist())


def state(lake: Path, durations: list[float]) -> dict[str, object]:
    """What the replica is now, and its large table."""
    place = lake / "public.orders"
    files = [file for file in lake.rglob("*") if file.is_file()]
    begun = time.monotonic()
    table = DeltaTable(place)
    rows = table.count()
    return {
        "MB": round(size(lake) / 1e6, 1),
        "small_MB": round(sum(size(folder) for folder in lake.glob("public.small*")) / 1e6, 2),
        "live_MB": round(live_bytes(table) / 1e6, 2),
        "files": len(files),
        "log_files": sum(file.parent.name == "_delta_log" for file in files),
        "log_MB": round(sum(size(folder) for folder in lake.glob("*/_delta_log")) / 1e6, 2),
        "active_files": len(table.file_uris()),
        "version": table.version(),
        "retention": table.metadata().configuration.get("delta.deletedFileRetentionDuration"),
        "rows": rows,
        "open_and_count_s": round(time.monotonic() - begun, 3),
        "batches": len(durations),
        "batch_s": round(statistics.mean(durations), 3) if durations else None,
        "longest_batch_s": round(max(durations), 3) if durations else None,
    }


def write(server: EmbeddedPostgres, over: threading.Event) -> None:
    """Small transactions at an even pace."""
    draw, fresh, due = random.Random(1), dict(TABLES), time.monotonic()
    with server.connect("shop") as connection:
        while not over.is_set():
            table = "orders" if draw.random() < 2 / 3 else draw.choice(list(TABLES)[1:])
            kind = draw.random()
            if kind < 0.4:
                fresh[table] += 1
                connection.execute(f"INSERT INTO {table} VALUES (%s, 1, 'new', md5('x'))".encode(), [fresh[table]])
            elif kind < 0.9:
                key = draw.randint(1, fresh[table])
                connection.execute(f"UPDATE {table} SET status = 'paid' WHERE id = %s".encode(), [key])
            else:
                connection.execute(f"DELETE FROM {table} WHERE id = %s".encode(), [draw.randint(1, fresh[table])])
            due += 1 / WRITES_A_SECOND
            over.wait(max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
