"""Random cases of replicas of databases with change tables: SQL Server and Db2."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.compare.beats import Beats
from tests.compare.change_tables import RandomScenario
from tests.compare.rows import Table, script
from tests.compare_replica.chances import CHECK, interrupted, kills, reconfigured
from tests.compare_replica.folder import write_case

# Statements that drop a table and create it again, with its capture.
Recreate = Callable[[Table], Sequence[str]]
MakeScenario = Callable[[Random, list[Table], Mapping[str, str], Beats], RandomScenario]


def write(
    seed: int,
    folder: Path,
    database: str,
    make: tuple[MakeScenario, Callable[[Random], list[Table]]],
    properties: Mapping[str, str],
    around: tuple[Sequence[str], Sequence[str], Recreate],
) -> None:
    """Write the case of a seed into the empty folder; `around` comes before and after the tables of the setup."""
    chance = Random(f"replica {database} {seed}")
    scenario, tables = make
    made = tables(chance)
    case = _Case(chance, scenario(chance, made, properties, Beats()), made, around[2])
    replica: dict[str, Any] = {"process": True} if seed % 8 == 0 else {}
    if chance.random() < 0.3:
        properties = {**properties, "incremental.snapshot.chunk.size": "3"}
    if case.recreates:  # a table whose capture begins again needs another snapshot
        properties = {**properties, "snapshot.mode": "when_needed"}
    write_case(folder, properties, replica)
    (folder / "setup.sql").write_text(script([*around[0], *case.setup(), *around[1]]), encoding="utf-8")
    lines, settings = case.workload(bool(replica)), Random(f"settings of replica {database} {seed}")
    lines = reconfigured(settings, lines, properties, _changing(settings, made))
    (folder / "workload.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _changing(chance: Random, tables: list[Table]) -> dict[str, tuple[str | None, ...]]:
    """The properties that change between two starts, with their values."""
    left_out = chance.choice(tables)
    return {
        "decimal.handling.mode": (None, "string", "double"),
        "binary.handling.mode": (None, "hex"),
        "table.exclude.list": (None, None, rf"{re.escape(left_out.schema)}\.{re.escape(left_out.name)}"),
    }


class _Case:
    def __init__(self, chance: Random, scenario: RandomScenario, tables: list[Table], recreate: Recreate) -> None:
        self._chance, self._scenario, self._tables, self._recreate = chance, scenario, tables, recreate
        self._alters, self.recreates = chance.random() < 0.7, chance.random() < 0.3

    def setup(self) -> list[str]:
        """Tables with rows, whose changes are captured."""
        lines: list[str] = []
        for table in self._tables:
            lines += table.statements()
            lines += [self._scenario.rows.insert(table) for _ in range(self._chance.randrange(6))]
            lines.append(self._scenario.captured(table))
        return lines

    def workload(self, process: bool) -> list[str]:
        """Changes, new columns and new tables; a check after each phase."""
        lines: list[str] = []
        for _ in range(self._chance.randrange(2, 5)):
            parts = [self._part() for _ in range(self._chance.randrange(2, 6))]
            lines += [*interrupted(self._chance, parts, kills(self._chance, process)), CHECK]
        return lines

    def _part(self) -> list[str]:
        draw = self._chance.random()
        table = self._chance.choice(self._tables)
        if self._alters and draw < 0.15 and not table.is_altered:
            table.is_altered = True
            return script(self._scenario.altered(table)).splitlines()
        if self.recreates and draw < 0.22 and not table.is_altered:
            table.rows.clear()
            return script(self._recreate(table)).splitlines()
        return self._scenario.rows.some(self._tables, self._scenario.begin, self._scenario.ends).splitlines()
