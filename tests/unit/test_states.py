"""The tables of states are complete, and docs/offsets.md has them as the modules do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from tailrace.connectors import offset
from tailrace.pipeline import lifecycle
from tailrace.sinks.replica import states
from tailrace.snapshot import progress, work

PAGE = Path(__file__).parents[2] / "docs" / "offsets.md"
TABLES: Mapping[ModuleType, Iterable[str]] = {
    offset: offset.FOLLOWING,
    progress: [field.name for field in fields(progress.Progress)],
    work: [each.value for each in work.BatchWork],
    lifecycle: [each.value for each in lifecycle.LifecycleState],
    states: [states.COMPLETE, states.READING, states.INCOMPLETE, states.ASIDE, states.GONE],
}
FOLLOWING: Mapping[ModuleType, Mapping[str, Iterable[str]]] = {
    offset: offset.FOLLOWING,
    lifecycle: {state.value: [each.value for each in following] for state, following in lifecycle.FOLLOWING.items()},
}


def lines(module: ModuleType) -> list[str]:
    """The lines of the table in a module's docstring."""
    return [line for line in (module.__doc__ or "").splitlines() if line.startswith("|")]


def cells(module: ModuleType) -> list[list[str]]:
    """The cells of its rows."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines(module)[2:]]


@pytest.mark.parametrize("module", TABLES, ids=lambda module: module.__name__)
def test_each_state_has_one_row(module: ModuleType) -> None:
    names = [name.strip() for row in cells(module) for name in row[0].split(",")]
    assert sorted(names) == sorted(TABLES[module])


@pytest.mark.parametrize("module", FOLLOWING, ids=lambda module: module.__name__)
def test_a_row_says_what_may_follow(module: ModuleType) -> None:
    said = {row[0]: {name.strip() for name in row[-1].split(",")} for row in cells(module)}
    assert said == {state: set(following) for state, following in FOLLOWING[module].items()}


@pytest.mark.parametrize("module", TABLES, ids=lambda module: module.__name__)
def test_the_page_has_the_table(module: ModuleType) -> None:
    table = "\n".join(lines(module))
    assert table in PAGE.read_text(encoding="utf-8"), f"put this into {PAGE.name}:\n{table}"
