"""Changes that cannot be processed: which rows are left out, and that all others stay."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.config.failure_handling import FailureHandling
from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import DecodeError
from tailrace.events import parts
from tailrace.model.arrow import as_type as joined_type
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured


@given(st.integers(0, 40), st.sets(st.integers(0, 39)))
def test_exactly_the_faulty_rows_are_left_out(count: int, faulty: set[int]) -> None:
    def build(rows: np.ndarray) -> list[int]:
        bad = faulty & set(rows.tolist())
        if bad:
            raise DecodeError(f"row {min(bad)}")
        kept: list[int] = rows.tolist()
        return kept

    told: list[int] = []

    def name(row: int) -> str:
        told.append(row)
        return str(row)

    sound = [row for row in range(count) if row not in faulty]
    assert (FailureHandling("skip").sound(count, build, name) or []) == sound
    assert told == sorted(faulty & set(range(count)))


def test_any_other_error_stops_and_so_does_a_fault_by_default() -> None:
    def fails(_: np.ndarray) -> None:
        raise DecodeError("no")

    with pytest.raises(DecodeError):
        FailureHandling().sound(3, fails, str)
    with pytest.raises(ZeroDivisionError):
        FailureHandling("skip").sound(3, lambda rows: 1 // 0, str)


@pytest.mark.slow
@pytest.mark.parametrize("transforms", [{}, {"transforms": "t", "transforms.t.type": "X"}])
def test_an_event_too_large_for_spark_is_left_out(
    transforms: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit is 2 GiB; here it is 40 MB, so that the test needs no such event."""
    limited = joined_type

    def as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
        if values.nbytes > 40 << 20:
            raise pa.ArrowCapacityError("too large")
        return limited(values, kind)

    monkeypatch.setattr(parts, "as_type", as_type)
    if transforms:
        transforms["transforms.t.type"] = "io.debezium.transforms.ExtractNewRecordState"
    texts = ["a", "b" * (41 << 20), "c"]
    given = changes(table(), *({"op": "c", "after": {"id": i, "code": text}} for i, text in enumerate(texts)))

    def keys(**mode: str) -> list[str]:
        properties = {name.replace("_", "."): value for name, value in mode.items()}
        encoder = Encoder(
            configured({"key.converter.schemas.enable": "false", **transforms, **properties}), SOURCE, "r"
        )
        return [key for rows in encoder.encode(given) for key in rows.column("key").to_pylist()]

    with pytest.raises(DecodeError, match="larger than the 2 GiB"):
        keys()
    with caplog.at_level(logging.WARNING):
        assert keys(event_processing_failure_handling_mode="warn") == ['{"id":0}', '{"id":2}']
    assert "'lsn': 101" in caplog.text
