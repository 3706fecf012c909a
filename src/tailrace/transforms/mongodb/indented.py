"""Writes a document of an event's JSON text as the outbox router's payload: in extended JSON, a member a line.

Events contain MongoDB's older JSON. The types come from that text and not from Python's values, which lose some: Python
has no symbols and no undefined values. The form is that of the Java driver's `JsonMode.EXTENDED` with `indent`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tailrace.javalike.escapes import escape_text
from tailrace.model.text.json_reader import make_room

Node = dict[str, Any]


class _Number(str):
    """A number as the text has it."""

    __slots__ = ()


class _Double(_Number):
    """One that is not an integer."""

    __slots__ = ()


def indented(text: str, field: str) -> str | None:
    """The text of a field that contains a document; None if it contains something else, or is absent.

    `text` is an event's image. Raises json.JSONDecodeError.
    """
    make_room(text)
    node = json.loads(text, parse_int=_Number, parse_float=_Double, parse_constant=_Double).get(field)
    if not isinstance(node, dict) or tuple(node) in _SCALARS:
        return None
    return escape_text(json.dumps(_extended(node), indent=2, ensure_ascii=False))


def _extended(node: Any) -> Any:
    """A node of the older JSON in the form of extended JSON."""
    if isinstance(node, _Number):
        return {"$numberDouble" if isinstance(node, _Double) else "$numberInt": str(node)}
    if isinstance(node, list):
        return [_extended(item) for item in node]
    if not isinstance(node, dict):
        return node
    return _SCALARS.get(tuple(node), _members)(node)


def _members(node: Node) -> Node:
    return {name: _extended(value) for name, value in node.items()}


def _same(node: Node) -> Node:
    """The value as it is, with its numbers."""
    return {name: _plain(value) for name, value in node.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return _same(value)
    return int(value) if isinstance(value, _Number) else value


# By the names of its members, how a value is written that is no document.
_SCALARS: Mapping[tuple[str, ...], Callable[[Node], Node]] = {
    ("$binary", "$type"): lambda node: {"$binary": {"base64": node["$binary"], "subType": node["$type"]}},
    ("$date",): lambda node: {"$date": {"$numberLong": str(node["$date"])}},
    ("$regex", "$options"): lambda node: {
        "$regularExpression": {"pattern": node["$regex"], "options": node["$options"]}
    },
    ("$code", "$scope"): _members,
    **{(name,): _same for name in ("$oid", "$numberLong", "$numberDecimal", "$timestamp", "$minKey", "$maxKey")},
    **{(name,): _same for name in ("$undefined", "$symbol", "$code")},
}
