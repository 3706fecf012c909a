"""JSON as MongoDB's shell and Java driver read it: `{ name: 'x', _id: ObjectId("..."), text: /^a/i }`.

Extended JSON is part of it. The text is translated to extended JSON, which the driver reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Tokens = list[tuple[str, str]]
"""What is left to read, the next one last: each token's kind and text."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<number> -?(?:\d+\.?\d*(?:[eE][+-]?\d+)?)(?![\w$]) )
    | (?P<word> -?[A-Za-z_$][\w$]* )
    | (?P<pattern> /(?:[^/\\\n]|\\.)+/[a-z]* )
    | (?P<sign> [{}\[\]():,] )
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _regex(pattern: str, options: str = "") -> Any:
    return {"$regularExpression": {"pattern": pattern, "options": "".join(sorted(options))}}


_CONSTANTS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": {"$undefined": True},
    **{name: {"$numberDouble": name} for name in ("NaN", "Infinity", "-Infinity")},
    "MinKey": {"$minKey": 1},
    "MaxKey": {"$maxKey": 1},
}
_CALLS: dict[str, Callable[..., Any]] = {
    "ObjectId": lambda text: {"$oid": text},
    "ISODate": lambda text: {"$date": text},
    "Date": lambda text: {"$date": text if isinstance(text, str) else {"$numberLong": str(text)}},
    "NumberInt": lambda number: {"$numberInt": str(number)},
    "NumberLong": lambda number: {"$numberLong": str(number)},
    "NumberDecimal": lambda number: {"$numberDecimal": str(number)},
    "UUID": lambda text: {"$uuid": text},
    "BinData": lambda kind, text: {"$binary": {"base64": text, "subType": f"{kind:02x}"}},
    "Timestamp": lambda time, number: {"$timestamp": {"t": time, "i": number}},
    "RegExp": _regex,
    "MinKey": lambda: {"$minKey": 1},
    "MaxKey": lambda: {"$maxKey": 1},
}


def loads(text: str) -> Any:
    """The value of a text. Raises ValueError for one that is no such JSON."""
    from bson import json_util

    tokens = _tokens(text)[::-1]
    try:
        value = _value(tokens)
        if tokens:
            raise ValueError(f"unexpected {tokens[-1][1]!r}")
        return json_util.loads(json.dumps(value))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _tokens(text: str) -> Tokens:
    tokens: Tokens = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"unexpected {text[at:].strip()[:20]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


def _value(tokens: Tokens) -> Any:
    kind, token = _next(tokens)
    if kind == "text":
        return _plain(token)
    if kind == "number":
        return json.loads(token)
    if kind == "pattern":
        pattern, _, options = token[1:].rpartition("/")
        return _regex(pattern.replace("\\/", "/"), options)
    if token == "{":
        return dict(_members(tokens, "}", _member))
    if token == "[":
        return _members(tokens, "]", _value)
    if kind == "word":
        return _named(token, tokens)
    raise ValueError(f"unexpected {token!r}")


def _named(name: str, tokens: Tokens) -> Any:
    """A constant, or what looks like a call: `new` before it does nothing."""
    if name == "new":
        name = _next(tokens)[1]
    if name in _CALLS and tokens and tokens[-1][1] == "(":
        tokens.pop()
        arguments = _members(tokens, ")", _value)
        try:
            return _CALLS[name](*arguments)
        except TypeError as error:
            raise ValueError(f"{name} takes other arguments") from error
    if name not in _CONSTANTS:
        raise ValueError(f"unexpected {name!r}")
    return _CONSTANTS[name]


def _members(tokens: Tokens, end: str, read: Callable[[Tokens], Any]) -> list[Any]:
    """What `read` reads, between commas, up to the end."""
    members: list[Any] = []
    while tokens and tokens[-1][1] != end:
        members.append(read(tokens))
        if tokens and tokens[-1][1] == ",":
            tokens.pop()
        elif not tokens or tokens[-1][1] != end:
            raise ValueError(f"{end!r} is missing")
    _next(tokens)
    return members


def _member(tokens: Tokens) -> tuple[str, Any]:
    kind, token = _next(tokens)
    if kind not in ("text", "word") or _next(tokens)[1] != ":":
        raise ValueError(f"a name and a colon are expected at {token!r}")
    return _plain(token) if kind == "text" else token, _value(tokens)


def _next(tokens: Tokens) -> tuple[str, str]:
    if not tokens:
        raise ValueError("the text ends too early")
    return tokens.pop()


def _plain(token: str) -> str:
    return _ESCAPED.sub(lambda match: _character(match[1]), token[1:-1])


def _character(escaped: str) -> str:
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _LETTERS.get(escaped, escaped)
