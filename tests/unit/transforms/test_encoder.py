"""The encoder of records and the one that knows no columns write the same bytes."""

from __future__ import annotations

import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.capture.heartbeat import heartbeat
from tailrace.config.topics import TopicNaming
from tailrace.connectors.postgres.position import SOURCE, source_block
from tailrace.events.keychange import split_key_changes
from tailrace.events.record import RecordEncoder
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.transforms import parse
from tailrace.transforms.encoder import Encoder
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured
from tests.unit.transforms.transformed import properties

NOTHING = properties("org.apache.kafka.connect.transforms.DropHeaders", {"headers": "none of them"})
IN_UTC = properties("io.debezium.transforms.TimezoneConverter", {"converted.timezone": "UTC"})

images = st.fixed_dictionaries(
    {"id": st.integers(0, 2), "code": st.text(max_size=3), "note": st.none() | st.text(max_size=3)}
)
partial = st.fixed_dictionaries({"id": st.integers(0, 2), "code": st.none(), "note": st.none()})
change = st.one_of(
    st.fixed_dictionaries({"op": st.just("c"), "after": images}),
    st.fixed_dictionaries({"op": st.just("r"), "after": images, "snapshot": st.just("first")}),
    st.fixed_dictionaries({"op": st.just("u"), "before": images, "after": images}),
    st.fixed_dictionaries({"op": st.just("d"), "before": images | partial}),
    st.just({"op": "t"}),
)


def written(encoder: Any, batch: ChangeBatch) -> list[dict[str, Any]]:
    """All rows of a batch."""
    return [row for out in encoder.encode(batch) for row in out.to_pylist()]


@settings(deadline=None)
@given(
    st.lists(change, min_size=1, max_size=8),
    st.sampled_from([("id",), (), ("id", "code")]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["current", "1.7"]),
)
def test_both_encoders_write_the_same(
    made: list[dict[str, Any]], key: tuple[str, ...], schemas: bool, tombstones: bool, layout: str
) -> None:
    of = table(key=key, identity=("id", "code", "note"))
    batch = split_key_changes(changes(of, *made), has_zeros=False)
    given_ = {"value.converter.schemas.enable": str(schemas).lower(), "tombstones.on.delete": str(tombstones).lower()}
    given_["compat.version"] = layout
    source = source_block(configured(given_))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: 1_795_268_705_393_912_345)
        plain = written(RecordEncoder(configured(given_), source, "run"), batch)
        through = written(Encoder(configured({**given_, **NOTHING}), source, "run"), batch)
    assert through == plain


@pytest.mark.parametrize("through", [NOTHING, IN_UTC], ids=["DropHeaders", "TimezoneConverter"])
@pytest.mark.parametrize("in_value", [True, False])
@pytest.mark.parametrize("value", ["a", None])
def test_a_row_that_is_not_there_is_null(
    value: str | None, in_value: bool, through: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column("note", ConnectSchema("string", optional=True), pa.string(), in_value=in_value),)
    of = TableSchema(TableId("golden", "public", "t"), columns, (), ())
    image = {"note": value}
    made = changes(of, {"op": "c", "after": image}, {"op": "u", "before": image, "after": image})
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    plain = written(RecordEncoder(configured({}), SOURCE, "run"), made)
    assert written(Encoder(configured(through), SOURCE, "run"), made) == plain
    assert [json.loads(each["value"])["payload"]["before"] for each in plain] == [None, image if in_value else {}]


def test_large_values_the_log_did_not_repeat_are_the_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    image = {"id": 1, "code": "a", "note": None}
    marks = pa.array([{"note": True}, {"note": False}], pa.struct([("note", pa.bool_())]))
    batch = changes(table(), {"op": "u", "after": image}, {"op": "u", "after": image}, unchanged=marks)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    plain = written(RecordEncoder(configured({}), SOURCE, "run"), batch)
    assert written(Encoder(configured(NOTHING), SOURCE, "run"), batch) == plain
    assert "__debezium_unavailable_value" in plain[0]["value"]


def test_control_records_pass_as_they_are() -> None:
    config = configured({"heartbeat.interval.ms": "10"})
    batch = heartbeat(TopicNaming(config), 5)
    through = [row for out in Encoder(configured(NOTHING), SOURCE, "run").encode(batch) for row in out.to_pylist()]
    plain = [row for out in RecordEncoder(config, SOURCE, "run").encode(batch) for row in out.to_pylist()]
    assert through == plain


def test_transforms_of_the_properties_run_before_the_steps() -> None:
    steps = parse(
        '[{"route": {"regex": "a", "replacement": "b"}},'
        ' {"transform": {"type": "org.apache.kafka.connect.transforms.RegexRouter", "regex": "b", "replacement": "c"}}]'
    )
    first = properties("org.apache.kafka.connect.transforms.RegexRouter", {"regex": ".*", "replacement": "a"})
    batch = changes(table(), {"op": "c", "after": {"id": 1, "code": "a", "note": None}})
    encoder = Encoder(configured(first), SOURCE, "run", steps)
    assert [row["topic"] for row in written(encoder, batch)] == ["c"]


def test_routes_alone_rename_and_nothing_else() -> None:
    batch = changes(table(), {"op": "d", "before": {"id": 1, "code": "a", "note": None}})
    steps = parse('[{"route": {"regex": "a(.*)", "replacement": "b$1"}}]')
    first = properties("org.apache.kafka.connect.transforms.RegexRouter", {"regex": "(.*)", "replacement": "a.$1"})
    routed = written(Encoder(configured(first), SOURCE, "run", steps), batch)
    plain = written(RecordEncoder(configured({}), SOURCE, "run"), batch)
    assert [row["topic"] for row in routed] == ["b.server1.public.things"] * 2
    assert [row["key"] for row in routed] == [row["key"] for row in plain]
