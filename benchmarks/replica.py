"""How a replica grows and what its micro-batches cost under a steady trickle of small transactions.

    python benchmarks/replica.py --minutes 9 --trigger 500ms --settings '{"maintenance": false}'

    python benchmarks/replica.py --minutes 10 --writes 100 --format iceberg

A table of 3 MB takes two of three of 15 transactions a second (`--writes`): inserts, updates and deletes of rows
anywhere in it. Four small tables take the others. Each line says what the replica is then: bytes on the disk and those
of the newest versions, files, the version of the large table, and how long the last micro-batches took.
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

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.sinks.replica.target import Target
from tailrace.testing.postgres import EmbeddedPostgres

# The tables, and how many rows each has at first.
TABLES = {"orders": 45_000, **{f"small{number}": 200 for number in range(4)}}
TABLE = "CREATE TABLE {} (id int PRIMARY KEY, customer int, status text, note text, at timestamptz DEFAULT now())"
FILL = "INSERT INTO {} SELECT n, n % 97, 'new', md5(n::text) || md5((2 * n)::text) FROM generate_series(1, {}) n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--trigger", help="that of the pipeline file; else the default of a replica")
    parser.add_argument("--writes", type=int, default=15, help="transactions a second")
    parser.add_argument("--format", choices=["delta", "iceberg"], default="delta")
    parser.add_argument("--settings", type=json.loads, default={}, help="further settings of sink.replica, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(18) as server:
        server.create_database("shop")
        with server.connect("shop") as connection:
            for table, rows in TABLES.items():
                connection.execute(TABLE.format(table).encode())
                connection.execute(FILL.format(table, rows).encode())
        lake = Path(folder) / "lake"
        lake.mkdir()
        catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{lake}"}
        place: dict[str, object] = {"path": str(lake)}
        if given.format == "iceberg":
            place = {"format": "iceberg", "namespace": "shop", "catalog": catalog}
        content = {
            "source": {"config": {**server.properties("shop"), "topic.prefix": "shop"}},
            "sink": {"replica": {**place, **given.settings}},
            "checkpoint": "state",
            **({"trigger": given.trigger} if given.trigger else {}),
            "spark": {"spark.master": "local[2]"},
        }
        definition = from_content(content, base=Path(folder), where="benchmark")
        target = definition.sink.replica
        assert target is not None
        places = [Target(target.root, f"public.{table}", target.options) for table in TABLES]
        running = Pipeline(definition).start()
        over = threading.Event()
        writer = threading.Thread(target=write, args=(server, over, given.writes))
        try:
            while any(place.open() is None for place in places):
                running.await_(1)
            writer.start()
            follow(running, lake, places, given.minutes * 60)
        finally:
            over.set()
            if writer.is_alive():
                writer.join()
            running.stop()


def follow(running: object, lake: Path, places: list[Target], seconds: float) -> None:
    """A line every half minute."""
    start, durations, ratios = time.monotonic(), [], []
    last, events, due = None, 0, 30.0
    while time.monotonic() - start < seconds + 1:
        running.await_(0.25)  # type: ignore[attr-defined]
        progress = running.progress()  # type: ignore[attr-defined]
        if progress.batch != last and progress.events != events:
            last, events = progress.batch, progress.events
            durations.append(progress.batch_seconds)
            ratios.append(size(lake) / sum(map(live_bytes, places)))
        if time.monotonic() - start >= due:
            due += 30
            line = {"seconds": round(time.monotonic() - start), **state(lake, places[0], durations), **spread(ratios)}
            print(json.dumps(line), flush=True)
            durations.clear()
            ratios.clear()


def spread(ratios: list[float]) -> dict[str, float]:
    """How often the replica takes the space of its newest version, after each micro-batch of half a minute."""
    if not ratios:
        return {}
    return {"times_live": round(statistics.mean(ratios), 2), "most_times_live": round(max(ratios), 2)}


def size(folder: Path) -> int:
    """The bytes of a folder. Its files may vanish meanwhile."""
    return sum(map(size_of, folder.rglob("*")))


def size_of(file: Path) -> int:
    """The bytes of a file; 0 for a folder, and for one that is gone."""
    with contextlib.suppress(FileNotFoundError):
        return file.stat().st_size if file.is_file() else 0
    return 0


def live_bytes(place: Target) -> int:
    table = place.open()
    return 0 if table is None else sum(table.maintenance().live.values())


def state(lake: Path, place: Target, durations: list[float]) -> dict[str, object]:
    """What the replica is now, and its large table."""
    files = [file for file in lake.rglob("*") if file.is_file()]
    logs = [file for file in files if file.parent.name in ("_delta_log", "metadata")]
    begun = time.monotonic()
    table = place.open()
    assert table is not None
    rows = table.scan().read_all().num_rows
    taken = time.monotonic() - begun
    return {
        "MB": round(size(lake) / 1e6, 1),
        "small_MB": round(sum(size(folder) for folder in lake.rglob("public.small*")) / 1e6, 2),
        "live_MB": round(live_bytes(place) / 1e6, 2),
        "files": len(files),
        "log_files": len(logs),
        "log_MB": round(sum(map(size_of, logs)) / 1e6, 2),
        "active_files": len(table.maintenance().live),
        "version": table.version,
        "retention_s": table.maintenance().kept_seconds,
        "rows": rows,
        "read_s": round(taken, 3),
        "batches": len(durations),
        "batch_s": round(statistics.mean(durations), 3) if durations else None,
        "longest_batch_s": round(max(durations), 3) if durations else None,
    }


def write(server: EmbeddedPostgres, over: threading.Event, writes: int) -> None:
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
            due += 1 / writes
            over.wait(max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
