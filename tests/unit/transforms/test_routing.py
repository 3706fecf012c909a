"""Tables that share a topic, and partitions by fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.errors import ConfigError, TransformError
from tailrace.javalike.patterns import Rewrite
from tests.unit.events.changes import changes, table
from tests.unit.transforms.transformed import payload, properties, rows

BY_TABLE = "io.debezium.transforms.ByLogicalTableRouter"
TO_TOPIC = "io.debezium.transforms.ToLogicalTopicRouter"
PARTITIONS = "io.debezium.transforms.partitions.PartitionRouting"
ALL = {"topic.regex": r"(.*)\.things", "topic.replacement": "$1.all"}
IMAGE = {"id": 1, "code": "Sally", "note": None}


def test_schemas_and_key_follow_the_topic() -> None:
    (row,) = rows(changes(table(), {"op": "c", "after": IMAGE}), properties(BY_TABLE, ALL))
    assert payload(row["key"]) == {"id": 1, "__dbz__physicalTableIdentifier": "server1.public.things"}
    schema = json.loads(row["value"])["schema"]
    assert [row["topic"], schema["name"], schema["fields"][0]["name"], json.loads(row["key"])["schema"]["name"]] == [
        "server1.public.all",
        "server1.public.all.Envelope",
        "server1.public.all.Value",
        "server1.public.all.Key",
    ]


def test_the_identifier_is_rewritten_or_left_out() -> None:
    settings = {**ALL, "key.field.name": "t", "key.field.regex": r".*\.(.*)", "key.field.replacement": "<$1>"}
    delete, tombstone = rows(changes(table(), {"op": "d", "before": IMAGE}), properties(BY_TABLE, settings))
    assert payload(delete["key"]) == payload(tombstone["key"]) == {"id": 1, "t": "<things>"}
    off = properties(BY_TABLE, {**ALL, "key.enforce.uniqueness": "false"})
    assert payload(rows(changes(table(), {"op": "c", "after": IMAGE}), off)[0]["key"]) == {"id": 1}


def test_the_newer_class_has_another_name_for_the_identifier() -> None:
    settings = {**ALL, "logical.destination.cache.size": "8"}
    (row,) = rows(changes(table(), {"op": "c", "after": IMAGE}), properties(TO_TOPIC, settings))
    assert row["topic"] == "server1.public.all"
    assert payload(row["key"]) == {"id": 1, "__dbz__sourceIdentifier": "server1.public.things"}


def test_other_topics_and_empty_names_stay() -> None:
    for settings in (
        {"topic.regex": "things", "topic.replacement": "x"},
        {"topic.regex": "(x?).*", "topic.replacement": "$1"},
    ):
        (row,) = rows(changes(table(), {"op": "c", "after": IMAGE}), properties(BY_TABLE, settings))
        assert (row["topic"], payload(row["key"])) == ("server1.public.things", {"id": 1})


def test_a_regex_of_the_key_needs_a_replacement() -> None:
    with pytest.raises(ConfigError, match="must be non-empty if"):
        rows(changes(table(), {"op": "c"}), properties(BY_TABLE, {**ALL, "key.field.regex": "a"}))


def partitions(fields: str, *more: dict[str, Any], function: str = "murmur") -> list[int | None]:
    settings = {"partition.payload.fields": fields, "partition.topic.num": "4", "partition.hash.function": function}
    return [
        row["partition"]
        for row in rows(changes(table(identity=("id", "code", "note")), *more), properties(PARTITIONS, settings))
    ]


def test_change_is_the_row_there_is_and_tombstones_stay_free() -> None:
    made = ({"op": "c", "after": IMAGE}, {"op": "d", "before": {**IMAGE, "code": "Anne"}}, {"op": "t"})
    assert partitions("change.code", *made) == [3, 1, None, None]
    assert partitions("after.code", *made) == [3, None, None, None]


def test_fields_that_are_missing_or_null_do_not_count() -> None:
    made = {"op": "c", "after": IMAGE}
    assert partitions("after.code,after.note,after.colour,colour", made) == [3]
    assert partitions("after.colour", made) == [None]
    assert partitions("after.code,transaction", made) == [3]


def test_hashes_are_summed_as_java_sums_integers() -> None:
    made = {"op": "c", "after": {**IMAGE, "id": -3, "code": "polygenelubricants"}}
    assert partitions("after.id,after.code", made, function="java") == [(2**31 - 3) % 4]
    assert partitions("after.code", {"op": "c", "after": {**IMAGE, "code": "a"}}, function="java") == [97 % 4]


def test_a_struct_cannot_choose() -> None:
    with pytest.raises(TransformError, match=r"partition\.payload\.fields: source"):
        partitions("source", {"op": "c", "after": IMAGE})


@pytest.mark.parametrize(
    ("expression", "replacement", "text", "expected"),
    [
        ("(.)(.*)", "$2$1", "abc", "bca"),
        ("(.)(.*)", "$12", "abc", "a2"),
        ("(?<x>a)?(.*)", "[${x}]", "bc", "[]"),
        ("a(.*)", r"\$1\\", "ab", "$1\\"),
        ("A.*", "x", "abc", None),
    ],
)
def test_replacements_are_java_s(expression: str, replacement: str, text: str, expected: str | None) -> None:
    assert Rewrite.of(expression, replacement)(text) == expected


@pytest.mark.parametrize("replacement", ["$", "${y}", "$3", "a$b"])
def test_a_replacement_without_its_group_is_refused(replacement: str) -> None:
    with pytest.raises(ValueError, match=r"replacement"):
        Rewrite.of("(?<x>.)", replacement)
