"""Adds tables to a pipeline and removes them, whether it runs or not: its file, its publication, and a signal to it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.config import Config
from tailrace.config.filters import TableFilter, table_named
from tailrace.config.kinds import compile_pattern, expression, split_list
from tailrace.connectors.postgres.admin import operations
from tailrace.connectors.postgres.admin.operations import TableOverview
from tailrace.connectors.postgres.admin.resumable import standing
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server.publication import publish
from tailrace.connectors.postgres.snapshot.capture_changes import NOT_READ
from tailrace.connectors.postgres.snapshot.selects import grants
from tailrace.errors import ConfigError, OffsetError, SourceError
from tailrace.model.table import TableId
from tailrace.pipeline.checkpoint import position
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.edit import edited, stored
from tailrace.pipeline.signaling import Sent, send
from tailrace.snapshot.signals import ADD, INCREMENTAL, REMOVE

INCLUDE, EXCLUDE = "table.include.list", "table.exclude.list"

Tables = set[TableOverview]


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

    Raises ConfigError for tables that are not there or cannot be read so, SourceError, OffsetError where the pipeline
    could not go on from its checkpoint.
    """
    definition = load(file)
    config = definition.config()
    there = operations.tables(config)
    tables = [_named(name, there) for name in names]
    _refuse_unreadable(config, tables, kind)
    captured = _captured(config, there)
    after = captured.union(tables)
    edit = None if after == captured else _edit(file, definition, captured, after, there)
    begun = position(definition.checkpoint)
    has_begun = begun.planned is not None
    lost = standing(config, *begun.offsets)
    if lost is not None and lost.ok is False:
        raise OffsetError(f"the pipeline cannot go on: {lost.what}", where=str(file), remedy=lost.remedy)
    # Before it begins, the publication is the first start's business, which makes it of the file's tables.
    database = config.text("database.dbname")
    published = publish(config, [TableId(database, one.schema, one.table) for one in tables]) if has_begun else []
    if edit is not None and edit.written:
        _write(edit, file, definition)
    signal = _sent(definition, ADD, tables, kind) if has_begun else None
    return Change(tuple(table.name for table in tables), tuple(published), edit, signal)


def _refuse_unreadable(config: Config, tables: Sequence[TableOverview], kind: str) -> None:
    """Raises ConfigError, or SourceError for want of a right, where the rows cannot be read as `kind` says."""
    for table in tables:
        if kind == INCREMENTAL and not table.key:
            remedy = "Read it by --snapshot blocking, which takes no key."
            what = "has no primary key, by which an incremental snapshot goes"
            raise ConfigError(what, where=table.name, remedy=remedy)
    hidden = [] if kind == NOT_READ else [table for table in tables if not table.readable]
    if hidden:
        database = config.text("database.dbname")
        statements = grants(config, [TableId(database, table.schema, table.table) for table in hidden])
        raise SourceError(
            f"{config.text('database.user')} may not read the table, so its rows would never come",
            where=", ".join(table.name for table in hidden),
            remedy=f"{'; '.join(statements)}; or follow its changes alone: --snapshot none",
        )


def remove(file: Path, names: Sequence[str]) -> Change:
    """Capture tables no longer. Raises ConfigError for tables that are not captured, or if none would be left."""
    definition = load(file)
    config = definition.config()
    there = operations.tables(config)
    captured = _captured(config, there)
    tables = [_named(name, there) for name in names]
    for table in tables:
        if table not in captured:
            known = ", ".join(sorted(one.name for one in captured))
            raise ConfigError("is not captured", where=table.name, remedy=f"{file} captures {known}.")
    if captured.issubset(tables):
        remedy = "Stop the pipeline instead; `tailrace drop` removes its slot and publication."
        raise ConfigError("no table would be left", where=str(file), remedy=remedy)
    edit = _edit(file, definition, captured, captured.difference(tables), there)
    if edit.written:
        _write(edit, file, definition)
    has_begun = position(definition.checkpoint).planned is not None
    signal = _sent(definition, REMOVE, tables, None) if has_begun else None
    return Change(tuple(table.name for table in tables), (), edit, signal)


def _named(name: str, there: Sequence[TableOverview]) -> TableOverview:
    """The table that a name means, with or without quotes round its parts. Raises ConfigError."""
    found = [table for table in there if name in table.spellings]
    if len(found) > 1:
        remedy = f"Write {' or '.join(table.written for table in found)}."
        raise ConfigError("means several tables", where=name, remedy=remedy)
    if not found:
        near = difflib.get_close_matches(name, [spelling for table in there for spelling in table.spellings], n=1)
        raise ConfigError("there is no such table", where=name, remedy=f"Did you mean {near[0]}?" if near else None)
    return found[0]


def _sent(definition: Definition, type_: str, tables: Sequence[TableOverview], kind: str | None) -> Sent:
    data: dict[str, object] = {"data-collections": [table.written for table in tables]}
    return send(definition, type_, data if kind is None else {**data, "type": kind})


def _captured(config: Config, tables: Sequence[TableOverview]) -> Tables:
    captures = TableFilter.from_config(config).captures
    return {table for table in tables if captures(table_named(config, table.written))}


def _source(file: Path, definition: Definition) -> Path:
    """The file that holds the connector's properties."""
    return Path(definition.source.config) if isinstance(definition.source.config, str) else file


def _edit(
    file: Path,
    definition: Definition,
    before: set[TableOverview],
    after: set[TableOverview],
    there: list[TableOverview],
) -> Edit:
    """The property that makes the pipeline capture `after` instead of `before`, and whether it can be written."""
    source = _source(file, definition)
    given = stored(source)
    include, exclude = str(given.get(INCLUDE) or ""), str(given.get(EXCLUDE) or "")
    if after > before:
        more = _expressions(after - before)
        name, value = INCLUDE, ",".join([include, *more] if include else more)
    elif include:
        name, value = INCLUDE, _without(include, before - after, after)
    else:
        less = _expressions(before - after)
        name, value = EXCLUDE, ",".join([exclude, *less] if exclude else less)
    try:
        if _captured(resolve({**definition.properties(), name: value}), there) == after:
            return Edit(str(source), name, value, edited(source, name, value) is not None)
    except ConfigError:
        pass  # Lists that exclude each other, for instance: there is nothing that could be written for them.
    return Edit(str(source), name, None, False)


def _expressions(tables: Tables) -> list[str]:
    return [expression(table.schema, table.table) for table in sorted(tables, key=lambda table: table.name)]


def _without(include: str, tables: Tables, left: Tables) -> str:
    """An include list that keeps these tables out: items of theirs alone go, wider ones get an exception."""
    items = []
    for item in split_list(include):
        pattern = compile_pattern(item)
        found = {table for table in tables if pattern.fullmatch(table.name)}
        if found and not any(pattern.fullmatch(table.name) for table in left):
            continue
        escaped = item.replace(",", r"\,")
        but = "|".join(_expressions(found))
        items.append(f"(?!(?:{but})$)(?:{escaped})" if found else escaped)
    return ",".join(items)


def _write(edit: Edit, file: Path, definition: Definition) -> None:
    source = _source(file, definition)
    text = edited(source, edit.property, str(edit.value))
    assert text is not None  # tried before, see _edit
    source.write_text(text, encoding="utf-8")
