"""Encoding what the reference engine recorded gives its records back, byte for byte."""

import json

import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.record import RecordEncoder
from tests.unit.events import event_recordings as recordings
from tests.unit.events.event_recordings import GOLDEN, RUN_ID, stable

# Left out: values of transformations, records other than of tables, incremental reads (their `sequence` has another
# position than `lsn`), and a scale of 2047, which is a fault of the reference and no Arrow type.
NOT_HERE = ("transform-", "signal-incremental", "signal-stop", "notifications", "logical-messages", "types-numeric-neg")
SCENARIOS = sorted(
    folder.name for folder in GOLDEN.glob("*") if folder.is_dir() and not folder.name.startswith(NOT_HERE)
)
# The columns whose names field.name.adjustment.mode=avro_unicode changed, which is no change that repeats.
ORIGINAL = {
    "Order_u002dID": "Order-ID",
    "_u0031st_u0020col": "1st col",
    "na_u00efve": "naïve",
    "a_u002eb": "a.b",
    "_u005f_u005fok": "__ok",
    "x_u0020y": "x y",
}

needs_recordings = pytest.mark.skipif(not SCENARIOS, reason="no recordings beside the project (TAILRACE_SHARED)")


def expected(line: str) -> tuple[object, ...]:
    """Topic, key, value and headers of a recorded line, the JSON as text."""
    event = json.loads(line)

    def text(node: object) -> str | None:
        return None if node is None else json.dumps(node, separators=(",", ":"), ensure_ascii=False)

    headers = {name: stable(f"{name} {text(value)}") for name, value in event["headers"].items()}
    return event["topic"], text(event["key"]), raw_value(line), headers


def raw_value(line: str) -> str | None:
    """The value's own bytes, as they stand in the line between `"value":` and `,"headers":`."""
    start = line.index(',"value":', line.index('"key":')) + len(',"value":')
    text = line[start : line.rindex(',"headers":{')]
    return None if text == "null" else stable(text)


@needs_recordings
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_bytes_are_the_same(scenario: str) -> None:
    encoder = RecordEncoder(recordings.config_of(scenario), SOURCE, RUN_ID)
    names = ORIGINAL if scenario == "names-avro-unicode" else None
    wanted, found = [], []
    for batch, lines in recordings.batches(recordings.lines(scenario), names):
        if not set(batch.table.key) <= {column.name for column in batch.table.columns}:
            continue
        wanted += [expected(line) for line in lines]
        for records in encoder.encode(batch):
            for row in records.to_pylist():
                headers = {h["key"]: stable(f"{h['key']} {h['value'].decode()}") for h in row["headers"] or ()}
                found.append((row["topic"], row["key"], stable(row["value"]), headers))
    assert found == wanted
