"""Reads a pipeline file, which is YAML. No error shows a value of the file, as it may be a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.error import MarkedYAMLError
from yaml.reader import ReaderError

from tailrace.config.dialects import json_object
from tailrace.config.option import without_salt
from tailrace.errors import ConfigError
from tailrace.override import override

_REMEDY = "Write values with special characters in single quotes, such as 'a#b: @c'."
# A text that PyYAML quotes in its reason, as repr writes it.
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
# Keys without which a file is no pipeline.
_PIPELINE = ("source", "sink", "checkpoint")
_MERGE = "tag:yaml.org,2002:merge"


class _Repeated(MarkedYAMLError):
    """A key that a mapping has twice."""


class _Loader(yaml.SafeLoader):
    """PyYAML's, which takes the last value of a key, and fails in classes of its own for odd dates."""

    @override
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Refuse a key that is given twice; what `<<` merges in may be given again, and is not there yet."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if (key.tag, key.value) in lines:
                first = lines[key.tag, key.value]
                what = f"the key {without_salt(key.value)} is given twice, first in line {first}"
                raise _Repeated(problem=what, problem_mark=key.start_mark)
            lines[key.tag, key.value] = key.start_mark.line + 1
        return node

    @override
    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Say where a value is that its type refuses, such as the date 2026-02-30."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            what = f"a value looks like YAML's type {node.tag.rpartition(':')[2]}, but is none"
            raise MarkedYAMLError(problem=what, problem_mark=node.start_mark) from error


def read_pipeline(path: Path) -> dict[str, Any]:
    """The mapping in a pipeline file. Raises ConfigError, also where the file is a connector's configuration."""
    text = _text(path)
    if path.suffix == ".properties":
        raise _no_pipeline(path)
    try:
        content = _parsed(text, path)
    except ConfigError:
        # Debezium's JSON may be no YAML, as it may be indented by tabs.
        if path.suffix == ".json" and text.lstrip().startswith("{"):
            content = json_object(text, str(path))
        else:
            raise
    if not isinstance(content, dict):
        raise ConfigError("holds no pipeline", where=str(path), remedy="It needs source, sink and checkpoint.")
    if _is_connector(content):
        raise _no_pipeline(path)
    return content


def _is_connector(content: Mapping[Any, Any]) -> bool:
    """Whether these are a connector's properties, alone or below `config`: their names have dots."""
    if any(key in content for key in _PIPELINE):
        return False
    below = [value for value in content.values() if isinstance(value, Mapping)]
    return any("." in str(name) for part in (content, *below) for name in part)


def _no_pipeline(path: Path) -> ConfigError:
    remedy = (
        f"Write a pipeline file with `source: {{config: {path.name}}}`, a `sink` and a `checkpoint`, and name that; "
        f"`tailrace check {path}` checks the configuration alone."
    )
    return ConfigError("is a connector's configuration, and no pipeline file", where=str(path), remedy=remedy)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        remedy = "`tailrace init` writes a pipeline file from a database."
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise ConfigError("is no UTF-8 text", where=str(path), remedy="Save it in UTF-8.") from error


def _parsed(text: str, path: Path) -> Any:
    """What a YAML text holds. Raises ConfigError, with the line, for no YAML and for a key that is given twice."""
    # The error of PyYAML prints lines of the file, so it is not chained.
    try:
        return yaml.load(text, _Loader)
    except _Repeated as error:
        remedy = "One of the two would be ignored: join or remove them."
        raise ConfigError(str(error.problem), where=_place(path, error), remedy=remedy) from None
    except MarkedYAMLError as error:
        reason = _QUOTED.sub(_hidden, str(error.problem or error.context))
        raise ConfigError(f"is no YAML: {reason}", where=_place(path, error), remedy=_REMEDY) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"is no YAML: the character U+{int(error.character):04X} is not allowed"
        raise ConfigError(what, where=f"{path}, line {line}", remedy="Remove it.") from None


def _place(path: Path, error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return str(path) if mark is None else f"{path}, line {mark.line + 1}, column {mark.column + 1}"


def _hidden(match: re.Match[str]) -> str:
    """Single characters and names of tokens stay; longer texts are names of aliases and tags, or parts of a value."""
    text = match[1] or match[2] or ""
    is_token = text.startswith("<") and text.endswith(">")
    return match[0] if len(text) <= 2 or is_token else "'...'"
