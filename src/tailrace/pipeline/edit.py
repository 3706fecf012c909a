"""Changes one property in a pipeline's or connector's file and preserves every other character, also comments."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import textwrap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tailrace.config.dialects import parse_properties
from tailrace.config.kinds import split_list
from tailrace.errors import ConfigError


@dataclass(frozen=True)
class _Form:
    """How a kind of file writes a property: an expression for one, how to write one, and what separates two."""

    expression: str
    write: Callable[[str, str | list[str]], str]
    separator: str
    parse: Callable[[str], Any]


_JSON = _Form(
    r'(?P<indent>(?<=\n)[ \t]*|)"{}"[ \t]*:[ \t]*"(?:[^"\\\n]|\\.)*"(?P<comment>)',
    lambda name, value: f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}",
    ",",
    json.loads,
)
_PROPERTIES = _Form(
    r"^(?P<indent>[ \t]*){}[ \t]*[=:].*(?P<comment>)$",
    lambda name, value: f"{name}={value}".replace("\\", r"\\"),
    "",
    parse_properties,
)
_YAML = _Form(
    r"""^(?P<indent>[ \t]+)(?P<quote>["']?){}(?P=quote)[ \t]*:"""
    r"""(?:[ \t]*(?:\n(?P=indent)[ \t]*-[ \t].*)+|[ \t].*?)(?P<comment>[ \t]+#[^'"\n]*)?$""",
    lambda name, value: yaml.safe_dump({name: value}, width=1_000_000, allow_unicode=True).strip(),
    "",
    yaml.safe_load,
)


def stored(file: Path) -> dict[str, Any]:
    """The connector's properties as they stand in a file of either kind, `${env:NAME}` unfilled."""
    return _properties(_form(file).parse(file.read_text(encoding="utf-8")))


def rewrite(file: Path, text: str, remedy: str) -> None:
    """Give a file another text, whole or not at all, and leave its mode as it is. Raises ConfigError.

    A disk that becomes full would truncate a file that is written in place.
    """
    target = file.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            draft.touch(mode=0o600)
            shutil.copymode(target, draft)
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(file), remedy=remedy) from error


def edited(file: Path, name: str, value: str) -> str | None:
    """The file's text with the property set; None where that cannot be done without touching the rest.

    A property that the file does not have yet is put before the last one that can be found in the text.
    """
    form, text = _form(file), file.read_text(encoding="utf-8")
    wanted = copy.deepcopy(form.parse(text))
    given = _properties(wanted)
    places = [name] if name in given else [*reversed(given)]
    new = split_list(value) if isinstance(given.get(name), list) else value
    given[name] = new
    texts = (_at(place, form, text, name, new) for place in places)
    return next((new for new in texts if new is not None and _means(form, new, wanted)), None)


def _at(place: str, form: _Form, text: str, name: str, value: str | list[str]) -> str | None:
    """The text with the property in the place of its old entry, or before another one; None if that is ambiguous."""

    def written(match: re.Match[str]) -> str:
        entry = textwrap.indent(form.write(name, value), match["indent"])
        if place == name:
            return entry + (match["comment"] or "")
        return entry + form.separator + ("\n" if match["indent"] or not form.separator else " ") + match[0]

    new, count = re.compile(form.expression.format(re.escape(place)), re.MULTILINE).subn(written, text)
    return new if count == 1 else None


def _means(form: _Form, text: str, wanted: dict[str, Any]) -> bool:
    try:
        return bool(form.parse(text) == wanted)
    except (ValueError, yaml.YAMLError, ConfigError):
        return False


def _form(file: Path) -> _Form:
    return {".json": _JSON, ".properties": _PROPERTIES}.get(file.suffix, _YAML)


def _properties(document: dict[str, Any]) -> dict[str, Any]:
    """Where the connector's properties are in a document: in a pipeline, in a connector's request, or all there is."""
    if isinstance(document.get("source"), dict):
        document = document["source"]
    properties = document.get("config")
    return properties if isinstance(properties, dict) else document
