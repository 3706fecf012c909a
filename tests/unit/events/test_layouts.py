"""Small batches of tables with one structure are encoded together: the same records, table by table in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.capture.heartbeat import heartbeat
from tailrace.config.topics import TopicNaming
from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import DecodeError
from tailrace.events.layouts import Batch, Layouts
from tailrace.events.parts import text_of
from tailrace.events.plan import EventPlans
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableSchema
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import BARE, changes, table
from tests.unit.events.event_recordings import configured

OTHER = replace(table("other"), columns=(*table().columns, Column("more", ConnectSchema("string"), pa.string())))
IMAGE = {"id": 1, "code": "ä", "note": None, "more": "x"}
OPS: dict[str, dict[str, Any]] = {
    "c": {"op": "c", "after": IMAGE},
    "u": {"op": "u", "before": IMAGE, "after": IMAGE},
    "d": {"op": "d", "before": IMAGE},
    "t": {"op": "t"},
}


def of(where: TableSchema, ops: str) -> ChangeBatch:
    """Changes of rows that tell their table and place by their notes."""
    rows = []
    for place, op in enumerate(ops):
        image = {**IMAGE, "note": f"{where.id.table} {place}"}
        rows.append({name: image if name in ("before", "after") else value for name, value in OPS[op].items()})
    return changes(where, *rows)


def records(encoded: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for each in encoded for row in each.to_pylist()]


def by_topic(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {topic: [row for row in rows if row["topic"] == topic] for topic in {row["topic"] for row in rows}}


TABLES = [*map(table, "abcd"), OTHER]


@given(
    st.lists(st.tuples(st.sampled_from(TABLES), st.text("cudt", min_size=1, max_size=5)), max_size=8),
    st.sampled_from([{}, BARE, {"tombstones.on.delete": "false"}]),
)
def test_records_are_those_of_batches_that_are_encoded_alone(
    drawn: list[tuple[TableSchema, str]], properties: dict[str, str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailrace.events.record.time.time_ns", lambda: 1)
        encoder = Encoder(configured(properties), SOURCE, "run")
        batches = [of(*each) for each in drawn]
        alone = [row for batch in batches for row in records(list(encoder.encode(batch)))]
        assert by_topic(records(list(encoder.encode_all(batches)))) == by_topic(alone)


def grouped(*batches: Batch, **properties: str) -> list[list[str]]:
    config = configured({name.replace("__", "."): value for name, value in properties.items()})
    groups = Layouts(config, EventPlans(config, SOURCE)).together(batches)
    return [
        [batch.table.id.table if isinstance(batch, ChangeBatch) else batch.topic for batch in group] for group in groups
    ]


def test_only_small_batches_of_one_structure_are_together_and_a_table_keeps_its_order() -> None:
    a, b, c, d = (of(each, "c") for each in TABLES[:4])
    assert grouped(a, of(OTHER, "c"), b, c) == [["a", "b", "c"], ["other"]]
    assert grouped(a, b, of(table("a"), "u"), c) == [["a", "b"], ["a", "c"]]
    beat = heartbeat(TopicNaming(configured({})), 1)
    assert grouped(a, b, beat, c, d) == [["a", "b"], [beat.topic], ["c", "d"]]
    assert grouped(a, of(table("large"), "c" * 5000), b) == [["a"], ["large"], ["b"]]
    wide = changes(table("wide"), {"op": "c", "after": {**IMAGE, "note": "x" * (5 << 20)}})
    assert grouped(a, wide, b) == [["a"], ["wide"], ["b"]]
    key = pa.array([{"id": 2}], pa.struct([("id", pa.int32())]))
    moved = changes(table("moved"), {"op": "c", "after": IMAGE}, other_key=key)
    assert grouped(a, moved, b) == [["a"], ["moved"], ["b"]]
    keyless = of(table("keyless", key=()), "c")
    assert grouped(a, keyless, b) == [["a", "b"], ["keyless"]]


def test_an_error_names_its_table_and_skips_its_rows_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    join = text_of

    def limited(parts: Any, start: int, rows: int, where: str) -> pa.Array:
        text = join(parts, start, rows, where)
        if any("b 0" in (each or "") for each in text.to_pylist()):
            raise DecodeError("too large", where=where)
        return text

    monkeypatch.setattr("tailrace.events.parts.text_of", limited)
    batches = [of(each, "cc") for each in TABLES[:3]]
    with pytest.raises(DecodeError) as raised:
        list(Encoder(configured(BARE), SOURCE, "run").encode_all(batches))
    assert "table public.b: too large" in str(raised.value)
    assert "like it" not in str(raised.value)
    given = [changes(table("b"), OPS["c"] | {"after": {**IMAGE, "note": "b 0"}}), batches[0], batches[2]]
    mode = {**BARE, "event.processing.failure.handling.mode": "warn"}
    left = records(list(Encoder(configured(mode), SOURCE, "run").encode_all(given)))
    assert len(left) == 4
    assert "public.b at" in caplog.text
