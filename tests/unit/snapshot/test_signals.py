"""What a signal requests: its tables, their case, its conditions; and what is no signal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.connectors.signal import Signal
from tailrace.errors import SignalError
from tailrace.model.table import TableId
from tailrace.snapshot.signals import check_no_surrogate, collections, requests

TABLES = [TableId("d", "public", "t"), TableId("d", "public", "T"), TableId("d", "public", "u")]


def signal(**data: Any) -> Signal:
    return Signal("s", "execute-snapshot", json.dumps(data))


def conditions(**data: Any) -> dict[str, str | None]:
    """The tables that are read, and their conditions."""
    return {request.table: request.condition for request in requests(signal(**data), TABLES)}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("public.t", ["public.t"]),
        ("public.T", ["public.T"]),
        ("PUBLIC.t", []),
        (r"public\.[tu]", ["public.t", "public.u"]),
        (r"(?i)public\.t", ["public.t", "public.T"]),
    ],
)
def test_case_matters_in_data_collections(listed: str, expected: list[str]) -> None:
    """Debezium's AbstractIncrementalSnapshotChangeEventSource compiles these without a flag."""
    asked = signal(**{"data-collections": [listed]})
    assert collections(asked, asked.content() or {}, map(str, TABLES)) == expected


def test_a_name_that_two_tables_have_means_both() -> None:
    tables = [TableId("d", "a.b", "c"), TableId("d", "a", "b.c"), TableId("d", "a", "t")]
    found = requests(signal(**{"data-collections": ["a.b.c"]}), tables)
    assert [(each.table, each.leading) for each in found] == [("a.b.c", ("a.b",)), ("a.b.c", ())]


def test_case_does_not_matter_in_additional_conditions() -> None:
    """Debezium's ExecuteSnapshot compiles these with CASE_INSENSITIVE. The first that matches is taken."""
    listed = [
        {"data-collection": "PUBLIC.T", "filter": "id = 1"},
        {"data-collection": ".*t", "filter": "id = 2"},
        {"data-collection": "public.none"},
    ]
    found = conditions(**{"data-collections": ["public.[tu]"], "additional-conditions": listed})
    assert found == {"public.t": "id = 1", "public.u": None}
    older = {"data-collections": ["public.[tu]"], "additional-condition": "id = 3", "additional-conditions": listed[:2]}
    assert conditions(**older) == {"public.t": "id = 1", "public.u": "id = 3"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"additional-conditions": {"data-collection": "public.t", "filter": "id = 1"}},
        {"additional-conditions": 5},
        {"additional-conditions": ["id = 1"]},
        {"additional-conditions": [{"filter": "id = 1"}]},
        {"additional-conditions": [{"data-collection": "public.t", "filter": 1}]},
        {"additional-condition": ["id = 1"]},
    ],
)
def test_conditions_that_are_none_are_not_left_out(wrong: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert conditions(**{"data-collections": ["public.t"], **wrong}) == {}
    assert "signal s is ignored, its conditions are no list of" in caplog.text
    assert json.dumps(wrong)[1:-1] in caplog.text


def test_a_surrogate_key_is_refused_where_no_table_is_read_by_one() -> None:
    """A blocking snapshot reads by no key."""
    with pytest.raises(SignalError, match="surrogate-key is not supported here, and it names n"):
        check_no_surrogate(signal(**{"data-collections": ["public.t"], "surrogate-key": "n"}))
    check_no_surrogate(signal(**{"data-collections": ["public.t"], "surrogate-key": "n", "type": "blocking"}))
    check_no_surrogate(signal(**{"data-collections": ["public.t"], "surrogate-key": ""}))
    check_no_surrogate(Signal("s", "stop-snapshot", '{"surrogate-key": "n"}'))
    check_no_surrogate(Signal("s", "execute-snapshot", "no JSON"))
