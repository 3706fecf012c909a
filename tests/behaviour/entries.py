"""A table of entries for tests of the log: filled by transactions, and read by a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

TABLE = "CREATE TABLE entries (id int PRIMARY KEY, writer int, note text)"


def confirmed(database: Database, slot: str | None = None) -> int:
    """The slot's confirmed position."""
    with database.connect() as connection:
        row = connection.execute(
            "SELECT (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots WHERE slot_name = %s",
            [slot or f"slot_{database.name}"],
        ).fetchone()
    assert row is not None
    return int(row[0])


def fill(database: Database, count: int, first: int = 1, size: int = 100) -> None:
    """Entries in transactions of `size`."""
    with database.connect() as connection:
        for start in range(first, first + count, size):
            connection.execute(
                "INSERT INTO entries SELECT n, 0, repeat('x', 50) FROM generate_series(%s::int, %s::int) n",
                [start, min(start + size, first + count) - 1],
            )


def ids(found: list[dict[str, object]]) -> list[int]:
    """Ids of the rows, in order."""
    return [row["after"]["id"] for row in found]  # type: ignore[index]


@contextmanager
def capturing_entries(database: Database, **properties: str) -> Iterator[Capture]:
    """A pipeline over the table `entries` whose (empty) snapshot has been read."""
    database.execute(TABLE)
    with capturing(database, **properties) as capture:
        assert capture.step() == []
        yield capture
