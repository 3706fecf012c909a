"""What is foretold of transforms is what they make of recorded changes: topics and schemas of keys and values."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tailrace.config import Config
from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.records import Records
from tailrace.events.unfold import Unfolder
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.transforms import parse
from tailrace.transforms.outcome import Outcomes
from tailrace.transforms.registry import stages
from tests.unit.events import event_recordings as recordings
from tests.unit.events.changes import batch, table
from tests.unit.events.event_recordings import RUN_ID, configured
from tests.unit.events.recorded_layouts import DB2, MONGODB, POSTGRES, SQLSERVER, Recorded

APACHE, DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
UNWRAP = {
    "transforms": "u",
    "transforms.u.type": f"{DEBEZIUM}ExtractNewRecordState",
    "transforms.u.add.fields": "op,source.ts_ms,transaction.id",
    "transforms.u.delete.tombstone.handling.mode": "rewrite",
}
CHAIN = {
    **UNWRAP,
    "transforms": "u,i,r,m,c",
    "transforms.i.type": f"{APACHE}InsertField$Value",
    "transforms.i.topic.field": "of",
    "transforms.r.type": f"{APACHE}RegexRouter",
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "new.$1",
    "transforms.m.type": f"{APACHE}HoistField$Value",
    "transforms.m.field": "row",
    "transforms.c.type": f"{DEBEZIUM}Filter",
    "transforms.c.language": "sql",
    "transforms.c.condition": "value.row.__op = 'x'",
    "predicates": "t",
    "predicates.t.type": f"{APACHE}predicates.RecordIsTombstone",
    **{f"transforms.{each}.{name}": text for each in "imc" for name, text in (("predicate", "t"), ("negate", "true"))},
}
FLAT = {"transforms": "f", "transforms.f.type": f"{APACHE}Flatten$Value", "transforms.f.delimiter": "_"}
OUTBOX = {"transforms": "o", "transforms.o.type": f"{DEBEZIUM}outbox.EventRouter"}
CHANGES = ("c", "u", "d")

Schemas = set[tuple[str, ConnectSchema | None, ConnectSchema | None]]


def schemas(records: Iterable[Records]) -> Schemas:
    """Topics, and schemas of keys and values."""
    return {
        (topic, *(None if part is None else part.schema for part in (each.key, each.value)))
        for each in records
        for topic in each.topic.to_pylist()
    }


def made(changes: ChangeBatch, config: Config, of: Recorded) -> Schemas:
    """What the transforms make of these changes; conditions aside, which take records away."""
    chosen = [place for place, op in enumerate(changes.rows.column("op").to_pylist()) if op in CHANGES]
    found: list[Records] = []
    for groups in Unfolder(config, of.block, RUN_ID).unfold(changes.with_rows(changes.rows.take(chosen))):
        for stage in stages(config):
            if "Condition" not in type(stage.transform).__name__:
                groups = stage.run(groups)
        found += groups
    return schemas(found)


RECORDED = (
    (POSTGRES, "basic-crud"),
    (POSTGRES, "no-pk"),
    (POSTGRES, "types-arrays"),
    (SQLSERVER, "types-strings"),
    (DB2, "transaction-metadata"),
    (MONGODB, "transactions"),
)
CASES = [
    pytest.param(of, scenario, chain, id=f"{of.database}-{scenario}-{name}")
    for of, scenario in RECORDED
    for name, chain in (("none", {}), ("flat", FLAT), ("unwrap", UNWRAP), ("chain", CHAIN))
    if of is not MONGODB or chain in ({}, FLAT)  # there a row is a text
]


@pytest.mark.parametrize(("of", "scenario", "chain"), CASES)
def test_what_is_foretold_comes(of: Recorded, scenario: str, chain: dict[str, str]) -> None:
    config = configured({"compat.faults": "true", **chain})
    outcomes = Outcomes(config, of.block, ())
    seen = 0
    for changes, _ in recordings.batches(recordings.lines(scenario, of), None, of):
        found = made(changes, config, of) if isinstance(changes, ChangeBatch) and len(changes) else set()
        foretold = outcomes.of(changes.table) if found else None
        assert found <= schemas(foretold or ())
        seen += len(found)
    assert seen


def test_steps_of_a_pipeline_count_as_well() -> None:
    steps = parse('[{"transform": {"type": "unwrap"}}, {"route": {"regex": "(.*)", "replacement": "all"}}]')
    found = Outcomes(configured({}), SOURCE, steps).of(table())
    assert found is not None
    assert {(topic, value and value.name) for topic, _, value in schemas(found)} == {
        ("all", "server1.public.things.Value")
    }


@pytest.mark.parametrize(
    "chain",
    [
        OUTBOX,
        {
            "transforms": "r",
            "transforms.r.type": f"{DEBEZIUM}ContentBasedRouter",
            "transforms.r.language": "sql",
            "transforms.r.topic.expression": "value.after.code",
        },
        {
            "transforms": "x",
            "transforms.x.type": f"{APACHE}ExtractField$Value",
            "transforms.x.field": "there.is.none",
        },
    ],
    ids=["outbox", "content", "no-field"],
)
def test_what_values_decide_is_not_foretold(chain: dict[str, str]) -> None:
    assert Outcomes(configured(chain), SOURCE, ()).of(batch("c").table) is None
