"""Reads the condition that a signal brings: a filter of documents, without code for the server to run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import bson
from bson.code import Code
from bson.errors import BSONError

from tailrace.config import Config
from tailrace.connectors.mongodb.config import condition
from tailrace.connectors.mongodb.options import MONGODB_SOCKET_TIMEOUT_MS
from tailrace.errors import SignalError

# Operators that run JavaScript on the server, which may hold it up for as long as it likes.
_CODE = frozenset(("$where", "$function", "$accumulator"))
# The server takes no documents that are nested deeper.
_DEEPEST = 100
# Where the property sets no limit: as long as a query may take in other databases by default.
_LONGEST_MS = 600_000
# How long the server's answer that the time is up may take, where the limit leaves twice as much; guessed.
_ANSWER_MS = 1000


@lru_cache(maxsize=8)
def user_filter(text: str | None) -> dict[str, Any]:
    """The filter of a signal's condition. Raises SignalError for a text that is none, or that would run code."""
    try:
        filter_ = condition(text)
        bson.encode(filter_)
    except (ValueError, OverflowError, RecursionError, BSONError) as error:
        what = f"the condition is no JSON object: {error}"
        raise SignalError(what, remedy="write a filter as in find(): {status: 'open'}") from error
    for depth, name, value in _members(filter_):
        if name in _CODE or isinstance(value, Code):
            what = f"the condition is refused, it has code for the server to run ({name})"
            raise SignalError(what, remedy="write it with operators of queries, or with $expr, which take no code")
        if depth > _DEEPEST:
            raise SignalError(f"the condition is refused, it is nested deeper than {_DEEPEST} levels")
    return filter_


def limit(config: Config, text: str | None) -> dict[str, int]:
    """The option of a read with a condition that ends it on the server, a moment before the socket's time is up.

    A socket whose time is up is a lost connection, and the read is tried again.
    """
    patience = config[MONGODB_SOCKET_TIMEOUT_MS]
    answer = max(patience // 10, min(_ANSWER_MS, patience // 2))
    return {} if text is None else {"maxTimeMS": max(1, patience - answer) if patience else _LONGEST_MS}


def _members(root: dict[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """The members of a document at any depth, each with its depth."""
    waiting: list[tuple[int, Any]] = [(1, root)]
    while waiting:
        depth, node = waiting.pop()
        named = node.items() if isinstance(node, dict) else ((str(place), each) for place, each in enumerate(node))
        for name, value in named:
            yield depth, name, value
            if isinstance(value, (dict, list)):
                waiting.append((depth + 1, value))
