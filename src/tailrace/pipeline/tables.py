"""Adds tables to a pipeline and removes them, whether it runs or not: its file, its publication, and a signal to it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.kinds import compile_pattern, expression, split_list
from tailrace.connectors.postgres import operations
from tailrace.connectors.postgres.capture import publish
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.operations import TableOverview
from tailrace.errors import ConfigError
from tailrace.model.table import TableId
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.edit import edited, stored
from tailrace.pipeline.signaling import Sent, send
from tailrace.snapshot.signals import ADD, INCREMENTAL, REMOVE

INCLUDE, EXCLUDE = "table.include.list", "table.exclude.list"


@dataclass(frozen=True)
class Edit:
    """A property of a file and its new value, None where no value of it would do; and whether it is written."""

    file: str
    property: str
    value: str | None
    written: bool


@dataclass(frozen=True)
class Change:
    """What was done. `published` were added to the publication; `edit` is None where the file says it already.

    `signal` is None for a pipeline that has not begun: its first snapshot will see the tables that its file names.
    """

    tables: tuple[str, ...]
    published: tuple[str, ...]
    edit: Edit | None
    signal: Sent | None


def add(file: Path, names: Sequence[str], kind: str = INCREMENTAL) -> Change:
    """Capture more tables; `kind` is how their rows are read: incremental, blocking or none.

    Raises ConfigError for tables that are not there or cannot be read so, SourceError.
    """
    definition = load(file)
    config = definition.config()
    there = {f"{table.schema}.{table.table}": table for table in operations.tables(config)}
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            raise ConfigError("there is no such table", where=name, remedy=f"Did you mean {near[0]}?" if near else None)
        if kind == INCREMENTAL and not there[name].key:
            remedy = "Read it by --snapshot blocking, which takes no key."
            raise ConfigError("has no primary key, by which an incremental snapshot goes", where=name, remedy=remedy)
    captured = _captured(config, there)
    edit = None if captured.issuperset(names) else _edit(file, definition, captured, captured.union(names), there)
    has_begun = position(definition.checkpoint).planned is not None
    # Before it begins, the publication is the first start's business, which makes it of the file's tables.
    written = [TableId("", there[name].schema, there[name].table).written for name in names]
    published = publish(config, written) if has_begun else []
    if edit is not None and edit.written:
        _write(edit, file, definition)
    return Change(tuple(names), tuple(published), edit, _sent(definition, ADD, written, kind) if has_begun else None)


def remove(file: Path, names: Sequence[str]) -> Change:
    """Capture tables no longer. Raises ConfigError for tables that are not captured, or if none would be left."""
    definition = load(file)
    config = definition.config()
    there = {f"{table.schema}.{table.table}": table for table in operations.tables(config)}
    captured = _captured(config, there)
    for name in names:
        if name not in captured:
            raise ConfigError("is not captured", where=name, remedy=f"{file} captures {', '.join(sorted(captured))}.")
    if captured.issubset(names):
        remedy = "Stop the pipeline instead; `tailrace drop` removes its slot and publication."
        raise ConfigError("no table would be left", where=str(file), remedy=remedy)
    edit = _edit(file, definition, captured, captured.difference(names), there)
    if edit.written:
        _write(edit, file, definition)
    has_begun = position(definition.checkpoint).planned is not None
    written = [TableId("", there[name].schema, there[name].table).written for name in names]
    return Change(tuple(names), (), edit, _sent(definition, REMOVE, written, None) if has_begun else None)


def _sent(definition: Definition, type_: str, names: Sequence[str], kind: str | None) -> Sent:
    data: dict[str, object] = {"data-collections": list(names)}
    return send(definition, type_, data if kind is None else {**data, "type": kind})


def _captured(config: Config, there: Mapping[str, TableOverview]) -> set[str]:
    captures = TableFilter.from_config(config).captures
    return {name for name, table in there.items() if captures(table.schema, table.table)}


def _source(file: Path, definition: Definition) -> Path:
    """The file that holds the connector's properties."""
    return Path(definition.source.config) if isinstance(definition.source.config, str) else file


def _edit(
    file: Path, definition: Definition, before: set[str], after: set[str], there: Mapping[str, TableOverview]
) -> Edit:
    """The property that makes the pipeline capture `after` instead of `before`, and whether it can be written."""
    source = _source(file, definition)
    given = stored(source)
    include, exclude = str(given.get(INCLUDE) or ""), str(given.get(EXCLUDE) or "")
    if after > before:
        more = [expression(*name.split(".", 1)) for name in sorted(after - before)]
        name, value = INCLUDE, ",".join([include, *more] if include else more)
    elif include:
        name, value = INCLUDE, _without(include, before - after, after)
    else:
        less = [expression(*name.split(".", 1)) for name in sorted(before - after)]
        name, value = EXCLUDE, ",".join([exclude, *less] if exclude else less)
    try:
        if _captured(resolve({**definition.properties(), name: value}), there) == after:
            return Edit(str(source), name, value, edited(source, name, value) is not None)
    except ConfigError:
        pass  # Lists that exclude each other, for instance: there is nothing that could be written for them.
    return Edit(str(source), name, None, False)


def _without(include: str, names: set[str], left: set[str]) -> str:
    """An include list that keeps these names out: items of theirs alone go, wider ones get an exception."""
    items = []
    for item in split_list(include):
        found = sorted(name for name in names if compile_pattern(item).fullmatch(name))
        if found and not any(compile_pattern(item).fullmatch(name) for name in left):
            continue
        escaped = item.replace(",", r"\,")
        but = "|".join(expression(*name.split(".", 1)) for name in found)
        items.append(f"(?!(?:{but})$)(?:{escaped})" if found else escaped)
    return ",".join(items)


def _write(edit: Edit, file: Path, definition: Definition) -> None:
    source = _source(file, definition)
    text = edited(source, edit.property, str(edit.value))
    assert text is not None  # tried before, see _edit
    source.write_text(text, encoding="utf-8")
