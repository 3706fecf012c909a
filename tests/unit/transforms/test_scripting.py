"""Conditions in SQL: what they mean over records of several tables, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, TransformError
from tailrace.model.change import ChangeBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import properties, rows

FILTER, ROUTER = "io.debezium.transforms.Filter", "io.debezium.transforms.ContentBasedRouter"


def batch() -> ChangeBatch:
    """A create of 1, an update of 2 and a delete of 3 with its tombstone."""
    return changes(
        table(identity=("id", "code", "note")),
        {"op": "c", "after": {"id": 1, "code": "it's", "note": None}},
        {"op": "u", "before": {"id": 2, "code": "b", "note": None}, "after": {"id": 2, "code": "b", "note": "n"}},
        {"op": "d", "before": {"id": 3, "code": "c", "note": "n"}},
    )


def kept(condition: str, **settings: str) -> str:
    """The ops of the records that stay; T for a tombstone."""
    more = {name.replace("_", "."): text for name, text in settings.items()}
    given = properties(FILTER, {"language": "sql", "condition": condition, **more})
    return "".join(
        "T" if row["value"] is None else row["value"][row["value"].index('"op":"') + 6] for row in rows(batch(), given)
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("value.op = 'u'", "uT"),
        ("value.op <> 'u' and not value.op = 'd'", "cT"),
        ("value.after.id >= 2 OR value.before.id > 2", "udT"),
        ("value.after.note IS NULL", "cdT"),
        ("value.after.note is not null", "uT"),
        ("value.op IN ('c', 'd')", "cdT"),
        ("value.op NOT IN ('c', 'd')", "uT"),
        ("value.after.code LIKE '%''s'", "cT"),
        ("value.after.code not like 'i_%'", "uT"),
        ("value.after.id BETWEEN 2 AND 5", "uT"),
        ("key.id * 2 + 1 = 5", "uT"),
        ("topic = 'server1.public.things'", "cudT"),
        ("valueSchema.name LIKE '%.Envelope'", "cudT"),
        ("value.after.colour = 'red'", "T"),
        ("value.after.colour IS NULL", "cudT"),
        ("lower(value.after.code || '!') = 'b!'", "uT"),
        ("coalesce(value.after.id, value.before.id) = 3", "dT"),
        ("CASE WHEN value.op = 'c' THEN true ELSE false END", "cT"),
        ('value."after".id = 1', "cT"),
        ("header.h IS NULL", "cudT"),
        ("length(value.source.table) = 6", "cudT"),
        ("null", "T"),
    ],
)
def test_a_condition_says_what_stays(condition: str, expected: str) -> None:
    assert kept(condition) == expected


def test_numbers_in_texts_are_those_of_events() -> None:
    columns = (*table().columns[:1], Column("d", ConnectSchema("double", optional=True), pa.float64()))
    values = (math.nan, -math.inf, 1e10, 2.0, None)
    given = changes(
        replace(table(), columns=columns), *({"op": "c", "after": {"id": 1, "d": value}} for value in values)
    )
    router = {"language": "sql", "topic.expression": "'t ' || value.after.d || ' ' || 0.5"}
    topics = [row["topic"] for row in rows(given, properties(ROUTER, router))]
    assert topics == ["t NaN 0.5", "t -Infinity 0.5", "t 1.0E10 0.5", "t 2.0 0.5", "server1.public.things"]


def test_null_values_are_kept_dropped_or_evaluated() -> None:
    assert kept("value.op = 'd'", null_handling_mode="drop") == "d"
    assert kept("value.op = 'd'", null_handling_mode="evaluate") == "d"
    assert kept("key.id = 3", null_handling_mode="evaluate") == "dT"


def test_conditions_are_not_evaluated_for_other_topics() -> None:
    assert kept("false", topic_regex="other") == "cudT"


def test_a_router_names_the_topic_and_null_leaves_it() -> None:
    expression = "CASE WHEN value.op = 'c' THEN 'new' WHEN value.op = 'u' THEN topic || '.' || value.after.code END"
    found = rows(batch(), properties(ROUTER, {"language": "sql", "topic.expression": expression}))
    plain = "server1.public.things"
    assert [row["topic"] for row in found] == ["new", f"{plain}.b", plain, plain]


@pytest.mark.parametrize(
    ("language", "condition", "words"),
    [
        ("jsr223.groovy", "value.op == 'u'", "need Java.*write language=sql and a condition such as"),
        ("sql", "value.op == 'u'", "cannot read the condition"),
        ("sql", "value.op = ", "ends too early"),
        ("sql", "op = 'u'", "unknown name op; write topic, key.<field>"),
        ("sql", "(value.op = 'u'", r"\) is expected"),
        ("sql", "now() = 1", "unknown function now"),
        ("sql", "value.op = 'u' value", "cannot read the condition at 'value'"),
        ("sql", "(" * 50_000, "nested too deeply"),
    ],
)
def test_what_is_no_sql_is_refused_with_what_to_write(language: str, condition: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        rows(batch(), properties(FILTER, {"language": language, "condition": condition}))


def test_types_that_do_not_fit_stop_with_the_condition() -> None:
    for condition in ("value.after.id = 'x'", "value.after.id"):
        with pytest.raises(TransformError, match=r"value\.after\.id"):
            kept(condition)
