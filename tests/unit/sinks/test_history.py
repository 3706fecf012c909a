"""Every version of a row is in a table of history, once, in Delta and in Iceberg, compared with a plain model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from tailrace.sinks.replica.modes import HISTORY
from tests.unit.sinks.lines import Line, Row, Source, Transaction, at, drawn, read

LAKES = ("delta", "iceberg")


def plain(rows: Sequence[Row]) -> list[str]:
    names = ("id", "note", "document", "valid_from", "valid_to", "_op")
    return sorted(str([_shown(row[name]) for name in names]) for row in rows)


def _shown(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def as_of(rows: Sequence[Row], moment: int) -> list[Row]:
    """`WHERE valid_from <= t AND (valid_to > t OR valid_to IS NULL)`."""
    t = at(moment)
    held = [row for row in rows if row["valid_from"] <= t and (row["valid_to"] is None or row["valid_to"] > t)]
    found = [{name: row[name] for name in ("id", "note", "document")} for row in held]
    return sorted(found, key=lambda row: row["id"])


def verify(line: Line, source: Source) -> None:
    rows = line.rows()
    assert plain(rows) == plain(source.versions)
    for moment, _ in source.states:
        for t in (moment - 1, moment, moment + 1):
            assert as_of(rows, t) == source.as_of(t), f"at {t}"
    sequences = [row["_sequence"] for row in rows]
    assert len(set(sequences)) == len(sequences)
    ordered = sorted(rows, key=lambda row: row["_sequence"])
    assert [row["valid_from"] for row in ordered] == sorted(row["valid_from"] for row in rows)


def in_batches(draw: Random, transactions: Sequence[Transaction], line: Line, source: Source) -> None:
    """Write transactions in micro-batches of any size, which begin with some that are written, in parts of any size."""
    done = 0
    while done < len(transactions):
        first = max(0, done - draw.choice([0, 0, 1, 3]))
        end = min(len(transactions), done + draw.randint(1, 6))
        line.commit(transactions[first:end], most_rows=draw.choice([1, 4, 500_000]))
        for each in transactions[done:end]:
            source.apply(each)
        done = end


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 23))])
@pytest.mark.parametrize("lake", LAKES)
def test_the_versions_of_random_transactions_are_those_of_a_model(tmp_path: Path, lake: str, seed: int) -> None:
    draw, line, source = Random(seed), Line(tmp_path, lake, HISTORY), Source()
    transactions = drawn(draw, 40)
    in_batches(draw, transactions[:25], line, source)
    source.read(time := transactions[25].time + 10)
    line.write(read(list(source.rows.values()), transactions[25].commit, time), most_rows=3)
    in_batches(draw, transactions[25:], line, source)
    verify(line, source)
