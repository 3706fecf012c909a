"""Every type over its whole range: text and binary conversions agree, and equal values computed by models.

The default suite draws 50 values a type, `make types` 10,000; TAILRACE_TYPE_EXAMPLES sets the number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tailrace.testing.postgres import PostgresServer
from tests.conftest import Database
from tests.types.cases import CASES, MODES, Case
from tests.types.roads import Read, fill, read

pytestmark = pytest.mark.types

EXAMPLES = int(os.environ.get("TAILRACE_TYPE_EXAMPLES", "50"))
PAIRS = [(mode, case) for mode in MODES for case in CASES if mode in case.models]

Reader = Callable[[str], dict[str, Read]]


@pytest.fixture(scope="module")
def by_all_roads(postgres18: PostgresServer) -> Iterator[Reader]:
    """Reads all types in a mode, once."""
    database = Database(postgres18, "types")
    postgres18.create_database(database.name)
    try:
        fill(database, EXAMPLES)
        yield cache(lambda mode: read(database, mode))
    finally:
        postgres18.drop_database(database.name)


@pytest.mark.parametrize(("mode", "case"), PAIRS, ids=[f"{mode}-{case.type}" for mode, case in PAIRS])
def test_values(by_all_roads: Reader, mode: str, case: Case) -> None:
    found = by_all_roads(mode)[case.table]
    assert len(found.said) == len(found.snapshot) == len(found.binary) == len(found.streamed)
    assert found.said[-1] is None
    model = case.models[mode]
    # As text, for NaN is not equal to itself.
    expected = [repr(None if text is None else model(text)) for text in found.said]
    wrong = [
        f"{text!r:.200}: expected {value:.200}, snapshot {first!r:.200}, binary {second!r:.200}, log {third!r:.200}"
        for text, value, first, second, third in zip(
            found.said, expected, found.snapshot, found.binary, found.streamed, strict=True
        )
        if not value == repr(first) == repr(second) == repr(third)
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(expected)} values are wrong, among them", *wrong[:5]])
