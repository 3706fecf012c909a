"""Random cases of PostgreSQL's replicas."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from tests.compare.postgres.changes import changes, insert
from tests.compare.postgres.further import Further
from tests.compare.postgres.scenarios import CONNECTION
from tests.compare.postgres.tables import Table, World, random_table, random_world
from tests.compare_replica.alterations import altered
from tests.compare_replica.chances import CHECK, interrupted, kills, reconfigured
from tests.compare_replica.folder import script, write_case
from tests.compare_replica.hard_tables import HardTable, hard_tables

# An open transaction of another session may hold what a statement needs.
_PATIENT = ("-- @lenient", "SET lock_timeout = '2s'")
_OPTIONS: dict[str, tuple[float, tuple[str, ...]]] = {
    "publish.via.partition.root": (0.5, ("true",)),
    "decimal.handling.mode": (0.15, ("string", "double")),
    "interval.handling.mode": (0.2, ("string",)),
    "binary.handling.mode": (0.15, ("base64", "hex")),
    "publication.autocreate.mode": (0.15, ("filtered",)),
    "provide.transaction.metadata": (0.1, ("true",)),
    "snapshot.max.threads": (0.1, ("2",)),
    "incremental.snapshot.chunk.size": (0.4, ("2", "5")),
    "maxBytesPerTrigger": (0.2, ("2000", "20000")),
}


def write(seed: int, folder: Path) -> None:
    """Write the case of a seed into the empty folder."""
    random = Random(f"replica postgres {seed}")
    world = random_world(random)
    tables = [random_table(random, world, number) for number in range(random.randrange(2, 5))]
    further = Further(Random(f"further replica {seed}"), tables)
    further.extend_tables()
    hard = hard_tables(random)
    setup = ["CREATE EXTENSION vector", *world.setup]
    for table in tables:
        setup += table.statements()
        setup += [insert(random, table, 2 * number) for number in range(random.randrange(6))]
    setup += [statement for each in hard for statement in each.setup]
    process = seed % 8 == 0
    alters = random.random() < 0.85
    workload = [*_PATIENT, *_phases(random, world, tables, hard, further, process=process, alters=alters)]
    options = _options(random, tables)
    chance = Random(f"settings of replica postgres {seed}")
    workload = reconfigured(chance, workload, options, _changing(chance, tables, options))
    settings = _replica(random, process, alters)
    if options.get("publication.autocreate.mode") == "filtered":
        # It gets new tables at the next start.
        settings["incomplete"] = {"*": "does not contain it"}
    write_case(folder, {**CONNECTION, **options}, settings)
    (folder / "setup.sql").write_text(script(setup), encoding="utf-8")
    (folder / "workload.sql").write_text(script(workload), encoding="utf-8")


def _phases(
    random: Random,
    world: World,
    tables: list[Table],
    hard: list[HardTable],
    further: Further,
    *,
    process: bool,
    alters: bool,
) -> list[str]:
    """Changes and alterations; a check after each phase."""
    statements: list[str] = []
    for phase in range(random.randrange(2, 5)):
        first = 100 * (phase + 1)
        parts = [further.workload(list(changes(random, tables, first, random.randrange(5, 25))), with_more=True)]
        for number in range(random.choice((0, 1, 1, 2, 3)) if alters else 0):
            parts.append(altered(random, world, tables, first + number))
            later = list(changes(random, tables, first + 30 * (number + 1), random.randrange(2, 10)))
            parts.append(further.workload(later, with_more=False))
        for each in hard:
            for _ in range(random.randrange(3, 9)):
                parts.insert(random.randrange(len(parts) + 1), each.change(random))
        statements += interrupted(random, parts, kills(random, process))
        statements += [statement for each in hard for statement in each.ending]
        statements.append(CHECK)
    return statements


def _options(random: Random, tables: list[Table]) -> dict[str, str]:
    options = {name: random.choice(values) for name, (chance, values) in _OPTIONS.items() if random.random() < chance}
    draw = random.random()
    if draw < 0.2:
        options["table.include.list"] = r"public\..*"
    elif draw < 0.3:
        options["publish.via.partition.root"] = "true"  # the names of partitions are in no list
        names = [re.escape(f"{table.schema}.{table.name}") for table in tables[1:]]
        listed = [*names, *(rf"public\.{name}" for name in ("orders", "parts", "par", "equals", "swaps", "bag"))]
        options["table.include.list"] = ",".join(listed)
    return options


def _changing(random: Random, tables: list[Table], options: dict[str, str]) -> dict[str, tuple[str | None, ...]]:
    """The properties that change between two starts, with their values."""
    modes = {name: (None, *_OPTIONS[f"{name}"][1]) for name in _OPTIONS if name.endswith("handling.mode")}
    if "table.include.list" in options:
        return modes  # which excludes the other list
    left_out = random.choice(tables)
    names = (rf"{re.escape(left_out.schema)}\.{re.escape(left_out.name)}", r"public\.(bag|swaps|equals)", ".*parts?.*")
    return {**modes, "table.exclude.list": (None, None, *names)}


def _replica(random: Random, process: bool, alters: bool) -> dict[str, Any]:
    """The contents of `replica.json`."""
    sink: dict[str, Any] = {"out_of_range": random.choice(("text", "text", "text", "null", "error"))}
    if random.random() < 0.15:
        sink["metadata"] = {"commit_time": "_commit_time", "position": "_position", "op": "_op"}
    # Two columns of the table `made` differ by case alone.
    aside = {"public.made": "differ by case alone"}
    settings: dict[str, Any] = {"sink": sink, "aside": aside}
    if sink["out_of_range"] == "error":
        settings["aside"] = {name: f"{why}|no counterpart in a lakehouse" for name, why in {**aside, "*": "^$"}.items()}
    if random.random() < 0.3:
        settings["ddl"] = True
    if process:
        settings["process"] = True
    return settings
