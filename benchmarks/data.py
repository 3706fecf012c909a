"""PostgreSQL: what a byte of the log costs by the shape of the data, beside that of narrow inserts.

`python benchmarks/data.py [CASE...] [--times N] [--scale F]`. Each case is a database with a backlog of its own, read
by a pipeline into the null sink and by `pg_recvlogical`, in turn; medians of some runs are shown. Bytes are those on
the wire, 30 of them before each message of the output plugin. Most backlogs are about 130 MB, so that the start of the
pipeline weighs the same.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import workload
from contestants import VERSION, Course, Result, measured, recvlogical

from tailrace.connectors.postgres.log.protocol.framing import GAP, XLOG_HEADER
from tailrace.testing.postgres import EmbeddedPostgres

_VALUES = "n, n % 50000, 'Order number ' || n, n * 0.37, n % 3 = 0, 'A note of medium length'"
_COLUMNS = "id bigint PRIMARY KEY, customer int, title text, price numeric(12,2), paid bool, note text"


@dataclass(frozen=True)
class Case:
    """Statements that make the tables, and then the backlog of so many changes; `{rows}` is their number."""

    rows: int
    setup: str
    fill: str
    properties: Mapping[str, str] = field(default_factory=dict)


def _by(size: int, statement: str, rows: str = "{rows}") -> str:
    """A block that runs the statement for ranges [a, b], a transaction each."""
    loop = f"FOR a IN 1..{rows} BY {size} LOOP {statement.replace('$b', f'(a + {size} - 1)')}; COMMIT; END LOOP;"
    return f"DO $do$ BEGIN {loop} END $do$"


_INSERT = f"INSERT INTO t SELECT {_VALUES} FROM generate_series(a, $b) n"
_TABLE = f"CREATE TABLE t ({_COLUMNS})"


def _tables(count: int) -> str:
    return (
        f"DO $do$ BEGIN FOR k IN 1..{count} LOOP EXECUTE format('CREATE TABLE t%s ({_COLUMNS})', k); END LOOP; END $do$"
    )


def _spread(count: int) -> str:
    """One transaction that goes round the tables."""
    values = _VALUES.replace("'", "''").replace("%", "%%")
    insert = f"INSERT INTO t%s SELECT {values} FROM (SELECT $1::int AS n) s"
    loop = f"EXECUTE format('{insert}', 1 + n % {count}) USING n;"
    return f"DO $do$ BEGIN FOR n IN 1..{{rows}} LOOP {loop} END LOOP; END $do$"


CASES = {
    "narrow inserts": Case(1_000_000, _TABLE, _by(100, _INSERT)),
    "a row a transaction": Case(550_000, _TABLE, _by(1, _INSERT)),
    "one transaction": Case(1_000_000, _TABLE, _INSERT.replace("a,", "1,").replace("$b", "{rows}")),
    "updates, old images": Case(
        500_000,
        f"{_TABLE}; ALTER TABLE t REPLICA IDENTITY FULL; " + _INSERT.replace("a,", "1,").replace("$b", "{rows}"),
        _by(100, "UPDATE t SET customer = customer + 1 WHERE id BETWEEN a AND $b"),
    ),
    "deletes": Case(
        2_400_000,
        f"{_TABLE}; " + _INSERT.replace("a,", "1,").replace("$b", "{rows}"),
        _by(100, "DELETE FROM t WHERE id BETWEEN a AND $b"),
        {"tombstones.on.delete": "false"},
    ),
    "50 tables, one transaction": Case(1_000_000, _tables(50), _spread(50)),
    "1,000 tables, one transaction": Case(1_000_000, _tables(1000), _spread(1000)),
    "500 columns": Case(
        20_000,
        "DO $do$ BEGIN EXECUTE (SELECT 'CREATE TABLE t (id int PRIMARY KEY, ' || string_agg(format('c%s %s', k, "
        "(ARRAY['int', 'text', 'numeric(12,2)', 'timestamptz'])[1 + k % 4]), ', ') || ')' "
        "FROM generate_series(1, 499) k); END $do$",
        "DO $do$ BEGIN EXECUTE (SELECT 'INSERT INTO t SELECT n, ' || string_agg((ARRAY['n', '''text '' || n', "
        "'n * 0.37', 'timestamptz ''2026-01-01 00:00+00'' + n * interval ''1 ms'''])[1 + k % 4], ', ') || "
        "' FROM generate_series(1, {rows}) n' FROM generate_series(1, 499) k); END $do$",
    ),
    "1 MB rows": Case(
        400,
        "CREATE TABLE t (id int PRIMARY KEY, body text)",
        _by(10, "INSERT INTO t SELECT n, repeat(md5(n::text), 32768) FROM generate_series(a, $b) n"),
    ),
    "wide rows": Case(
        200_000,
        f"CREATE TABLE t ({', '.join(workload.WIDE)})",
        _by(100, f"INSERT INTO t SELECT {', '.join(workload.WIDE.values())} FROM generate_series(a::bigint, $b) n"),
    ),
}


def main() -> None:
    """Measure the cases in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help="names of cases")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of each case's rows")
    given = parser.parse_args()
    print(f"{'':30} {'rows/s':>9} {'B/row':>7} {'MB/s':>6} {'CPU ns/B':>8} {'server':>8} {'pg_recvlogical MB/s':>20}")
    with EmbeddedPostgres(VERSION, settings={**workload.SETTINGS, "max_locks_per_transaction": "4096"}) as server:
        for number, name in enumerate(given.cases):
            case = CASES[name]
            _show(name, *_measured(server, f"data{number}", case, int(case.rows * given.scale), given.times))


def _measured(
    server: EmbeddedPostgres, database: str, case: Case, rows: int, times: int
) -> tuple[int, list[Result], list[Result]]:
    """The bytes that the server sends on the wire, and the runs of Tailrace and of pg_recvlogical."""
    server.create_database(database)
    slots, peers = ([f"{database}_{who}_{number}" for number in range(times)] for who in ("mine", "peer"))
    with server.connect(database) as connection:
        connection.execute(case.setup.format(rows=rows).encode())
        connection.execute("CREATE PUBLICATION bench FOR ALL TABLES")
        for slot in [f"{database}_counted", *slots, *peers]:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        connection.execute(case.fill.format(rows=rows).encode())
        connection.execute("CHECKPOINT")
        sent = connection.execute(
            "SELECT sum(length(data) + %s) FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', "
            "'1', 'publication_names', 'bench')",
            [GAP + XLOG_HEADER, f"{database}_counted"],
        ).fetchone()
        end = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert sent is not None
    assert end is not None
    course = Course(server, workload.Backlog(rows, 0, end[0], sent[0]), database)
    mine, theirs = [], []
    for slot, peer in zip(slots, peers, strict=True):
        content = course.content(slot, "null")
        content["source"]["config"] |= {"table.include.list": "public.*", **case.properties}
        with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
            mine.append(measured(course, content, Path(folder)))
        theirs.append(recvlogical(course, peer))
    return int(sent[0]), mine, theirs


def _show(name: str, sent: int, mine: list[Result], theirs: list[Result]) -> None:
    seconds, peer_seconds = (statistics.median(each.seconds for each in results) for results in (mine, theirs))
    cpu = statistics.median(each.cpu_seconds for each in mine)
    server = statistics.median(each.server_cpu_seconds for each in mine)
    rows = mine[0].rows
    print(
        f"{name:30} {rows / seconds:9,.0f} {sent / rows:7,.0f} {sent / seconds / 1e6:6,.1f} {cpu / sent * 1e9:8,.1f} "
        f"{server / sent * 1e9:8,.1f} {sent / peer_seconds / 1e6:20,.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
