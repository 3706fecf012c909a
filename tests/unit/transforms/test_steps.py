"""Steps keep what matches, rename what matches, and say what is wrong with themselves."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import TableId, TableSchema
from tailrace.transforms import apply, joins_topics, parse, rename
from tests.unit.events.event_recordings import configured


def batch(table: str, ops: str) -> ChangeBatch:
    schema = TableSchema(TableId("db", "public", table), (), (), ())
    rows = pa.record_batch({"op": pa.array(list(ops)), "order": pa.array(range(len(ops)), pa.int64())})
    return ChangeBatch(schema, rows)


def steps(*entries: object) -> str:
    return json.dumps(list(entries))


def renamed(text: str, *topics: str) -> list[str]:
    records = pa.record_batch({"partition": pa.nulls(len(topics), pa.int32()), "topic": pa.array(topics)})
    names: list[str] = rename(records, parse(text)).column("topic").to_pylist()
    return names


def kept(text: str, *batches: ChangeBatch) -> list[tuple[str, str]]:
    parsed = parse(text)
    return [
        (one.table.id.table, "".join(one.rows.column("op").to_pylist()))
        for one in apply(batches, parsed)
        if isinstance(one, ChangeBatch)
    ]


def test_filter_by_table_is_anchored_and_ignores_case() -> None:
    text = steps({"filter": {"tables": ["public\\.Order", "public\\.x.*"]}})
    found = kept(text, batch("order", "c"), batch("orders", "c"), batch("xy", "cu"))
    assert found == [("order", "c"), ("xy", "cu")]


def test_filter_by_operation_takes_names_and_letters() -> None:
    text = steps({"filter": {"operations": ["create", "D"]}})
    assert kept(text, batch("a", "cudtr"), batch("b", "uu")) == [("a", "cd")]


def test_filters_in_a_row_narrow() -> None:
    text = steps({"filter": {"tables": [".*\\.a"]}}, {"filter": {"operations": ["update"]}})
    assert kept(text, batch("a", "cuc"), batch("b", "u")) == [("a", "u")]


def test_control_batches_pass() -> None:
    string = ConnectSchema("string")
    control = ControlBatch("p.transaction", string, string, pa.record_batch({"key": ["k"], "value": ["v"]}))
    assert list(apply([control], parse(steps({"filter": {"operations": ["c"]}})))) == [control]


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "expected"),
    [
        (r"shop\.public\.(.*)", "cdc.$1", "shop.public.orders", "cdc.orders"),
        (r"shop\.public\.(?<table>.*)", "${table}_v1", "shop.public.orders", "orders_v1"),
        (r"public\.(.*)", "$1", "shop.public.orders", "shop.public.orders"),
        (r"(.*)", r"a\1\$$1", "t", "a1$t"),
    ],
)
def test_route_renames_whole_matches_only(regex: str, replacement: str, topic: str, expected: str) -> None:
    text = steps({"route": {"regex": regex, "replacement": replacement}})
    assert renamed(text, topic, "other", topic) == [expected, "other" if regex != "(.*)" else "a1$other", expected]


def test_routes_follow_each_other() -> None:
    text = steps(
        {"route": {"regex": "a(.*)", "replacement": "b$1"}}, {"route": {"regex": "b(.*)", "replacement": "c$1"}}
    )
    assert renamed(text, "a1", "b2", "c3") == ["c1", "c2", "c3"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"mask": {}}, "unknown step 'mask'"),
        ({"filter": {}}, "needs tables, operations or both"),
        ({"filter": {"operations": ["upsert"]}}, "unknown operation 'upsert'"),
        ({"filter": {"tables": ["("]}}, "no regular expression"),
        ({"route": {"regex": "a", "replacement": "$1"}}, "has 0 groups"),
        ({"route": {"regex": "a"}}, "the setting replacement is missing\n  Remedy: It takes regex, replacement."),
        ({"route": {"regex": "a", "replacement": "b", "x": 1}}, "unknown setting x\n"),
        ({"route": {"regex": 5, "replacement": "b"}}, "regex should be text"),
        ({"filter": {"tables": "public.a"}}, "tables should be a list of texts, such as [a, b]"),
        ({"filter": None}, "should be a mapping, of the step's settings"),
        ({"route": {}, "filter": {}}, "has the keys route, filter"),
    ],
)
def test_a_wrong_step_is_named(entry: object, words: str) -> None:
    with pytest.raises(ConfigError, match=r"steps\[1\]") as caught:
        parse(steps({"filter": {"operations": ["c"]}}, entry))
    assert words in str(caught.value)


_APACHE, _DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium."
_TOPIC = {"topic.regex": "(.*)", "topic.replacement": "all"}


@pytest.mark.parametrize(
    ("properties", "entries", "expected"),
    [
        ({}, (), False),
        ({}, ({"filter": {"tables": ["a"]}}, {"transform": {"type": "unwrap"}}), False),
        ({}, ({"route": {"regex": "a", "replacement": "b"}},), True),
        ({}, ({"transform": {"type": f"{_APACHE}RegexRouter", "regex": "a", "replacement": "b"}},), True),
        (
            {
                "transforms": "r",
                "transforms.r.type": f"{_DEBEZIUM}transforms.ByLogicalTableRouter",
                **{f"transforms.r.{name}": value for name, value in _TOPIC.items()},
            },
            (),
            True,
        ),
        ({"topic.naming.strategy": f"{_DEBEZIUM}schema.DefaultRegexTopicNamingStrategy", **_TOPIC}, (), True),
    ],
)
def test_what_may_lead_several_tables_into_one_topic(
    properties: dict[str, str], entries: tuple[object, ...], expected: bool
) -> None:
    assert joins_topics(configured(properties), parse(steps(*entries))) == expected
