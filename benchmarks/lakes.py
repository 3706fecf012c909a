"""How fast changes anywhere in a large table come into the tables of each format, and how fast the result is read.

    python benchmarks/lakes.py --rows 1000000
    python benchmarks/lakes.py --rows 10000000 --keys hot --commits 10 --format delta --format iceberg

One process, without Spark and a database: changes as the sink's tasks get them, folded, merged and maintained. A line
for each format: rows/s of the first snapshot, changes/s of commits of 20,000 changes each (one in twenty is a delete),
the CPU time of a change, the median and the longest commit, and how long reading all rows takes, as the commits left
them and once all files are joined; with the files and bytes of both. Joining small files is part of a commit: the
longest one does it. `--keys hot`: nine of ten changes are of a hundredth of the rows. At the end all have the same
rows, by sums over their columns. The database's server runs on this machine and syncs each commit to the disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
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
from tailrace.sinks.replica.retention import FILE_BYTES
from tailrace.sinks.replica.roots import database_root
from tailrace.sinks.replica.table import Table
from tailrace.sinks.replica.table_writer import TableWriter
from tailrace.sinks.replica.target import Target
from tailrace.sinks.replica.upkeep import Upkeep
from tailrace.sinks.replica.writing import repeated
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


def drawn(dice: np.random.Generator, keys: str, rows: int) -> np.ndarray:
    """The keys of a commit's changes, each once."""
    if keys == "uniform":
        return np.unique(dice.integers(0, rows, CHANGES))
    hot = dice.integers(0, max(rows // 100, 1), CHANGES * 9 // 10) * 100
    return np.unique(np.concatenate([hot, dice.integers(0, rows, CHANGES // 10)]))


def sums(table: Table) -> tuple[int, ...]:
    """What two tables have in common that have the same rows: how many, and sums over their columns."""
    found = np.zeros(5, np.uint64)
    for batch in table.scan():
        ids, values = (batch.column(name).to_numpy() for name in ("id", "b"))
        lengths = pc.sum(pc.binary_length(batch.column("a").cast(pa.string()))).as_py() or 0
        some = [len(batch), ids.sum(), values.sum(), (ids * values % 1_000_003).sum(), lengths]
        found += np.array(some, np.uint64)
    return tuple(int(each) for each in found)


def read(place: Target) -> tuple[float, tuple[int, ...]]:
    """How long reading all rows takes, and their sums."""
    table = place.open()
    assert table is not None
    begun = time.perf_counter()
    found = sums(table)
    return time.perf_counter() - begun, found


def measured(
    root: str, options: dict[str, str], rows: int, commits: int, keys: str
) -> tuple[dict[str, object], tuple[int, ...]]:
    """The figures of a format, and the sums of its rows in the end."""
    dice, times = np.random.default_rng(1), []

    def write(number: int, batches: Iterable[ChangeBatch]) -> float:
        begun = time.perf_counter()
        batch = MicroBatch(root, "query", number, options, upkeep=Upkeep())
        writer = TableWriter(batch, NAME)
        blobs = (pa.py_buffer(batch.to_ipc()) for batch in batches)
        reports = [writer.write(part) for part in parts(blobs)]
        failure = batch.keep(batch.target(NAME), [report.version for report in reports])
        assert failure is None, failure
        return time.perf_counter() - begun

    step = 100_000
    first = (np.arange(start, min(start + step, rows)) for start in range(0, rows, step))
    snapshot = write(0, (changes(some, 0, np.full(len(some), "r")) for some in first))
    begun, count = time.process_time(), 0
    for number in range(1, commits + 1):
        some = drawn(dice, keys, rows)
        ops = np.where(np.arange(len(some)) % DELETED == 0, "d", "u")
        times.append(write(number, [changes(some, number, ops)]) / len(some))
        count += len(some)
    cpu = time.process_time() - begun
    place = Target(root, NAME, options)
    seconds, found = read(place)
    left = size(place)
    join(MicroBatch(root, "query", commits, options))
    joined, again = read(place)
    assert again == found
    return {
        "snapshot_rows_s": round(rows / snapshot),
        "changes_s": round(1 / statistics.mean(times)),
        "cpu_us_a_change": round(cpu / count * 1e6, 1),
        "median_commit_s": round(statistics.median(times) * CHANGES, 2),
        "longest_commit_s": round(max(times) * CHANGES, 2),
        "read_s": round(seconds, 2),
        "files": left[0],
        "mb": left[1],
        "read_joined_s": round(joined, 2),
        "files_joined": size(place)[0],
        "mb_joined": size(place)[1],
    }, found


def size(place: Target) -> tuple[int, int]:
    """The files of the newest version, and their megabytes."""
    table = place.open()
    assert table is not None
    live = table.maintenance().live
    return len(live), round(sum(live.values()) / 1e6)


def join(batch: MicroBatch) -> None:
    """Join all files that can be joined; a database has none."""
    table = batch.target(NAME).open()
    assert table is not None
    if table.maintenance().live:
        table.maintenance().join(FILE_BYTES, repeated(table, batch, NAME))


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
    parser.add_argument("--keys", choices=["uniform", "hot"], default="uniform")
    parser.add_argument("--format", choices=FORMATS, action="append", help="some of them; else one after the other")
    given = parser.parse_args()
    results = []
    for lake in given.format or FORMATS:
        with place(lake) as (root, options):
            figures, found = measured(root, options, given.rows, given.commits, given.keys)
            print(json.dumps({"format": lake, "rows": given.rows, "keys": given.keys, **figures}), flush=True)
            results.append(found)
    assert all(found == results[0] for found in results), "the formats have other rows"


if __name__ == "__main__":
    main()
