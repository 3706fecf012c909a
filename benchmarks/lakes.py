"""How fast changes anywhere in a large table come into the tables of each format, and how fast the result is read.

    python benchmarks/lakes.py --rows 1000000

One process, without Spark and a database: changes as the sink's tasks get them, folded, merged and maintained. A line
for each format: rows/s of the first snapshot, changes/s of commits of 20,000 changes each (one in twenty is a delete),
the CPU time of a change, the median and the longest commit, and how long reading all rows takes. Joining small files
is part of a commit: the longest one does it. At the end all have the same rows. The database's server runs on this
machine and syncs each commit to the disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import COMMIT, ChangeBatch, SnapshotRead
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.parts import parts
from tailrace.sinks.replica.roots import database_root
from tailrace.sinks.replica.table_writer import TableWriter
from tailrace.sinks.replica.target import read_table
from tailrace.sinks.replica.upkeep import Upkeep
from tailrace.testing.postgres import EmbeddedPostgres

FORMATS = ["delta", "iceberg", "postgres"]
NAME, CHANGES, DELETED = "public.items", 20_000, 20
TYPES = {"id": pa.int64(), "a": pa.string(), "b": pa.int64(), "c": pa.float64(), "d": pa.string(), "e": pa.int64()}
ITEMS = TableSchema(
    TableId("shop", "public", "items"),
    tuple(Column(name, ConnectSchema(str(kind), name != "id"), kind) for name, kind in TYPES.items()),
    ("id",),
    ("id",),
)


def images(keys: np.ndarray, value: int) -> pa.StructArray:
    """Rows of some keys."""
    ids = pa.array(keys, pa.int64())
    text = pc.binary_join_element_wise(pa.scalar("value"), pa.scalar(str(value)), ids.cast(pa.string()), " ")
    number = pa.array(np.full(len(keys), value), pa.int64())
    columns = [ids, text, number, number.cast(pa.float64()), text, ids]
    return pa.StructArray.from_arrays(columns, fields=list(ITEMS.row_type))


def changes(keys: np.ndarray, value: int, ops: np.ndarray) -> ChangeBatch:
    """Updates and deletes in one transaction, or rows of a snapshot."""
    rows, count = images(keys, value), len(keys)
    gone = pa.array(ops == "d")
    nothing = pa.nulls(count, ITEMS.row_type)
    columns = {
        "op": pa.array(ops.tolist()),
        "order": pa.array(np.arange(count)),
        "ts_us": pa.array(np.zeros(count, np.int64)),
        "before": pc.if_else(gone, rows, nothing),
        "after": pc.if_else(gone, nothing, rows),
    }
    if ops[0] == "r":
        return ChangeBatch(ITEMS, pa.RecordBatch.from_pydict(columns), SnapshotRead("first", "first", 0))
    columns[COMMIT] = pa.array(np.full(count, value))
    return ChangeBatch(ITEMS, pa.RecordBatch.from_pydict(columns))


def measured(root: str, options: dict[str, str], rows: int, commits: int) -> tuple[dict[str, object], pa.Table]:
    """The figures of a format, and its rows in the end."""
    dice, times = np.random.default_rng(1), []

    def write(number: int, *batches: ChangeBatch) -> float:
        blobs = [pa.py_buffer(batch.to_ipc()) for batch in batches]
        begun = time.perf_counter()
        batch = MicroBatch(root, "query", number, options, upkeep=Upkeep())
        writer = TableWriter(batch, NAME)
        reports = [writer.write(part) for part in parts(iter(blobs))]
        failure = batch.keep(batch.target(NAME), [report.version for report in reports])
        assert failure is None, failure
        return time.perf_counter() - begun

    step = 100_000
    first = [np.arange(start, min(start + step, rows)) for start in range(0, rows, step)]
    snapshot = write(0, *(changes(keys, 0, np.full(len(keys), "r")) for keys in first))
    begun = time.process_time()
    for number in range(1, commits + 1):
        keys = np.unique(dice.integers(0, rows, CHANGES))
        ops = np.where(np.arange(len(keys)) % DELETED == 0, "d", "u")
        times.append(write(number, changes(keys, number, ops)) / len(keys))
    cpu = time.process_time() - begun
    begun = time.perf_counter()
    found = read_table(root, NAME, options)
    return {
        "snapshot_rows_s": round(rows / snapshot),
        "changes_s": round(1 / statistics.mean(times)),
        "cpu_us_a_change": round(cpu / commits / CHANGES * 1e6, 1),
        "median_commit_s": round(statistics.median(times) * CHANGES, 2),
        "longest_commit_s": round(max(times) * CHANGES, 2),
        "read_s": round(time.perf_counter() - begun, 2),
    }, found.sort_by("id")


@contextmanager
def place(lake: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The root of an empty replica, with its options."""
    with tempfile.TemporaryDirectory() as folder:
        if lake == "delta":
            yield str(Path(folder) / "lake"), {}
        elif lake == "iceberg":
            uri = f"sqlite:///{folder}/catalog.db"
            yield "iceberg://shop", {"type": "sql", "uri": uri, "warehouse": f"file://{folder}"}
        else:
            with EmbeddedPostgres(settings={"fsync": "on", "max_wal_size": "4GB"}) as server:
                server.create_database("lake")
                yield database_root(server.url("lake"), "shop"), {"url": server.url("lake")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--format", choices=FORMATS, action="append", help="some of them; else one after the other")
    given = parser.parse_args()
    results = []
    for lake in given.format or FORMATS:
        with place(lake) as (root, options):
            figures, found = measured(root, options, given.rows, given.commits)
            print(json.dumps({"format": lake, "rows": given.rows, **figures}), flush=True)
            results.append(found)
    assert all(found.equals(results[0]) for found in results), "the formats have other rows"


if __name__ == "__main__":
    main()
