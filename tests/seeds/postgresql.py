"""The specification of PostgreSQL: its samples, its requirements S003-1 to S003-104, and its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tailrace.config import Config
from tailrace.connectors.postgres.position import source_block
from tailrace.events.keychange import split_key_changes, with_identity
from tailrace.events.record import RecordEncoder
from tailrace.events.selection import select
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database

SAMPLES = Path(__file__).parent / "samples"
DEMANDS = 104
ERAS = ("current", "1.7")
BASE = {"database__server__name": "PostgreSQL_server", "snapshot__mode": "no_data"}
INSERT = "INSERT INTO customers VALUES (1, 'Anne', 'Kretchmar', 'annek@noanswer.org')"
UPDATE = "UPDATE customers SET first_name = 'Anne Marie' WHERE id = 1"
DELETE = "DELETE FROM customers WHERE id = 1"

Record = dict[str, Any]


def sample(number: int) -> Any:
    """A sample of the document."""
    (path,) = SAMPLES.glob(f"003-{number:02}-*")
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def records(capture: Capture) -> list[Record]:
    """The next step's records as a consumer sees them, keys and values parsed."""
    config: Config = capture.config
    encoder = RecordEncoder(config, source_block(config), "run")
    found = []
    for split in capture.plan():
        for chunk in capture.reader.read(split):
            for batch in chunk.batches:
                changes = with_identity(batch) if capture.reader.source.is_old else batch
                changes = select(split_key_changes(changes, has_zeros=False), config)
                for rows in encoder.encode(changes) if len(changes) else ():
                    found += rows.to_pylist()
    for record in found:
        record["headers"] = {header["key"]: header["value"] for header in record["headers"] or ()}
        for part in ("key", "value"):
            record[part] = None if record[part] is None else json.loads(record[part])
    return found


def payloads(found: list[Record]) -> list[Any]:
    """The values' payloads, None for a tombstone."""
    return [record["value"] and record["value"]["payload"] for record in found]


@contextmanager
def customers(database: Database, era: str) -> Iterator[Capture]:
    """A pipeline over the document's table, whose records have the shape of a time."""
    database.execute(sample(2))
    with capturing(database, compat__version=era, skipped__operations="none", **BASE) as capture:
        capture.step()
        yield capture
