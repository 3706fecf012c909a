"""Converts the validation library's errors to sentences about the keys of a pipeline file.

Lists beside them what is wrong of the connector's properties, which have rules of their own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tailrace.config.dialects import from_mapping, read
from tailrace.connectors import registry
from tailrace.errors import ConfigError
from tailrace.transforms.registry import CHECKS

_WORDS = {
    "missing": "is missing",
    "string_type": "should be text",
    "model_type": "should be a mapping",
    "dict_type": "should be a mapping",
    "tuple_type": "should be a list, with `- ` before each entry",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "too_short": "is empty",
    "string_too_short": "is empty",
    "invalid_key": "a key should be text: put it in quotes",
}
# The library's name of a key where that is wrong, not its value.
_KEY = "[key]"


def sentences(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """A line for each problem: the key as written in the file, what is wrong, and the nearest known key."""
    return [_sentence(problem, model) for problem in error.errors(include_url=False)]


def _sentence(problem: Any, model: type[BaseModel]) -> str:
    parts = [part for part in problem["loc"] if part != _KEY]
    is_key = _KEY in problem["loc"]
    where = "".join(f"[{part}]" if isinstance(part, int) and not is_key else f".{part}" for part in parts)
    return f"{where.removeprefix('.')}: {_what(problem, [str(part) for part in parts], is_key, model)}"


def _what(problem: Any, path: list[str], is_key: bool, model: type[BaseModel]) -> str:
    kind = problem["type"]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(path[-1], list(_known_beside(path, model)), n=1)
        return "unknown key" + (f"; did you mean {near[0]}?" if near else "")
    if kind == "literal_error":
        expected = problem["ctx"]["expected"]
        return f"unknown key; known are {expected}" if is_key else f"should be {expected}"
    if is_key:
        return _WORDS["invalid_key"]
    message = _WORDS.get(kind, str(problem["msg"]).removeprefix("Value error, "))
    return f"{message[0].lower()}{message[1:]}"


def _known_beside(path: list[str], model: type[BaseModel]) -> Iterator[str]:
    """The keys that are allowed in place of the last part of `path`."""
    for part in path[:-1]:
        fields = dict(zip(keys(model), model.model_fields.values(), strict=True))
        options = _models(fields[part].annotation) if part in fields else []
        if not options:
            return
        model = options[0]
    yield from keys(model)


def keys(model: type[BaseModel]) -> list[str]:
    """The keys of a part of the file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models(part)]


def property_problems(source: object, base: Path) -> list[str]:
    """What is wrong of the properties in the part `source` of a file, as far as it can be read; `base`: its folder."""
    config = source.get("config") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or not isinstance(config, str | Mapping):
        return []
    if isinstance(config, Mapping) and not all(isinstance(name, str) for name in config):
        return []
    connector = source.get("connector")
    try:
        given = read(base / config) if isinstance(config, str) else from_mapping(config)
        registry.of_source(connector if isinstance(connector, str) else None, given).load().resolve(given, CHECKS)
    except ConfigError as error:
        return f"source.config: {error}".replace("\n  Remedy: ", "; remedy: ").splitlines()
    return []
