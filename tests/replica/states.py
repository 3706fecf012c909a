"""The states of a replica's tables as `tailrace status --json` shows them, and which were marked incomplete so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.cli.status import look
from tailrace.pipeline.definition import Definition

SET_ASIDE, INCOMPLETE, READING, GONE = "set aside", "incomplete", "reading", "gone"


@dataclass(frozen=True)
class TableState:
    """A state other than complete, and its reason."""

    state: str
    reason: str

    @property
    def passes(self) -> bool:
        """Whether the pipeline ends the state by itself."""
        return self.state in (INCOMPLETE, READING)


@dataclass
class States:
    """The states of a pipeline's tables, looked at again and again; `marked` keeps the first reason of each table."""

    definition: Definition
    marked: dict[str, str] = field(default_factory=dict)

    def now(self) -> Mapping[str, TableState]:
        """The tables that are not complete."""
        shown = look(self.definition).to_json()
        states = {_name(each["table"]): TableState(SET_ASIDE, each["error"]) for each in shown["set_aside"]}
        states |= {each["table"]: TableState(INCOMPLETE, each["why"]) for each in shown["incomplete"]}
        for table, found in states.items():
            if found.state == INCOMPLETE:
                self.marked.setdefault(table, found.reason)
        return states


def _name(unique: str) -> str:
    """The name as filters have it of a table's unique one."""
    return unique.replace("!2E", ".").replace("!21", "!")
