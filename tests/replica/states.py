"""The states of a replica's tables as `tailrace status --json` shows them, and which were marked incomplete so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.connectors.notifications import REPLICA
from tailrace.operate.status import look
from tailrace.pipeline.definition import Definition

SET_ASIDE, INCOMPLETE, READING, GONE = "aside", "incomplete", "reading", "gone"


@dataclass(frozen=True)
class TableState:
    """A state other than complete, its reason, and whether the table is read again: soon, or not by itself."""

    state: str
    reason: str
    is_asked: bool = False
    lasts: bool = False

    @property
    def passes(self) -> bool:
        """Whether the pipeline ends the state by itself."""
        return not self.lasts and (self.is_asked or self.state in (INCOMPLETE, READING))


@dataclass(frozen=True)
class States:
    """The states of a pipeline's tables; its notifications are in the file `notifications`."""

    definition: Definition
    notifications: Path

    def now(self) -> Mapping[str, TableState]:
        """The tables that are not complete, by their names."""
        shown = look(self.definition).to_json()
        states = {each["table"]: TableState(INCOMPLETE, each["why"]) for each in shown["incomplete"]}
        for each in shown["replica"]:
            if each["state"] != "complete":
                takes = each["takes"] or ""
                is_asked, lasts = takes.startswith("it is "), takes.startswith("change this")
                states[each["table"]] = TableState(each["state"], each["why"] or "", is_asked, lasts)
        asides = {}
        for each in shown["set_aside"]:
            name = _name(each["table"])
            is_asked = name in states and states[name].is_asked
            asides[name] = TableState(SET_ASIDE, each["error"], is_asked)
        return {**states, **asides}

    @property
    def marked(self) -> Mapping[str, str]:
        """The tables that were marked incomplete at any time, with the first reason of each."""
        marked: dict[str, str] = {}
        lines = self.notifications.read_text(encoding="utf-8").splitlines() if self.notifications.exists() else []
        for notice in map(json.loads, lines):
            if notice["aggregate_type"] == REPLICA and notice["type"] == "INCOMPLETE":
                more = notice["additional_data"]
                marked.setdefault(more["table"], more["reason"])
        return marked


def _name(unique: str) -> str:
    """The name as filters have it of a table's unique one."""
    return unique.replace("!2E", ".").replace("!21", "!")
