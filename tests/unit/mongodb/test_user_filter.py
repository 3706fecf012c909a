"""The condition of a signal for documents: what is taken, and that no code in it reaches the server."""

from __future__ import annotations

import pytest

from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.snapshot.user_filter import limit, user_filter
from tailrace.errors import SignalError

GIVEN = {"mongodb.connection.string": "mongodb://h", "topic.prefix": "t"}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{status: 'open', n: {$gt: 3}}",
        '{"$and": [{"a": 1}, {"$or": [{"b": {"$in": [1, 2]}}, {"c": /^x/i}]}]}',
        "{$expr: {$gt: ['$a', {$add: ['$b', 1]}]}}",
        "{note: '$where is a word'}",
        "{a: " * 90 + "1" + "}" * 90,
    ],
)
def test_filters_are_taken(text: str) -> None:
    assert isinstance(user_filter(text), dict)


@pytest.mark.parametrize(
    "text",
    [
        "{$where: 'true'}",
        '{"$where": "sleep(1000) || true"}',
        '{"\\u0024where": "true"}',
        "{$and: [{a: 1}, {$nor: [{$where: 'true'}]}]}",
        "{$expr: {$function: {body: 'function() { return true }', args: [], lang: 'js'}}}",
        "{$expr: {$eq: [1, {$cond: [true, {$function: {body: 'x', args: [], lang: 'js'}}, 2]}]}}",
        "{$expr: {$accumulator: {init: 'x'}}}",
        '{"a": {"$code": "function() { return true }"}}',
        '{"a": [{"$code": "x", "$scope": {}}]}',
    ],
)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(SignalError, match="has code for the server to run"):
        user_filter(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        "x",
        "{a: 1",
        "{a: 1};",
        "{a: '\\ud800'}",
        "[" * 2000,
        "{a: " * 2000 + "1" + "}" * 2000,
        "{a: NumberInt(1e999)}",
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    if not text:
        assert user_filter(text) == {}
        return
    with pytest.raises(SignalError, match=r"the condition is no JSON object: .*\n  Remedy: "):
        user_filter(text)


def test_a_filter_has_as_many_levels_as_the_server_takes() -> None:
    with pytest.raises(SignalError, match="nested deeper than 100 levels"):
        user_filter("{a: " * 120 + "1" + "}" * 120)


@pytest.mark.parametrize(
    ("patience", "most"), [("0", 600_000), ("60000", 54_000), ("5000", 4000), ("1000", 500), ("1", 1)]
)
def test_a_read_with_a_condition_ends_before_its_socket_does(patience: str, most: int) -> None:
    config = resolve({**GIVEN, "mongodb.socket.timeout.ms": patience})
    assert limit(config, "{}") == {"maxTimeMS": most}
    assert limit(config, None) == {}
