"""Reads a connector's configuration from Connect's JSON, a .properties file, or a mapping of options."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tailrace.config.kinds import join_list
from tailrace.config.option import without_salt
from tailrace.config.options.spark import TAILRACE_PROPERTIES
from tailrace.config.references import filled
from tailrace.errors import ConfigError

PACKED = TAILRACE_PROPERTIES.name

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(u)|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")


def read(path: str | Path, *, as_written: bool = False) -> dict[str, str]:
    """The properties of a file: JSON (flat, or `{name, config}` as Connect's REST API takes it) or Java properties.

    References such as `${env:NAME}` are filled in, or left `as_written`. Raises ConfigError when the file is missing or
    is neither, and for a property that is given twice: Java takes the last one, and so fewer tables than both lists of
    them name.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read the configuration: {reason}", where=str(path)) from error
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return from_mapping(_connector_json(text, str(path)), as_written=as_written)
    _refuse_repeated(text, str(path))
    return from_mapping(parse_properties(text, str(path)), as_written=as_written)


def from_mapping(properties: Mapping[str, object], *, as_written: bool = False) -> dict[str, str]:
    """Properties as text, with `tailrace.properties` unpacked and references filled in, or left `as_written`.

    `tailrace.properties` is a JSON object holding properties whose names must keep their case; a property given beside
    it wins, in the spelling of the JSON.
    """
    beside = {name: value for name, value in properties.items() if name.lower() != PACKED}
    packed = next((value for name, value in properties.items() if name.lower() == PACKED), None)
    out = {} if packed is None else json_object(str(packed), PACKED)
    spelling = {name.lower(): name for name in out}
    out.update({spelling.get(name.lower(), name): value for name, value in beside.items()})
    texts = {name: _text(name, value) for name, value in out.items() if value is not None}
    if as_written:
        return texts
    return {name: filled(name, text, parse_properties) for name, text in texts.items()}


def parse_properties(text: str, where: str = "properties") -> dict[str, str]:
    """The pairs of a Java .properties text. Raises ConfigError for a malformed `\\uxxxx`."""
    return {key: value for _, key, value in _pairs(text, where)}


def _pairs(text: str, where: str) -> Iterator[tuple[int, str, str]]:
    """Line, key and value of each entry of a .properties text."""
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # matches the empty text, too
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        yield number, _unescaped(key[0], where), _unescaped(line[separator.end() :], where)


def _refuse_repeated(text: str, where: str) -> None:
    lines: dict[str, int] = {}
    for line, name, _ in _pairs(text, where):
        if name in lines:
            raise _repeated(name, [lines[name], line], where)
        lines[name] = line


def _repeated(name: str, lines: list[int], where: str) -> ConfigError:
    places = f", see the lines {' and '.join(map(str, lines))}" if len(lines) > 1 else ""
    what = f"the property {without_salt(name)} is given twice{places}"
    return ConfigError(what, where=where, remedy="one of the two would be ignored: join or remove them")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines and the numbers of their ends, without comments and leading blanks.

    One that ends in an odd number of backslashes joins the next.
    """
    whole, number = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.lstrip(" \t\f")
        if not whole and (not line or line[0] in "#!"):
            continue
        whole += line
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield number, whole
        whole = ""
    if whole:
        yield number, whole


def _unescaped(text: str, where: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[2]:
            raise ConfigError(r"malformed \uxxxx encoding", where=where, remedy=r"four hexadecimal digits follow \u")
        return chr(int(match[1], 16)) if match[1] else _CONTROL.get(match[3], match[3])

    # a pair of surrogate escapes is one character
    return _ESCAPE.sub(replaced, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _connector_json(text: str, where: str) -> dict[str, object]:
    node = json_object(text, where)
    config = node.get("config")
    if not isinstance(config, dict):
        _refuse_misspelt(node, where)
        return node
    return {"name": node.get("name"), **config}


def _refuse_misspelt(node: Mapping[str, object], where: str) -> None:
    """Raises ConfigError for properties that lie below a key like `config`."""
    for name, value in node.items():
        if isinstance(value, dict) and difflib.get_close_matches(name.lower(), ["config"]):
            raise ConfigError(f"unknown key {name}", where=where, remedy="did you mean config?")


def json_object(text: str, where: str) -> dict[str, object]:
    """The object that a JSON text is. Raises ConfigError for another text, and for a name that is given twice."""

    def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            name = next(name for name in names if names.count(name) > 1)
            raise _repeated(name, _lines_of(name, text), where)
        return members

    try:
        node = json.loads(text, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        # the error's own text names a place, never the document
        what = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise ConfigError(what, where=where) from error
    if not isinstance(node, dict):
        raise ConfigError("is not a JSON object", where=where, remedy='write {"property": "value", ...}')
    return node


def _lines_of(name: str, text: str) -> list[int]:
    """The lines where a name stands as a key, in this object of the JSON text or in another."""
    keys = re.finditer(rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:", text)
    return sorted({text.count("\n", 0, key.start()) + 1 for key in keys})


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return join_list(_text(name, item) for item in value)
    raise ConfigError(f"a text, number, boolean or list is expected, not {type(value).__name__}", where=name)
