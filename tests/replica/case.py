"""Cases of replicas: a golden scenario's folder, perhaps with a `replica.json` (README.md beside this file)."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.behaviour.engines import sink
from tests.golden.databases.database import GoldenServer
from tests.golden.scenario import Scenario

_KEYS = {"config", "sink", "ddl", "process", "server", "aside", "incomplete", "left", "marked"}
ANY = "*"


@dataclass(frozen=True)
class Allowed:
    """Tables that may end in a state, each with an expression that its reason contains; ANY stands for all tables."""

    tables: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(given: object) -> Allowed:
        """From `true`, a list of tables, or a map of tables to expressions. Raises ValueError for anything else."""
        if isinstance(given, dict):
            return Allowed({str(table): str(reason) for table, reason in given.items()})
        if isinstance(given, list):
            return Allowed({str(table): "" for table in given})
        if isinstance(given, bool):
            return Allowed({ANY: ""} if given else {})
        raise ValueError(f"{given!r} is neither true nor a list of tables nor a map of tables to expressions")

    def has(self, table: str, reason: str) -> bool:
        """Whether the table may be in the state for this reason."""
        expression = self.tables.get(table, self.tables.get(ANY))
        return expression is not None and re.search(expression, reason) is not None


@dataclass(frozen=True)
class Marks:
    """How many tables may be marked incomplete at any time of the run: `most` of them, and only of `tables`."""

    most: int | None = None
    tables: Allowed | None = None

    @staticmethod
    def of(given: object) -> Marks:
        """From a number, or what Allowed is made of."""
        if isinstance(given, int) and not isinstance(given, bool):
            return Marks(most=given)
        return Marks() if given is None else Marks(tables=Allowed.of(given))

    def broken(self, marked: Mapping[str, str]) -> str | None:
        """What the marked tables, with their reasons, have too much; None if nothing."""
        if self.most is not None and len(marked) > self.most:
            return f"{len(marked)} tables were marked incomplete, at most {self.most} may be: {', '.join(marked)}"
        wrong = [] if self.tables is None else [name for name, why in marked.items() if not self.tables.has(name, why)]
        return f"marked incomplete without need: {', '.join(wrong)}" if wrong else None


@dataclass(frozen=True)
class Case:
    """A folder of the golden form, and what its `replica.json` says."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @cached_property
    def scenario(self) -> Scenario:
        """The golden scenario that the folder is."""
        return Scenario(self.folder)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What `replica.json` says; keys that nobody reads are told."""
        path = self.folder / "replica.json"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if unknown := set(found) - _KEYS:
            known = ", ".join(sorted(_KEYS))
            print(f"{path}: {', '.join(sorted(unknown))} is ignored; known are {known}", flush=True)
        return dict(found)

    @property
    def database(self) -> str:
        """The name of its connector."""
        return self.scenario.database

    @property
    def server(self) -> int:
        """The lowest major version of the server, 0 for any."""
        return int(self.settings.get("server", self.scenario.settings.get("server", 0)))

    @property
    def has_ddl_triggers(self) -> bool:
        """Whether PostgreSQL's DDL triggers are installed before the workload."""
        return bool(self.settings.get("ddl"))

    @property
    def has_process(self) -> bool:
        """Whether the pipeline runs in a process of its own, which can be killed as a whole."""
        return bool(self.settings.get("process"))

    @property
    def aside(self) -> Allowed:
        """Tables that may be set aside at the end."""
        return Allowed.of(self.settings.get("aside", False))

    @property
    def incomplete(self) -> Allowed:
        """Tables that may be incomplete at the end."""
        return Allowed.of(self.settings.get("incomplete", False))

    @property
    def left(self) -> Allowed:
        """Tables that the source does not have at the end, whose replicas may have rows."""
        return Allowed.of(self.settings.get("left", False))

    @property
    def marks(self) -> Marks:
        """Which tables may be marked incomplete in the meantime."""
        return Marks.of(self.settings.get("marked"))

    def properties(self, server: GoldenServer) -> dict[str, str]:
        """The connector's properties on that server."""
        places = server.places()
        filled = {name: string.Template(text).safe_substitute(places) for name, text in self.scenario.given.items()}
        return {**server.settings, **filled, **self.settings.get("config", {})}

    def sink(self, path: Path) -> dict[str, Any]:
        """The settings of the replica below a path."""
        return {**sink(path.parent), **self.settings.get("sink", {})}


def cases(folder: Path) -> Sequence[Case]:
    """The case that the folder is, or those that it holds, by name."""
    if (folder / "connector.json").exists():
        return [Case(folder)]
    return [Case(file.parent) for file in sorted(folder.glob("*/connector.json"))]
