"""How a replica grows and what its micro-batches cost under a steady trickle of small transactions.

    python benchmarks/replica.py --minutes 9 --trigger 500ms --settings '{"maintenance": false}'

A table of 20,000 rows takes inserts, updates and deletes, 15 transactions a second. Each line says what the replica is
then: bytes and files on the disk, files of the newest version, commits, and how long the last micro-batches took.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from deltalake import DeltaTable

from tailrace.pipeline.definition import from_content
from tailrace.pipeline.runner import Pipeline
from tailrace.testing.postgres import EmbeddedPostgres

ROWS, WRITES_A_SECOND = 20_000, 15
TABLE = "CREATE TABLE orders (id int PRIMARY KEY, customer int, status text, note text, at timestamptz DEFAULT now())"
FILL = (
    f"INSERT INTO orders SELECT n, n % 97, 'new', md5(n::text) || md5((2 * n)::text) FROM generate_series(1, {ROWS}) n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--trigger", help="that of the pipeline file; else the default of a replica")
    parser.add_argument("--settings", type=json.loads, default={}, help="further settings of sink.replica, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedPostgres(18) as server:
        server.create_database("shop")
        with server.connect("shop") as connection:
            connection.execute(TABLE.encode())
            connection.execute(FILL.encode())
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
            place = Path(folder) / "lake" / "public.orders"
            while not (place / "_delta_log").exists():
                running.await_(1)
            writer.start()
            follow(running, place, given.minutes * 60)
        finally:
            over.set()
            if writer.is_alive():
                writer.join()
            running.stop()


def follow(running: object, place: Path, seconds: float) -> None:
    """A line every half minute."""
    start, durations = time.monotonic(), []
    last, due = None, 30.0
    while time.monotonic() - start < seconds + 1:
        running.await_(0.25)  # type: ignore[attr-defined]
        progress = running.progress()  # type: ignore[attr-defined]
        if progress.batch != last and progress.events_per_second:
            last = progress.batch
            durations.append(progress.batch_seconds)
        if time.monotonic() - start >= due:
            due += 30
            print(json.dumps({"seconds": round(time.monotonic() - start), **state(place, durations)}), flush=True)
            durations.clear()


def state(place: Path, durations: list[float]) -> dict[str, object]:
    """What the replica is now."""
    files = [file for file in place.rglob("*") if file.is_file()]
    begun = time.monotonic()
    table = DeltaTable(place)
    rows = table.count()
    return {
        "MB": round(sum(file.stat().st_size for file in files) / 1e6, 1),
        "files": len(files),
        "log_files": sum(file.parent.name == "_delta_log" for file in files),
        "active_files": len(table.file_uris()),
        "version": table.version(),
        "rows": rows,
        "open_and_count_s": round(time.monotonic() - begun, 3),
        "batches": len(durations),
        "batch_s": round(statistics.mean(durations), 3) if durations else None,
        "longest_batch_s": round(max(durations), 3) if durations else None,
    }


def write(server: EmbeddedPostgres, over: threading.Event) -> None:
    """Small transactions at an even pace."""
    draw, fresh, due = random.Random(1), ROWS, time.monotonic()
    with server.connect("shop") as connection:
        while not over.is_set():
            kind = draw.random()
            if kind < 0.4:
                fresh += 1
                connection.execute("INSERT INTO orders VALUES (%s, 1, 'new', md5('x'))", [fresh])
            elif kind < 0.9:
                connection.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [draw.randint(1, fresh)])
            else:
                connection.execute("DELETE FROM orders WHERE id = %s", [draw.randint(1, fresh)])
            due += 1 / WRITES_A_SECOND
            over.wait(max(due - time.monotonic(), 0))


if __name__ == "__main__":
    main()
