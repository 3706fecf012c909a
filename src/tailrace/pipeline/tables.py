"""Adds and removes tables of a pipeline, running or not: changes its file and its source, and sends a signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.kinds import expression, join_list, split_list
from tailrace.connectors.ports import Admin, TableOverview
from tailrace.errors import ConfigError, OffsetError, SourceError
from tailrace.javalike.patterns import compile_pattern
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.edit import edited, rewrite, stored
from tailrace.pipeline.nearest import meant_tables
from tailrace.pipeline.query_id import position_of
from tailrace.pipeline.signaling import Sent, send
from tailrace.snapshot.signals import ADD, INCREMENTAL, REMOVE
from tailrace.transforms.registry import CHECKS

# How the rows of an added table are read, if not by a snapshot.
NOT_READ = "none"

Tables = set[TableOverview]


@dataclass(frozen=True)
class PropertyEdit:
    """A property of a file and its new value, None where no value of it would do; and whether it is written."""

    file: str
    property: str
    value: str | None
    written: bool


@dataclass(frozen=True)
class TablesChange:
    """What was done. `published` were added to what the source sends, `published_in` says where.

    `edit` is None if the file says it already, `signal` None for a pipeline that has not begun: its first snapshot will
    see the tables that its file names.
    """

    tables: tuple[str, ...]
    published: tuple[str, ...]
    edit: PropertyEdit | None
    signal: Sent | None
    published_in: str = ""


def add(file: Path, names: Sequence[str], kind: str = INCREMENTAL) -> TablesChange:
    """Capture more tables; `kind` is how their rows are read: incremental, blocking or none.

    Raises ConfigError for tables that are not there or cannot be read so, SourceError, OffsetError where the pipeline
    could not continue from its checkpoint.
    """
    definition = load(file)
    config, admin = definition.config(), definition.admin()
    overview = admin.overview()
    tables = [_named(name, overview) for name in names]
    _refuse(admin, tables, kind)
    captured = _captured(config, overview)
    after = captured.union(tables)
    edit = None if after == captured else _edit(file, definition, captured, after, overview)
    begun = position_of(definition)
    has_begun = begun.planned is not None
    lost = admin.resumable(begun.offsets)
    if lost is not None and lost.ok is False:
        raise OffsetError(f"the pipeline cannot continue: {lost.what}", where=str(file), remedy=lost.remedy)
    # Before it begins, the first start has the source send the file's tables.
    published = admin.extend([table.id for table in tables]) if has_begun else []
    if edit is not None and edit.written:
        _write(edit, file, definition)
    signal = _sent(definition, ADD, tables, kind) if has_begun else None
    return TablesChange(tuple(table.name for table in tables), tuple(published), edit, signal, admin.extended())


def _refuse(admin: Admin, tables: Sequence[TableOverview], kind: str) -> None:
    """Raises ConfigError, or SourceError for want of a right, with all that keeps the tables from being added."""
    keyless = [table.name for table in tables if kind == INCREMENTAL and not table.has_key]
    hidden = [] if kind == NOT_READ else [table for table in tables if not table.is_readable]
    problems = admin.unextendable([table.id for table in tables])
    if hidden:
        problems.insert(0, admin.unreadable([table.id for table in hidden]))
    what = [f"{', '.join(keyless)}: no primary key, by which an incremental snapshot goes"] if keyless else []
    what += [each.what for each in problems]
    remedies = [each.remedy for each in problems if each.remedy]
    if keyless:
        remedies.append("read what has no primary key by --snapshot blocking, which takes none")
    if hidden:
        remedies.append("to follow changes alone, without the right to read: --snapshot none")
    if what:
        where = ", ".join(table.name for table in tables)
        raise (SourceError if problems else ConfigError)("; ".join(what), where=where, remedy="; ".join(remedies))


def remove(file: Path, names: Sequence[str]) -> TablesChange:
    """Capture tables no longer. Raises ConfigError for tables that are not captured, or if none would be left."""
    definition = load(file)
    config = definition.config()
    overview = definition.admin().overview()
    captured = _captured(config, overview)
    tables = [_named(name, overview) for name in names]
    for table in tables:
        if table not in captured:
            names_captured = ", ".join(sorted(table.name for table in captured))
            raise ConfigError("is not captured", where=table.name, remedy=f"{file} captures {names_captured}.")
    if captured.issubset(tables):
        remedy = "Stop the pipeline instead; `tailrace drop` removes what it created on the server."
        raise ConfigError("no table would be left", where=str(file), remedy=remedy)
    edit = _edit(file, definition, captured, captured.difference(tables), overview)
    has_begun = position_of(definition).planned is not None
    if edit.written:
        _write(edit, file, definition)
    signal = _sent(definition, REMOVE, tables, None) if has_begun else None
    return TablesChange(tuple(table.name for table in tables), (), edit, signal)


def _named(name: str, overview: Sequence[TableOverview]) -> TableOverview:
    """The table that a name means, with or without quotes round its parts. Raises ConfigError."""
    matches = [table for table in overview if name in table.spellings]
    if len(matches) > 1:
        remedy = f"Write {' or '.join(table.written for table in matches)}."
        raise ConfigError("means several tables", where=name, remedy=remedy)
    if not matches:
        remedy = (
            meant_tables(name, [table.name for table in overview])
            or "Write it with its schema or database, as schema.table."
        )
        raise ConfigError("there is no such table", where=name, remedy=remedy)
    return matches[0]


def _sent(definition: Definition, type_: str, tables: Sequence[TableOverview], kind: str | None) -> Sent:
    data: dict[str, object] = {"data-collections": [table.written for table in tables]}
    return send(definition, type_, data if kind is None else {**data, "type": kind})


def _captured(config: Config, tables: Sequence[TableOverview]) -> Tables:
    captures = TableFilter.from_config(config).captures
    return {table for table in tables if captures(table.id)}


def _source(file: Path, definition: Definition) -> Path:
    """The file that holds the connector's properties."""
    return Path(definition.source.config) if isinstance(definition.source.config, str) else file


def _edit(
    file: Path,
    definition: Definition,
    before: set[TableOverview],
    after: set[TableOverview],
    overview: list[TableOverview],
) -> PropertyEdit:
    """The property that makes the pipeline capture `after` instead of `before`, and whether it can be written."""
    source, package = _source(file, definition), definition.package()
    given = stored(source)
    include, exclude = (_listed(given.get(name)) for name in (package.include_list, package.exclude_list))
    if after > before:
        added = _expressions(after - before)
        name, value = package.include_list, ",".join([include, *added] if include else added)
    elif include:
        name, value = package.include_list, _without(include, before - after, after)
    else:
        removed = _expressions(before - after)
        name, value = package.exclude_list, ",".join([exclude, *removed] if exclude else removed)
    try:
        if _captured(package.resolve({**definition.properties(), name: value}, CHECKS), overview) == after:
            return PropertyEdit(str(source), name, value, edited(source, name, value) is not None)
    except ConfigError:
        pass  # Lists that exclude each other, for instance: there is nothing that could be written for them.
    return PropertyEdit(str(source), name, None, False)


def _listed(given: object) -> str:
    """A list as the text that the property has, whether the file has a text or a list."""
    return join_list(given) if isinstance(given, list) else str(given or "")


def _expressions(tables: Tables) -> list[str]:
    return [expression(*table.id.parts[-2:]) for table in sorted(tables, key=lambda table: table.name)]


def _without(include: str, tables: Tables, left: Tables) -> str:
    """An include list that keeps these tables out: items of theirs alone go, wider ones get an exception."""
    items = []
    for item in split_list(include):
        pattern = compile_pattern(item)
        excluded = {table for table in tables if pattern.fullmatch(table.id.filtered)}
        if excluded and not any(pattern.fullmatch(table.id.filtered) for table in left):
            continue
        escaped = item.replace(",", r"\,")
        exceptions = "|".join(_expressions(excluded))
        items.append(f"(?!(?:{exceptions})$)(?:{escaped})" if excluded else escaped)
    return ",".join(items)


def _write(edit: PropertyEdit, file: Path, definition: Definition) -> None:
    source = _source(file, definition)
    text = edited(source, edit.property, str(edit.value))
    assert text is not None  # tried before, see _edit
    rewrite(source, text, f"set {edit.property} to {edit.value} there by hand, and give the command again")
