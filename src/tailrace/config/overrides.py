"""The SELECTs that a snapshot reads instead of tables: `snapshot.select.statement.overrides` and its parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tailrace.config.options.databases import (
    SNAPSHOT_SELECT_STATEMENT_OVERRIDES,
    SNAPSHOT_SELECT_STATEMENT_OVERRIDES_TABLE,
)
from tailrace.config.options.snapshot import SNAPSHOT_INCLUDE_COLLECTION_LIST
from tailrace.config.resolve import Config, Problem

OVERRIDES = SNAPSHOT_SELECT_STATEMENT_OVERRIDES.name
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_BRACKETED = re.compile(r"\[((?:[^\]]|\]\])*)\]")


def overrides(config: Config) -> dict[str, str]:
    """The SELECTs by table. Names may have quotes round their parts, as in Debezium."""
    given = _statements(config)
    return {table: given[table.lower()] for table in _listed(config) if table.lower() in given}


def origin_of(table: str, *, of_signal: bool) -> str:
    """Where the user corrects the SELECT of a table."""
    return "the conditions of the signal (additional-conditions)" if of_signal else f"{OVERRIDES}.{table}"


def check_overrides(config: Config) -> Iterator[Problem]:
    """A table that is listed without its SELECT would be read as a whole."""
    given = _statements(config)
    for table in _listed(config):
        if table.lower() not in given:
            name = f"{OVERRIDES}.{table}"
            yield Problem(name, "A value is required", f"{OVERRIDES} lists the table; take it out to read all of it")


def unmatched(config: Config, tables: Collection[str]) -> Iterator[tuple[str, str]]:
    """What of a snapshot's filters and SELECTs concerns none of the captured tables, and what to do about it, each."""
    for pattern in config[SNAPSHOT_INCLUDE_COLLECTION_LIST]:
        if not any(pattern.fullmatch(name) for name in tables):
            remedy = "write whole names of captured tables, schema.table, or take it out of the list"
            yield f"snapshot.include.collection.list: no captured table matches {pattern.pattern}", remedy
    listed = _listed(config)
    for name in listed:
        if not any(table == name or ("." in name and table.endswith(f".{name}")) for table in tables):
            remedy = "write the name as the catalog has it, schema.table, or take it out of the list"
            yield f"{OVERRIDES}: no captured table is called {name}", remedy
    captured = {name.lower() for name in listed}
    for name in _statements(config):
        if name not in captured:
            yield f"{OVERRIDES}.{name} has no effect, as the table is not listed", f"name it in {OVERRIDES}"


def _listed(config: Config) -> list[str]:
    # A source that is not read by SELECTs has no such property.
    return [_unquoted(config, name) for name in config.get(SNAPSHOT_SELECT_STATEMENT_OVERRIDES, ())]


def _statements(config: Config) -> dict[str, str]:
    """By table, in small letters: names of properties are taken in any case."""
    given = config.members(SNAPSHOT_SELECT_STATEMENT_OVERRIDES_TABLE)
    return {_unquoted(config, name.lower().removeprefix(f"{OVERRIDES}.")): value for name, value in given.items()}


def _unquoted(config: Config, name: str) -> str:
    if config.naming.has_brackets:
        name = _BRACKETED.sub(lambda match: match[1].replace("]]", "]"), name)
    return _QUOTED.sub(lambda match: match[1].replace('""', '"'), name)
