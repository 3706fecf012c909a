"""Random scenarios of PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tests.compare.postgres.alter import alterations
from tests.compare.postgres.changes import changes, insert
from tests.compare.postgres.options import random_options
from tests.compare.postgres.tables import Table, World, random_table, random_world

ENGINE: dict[str, str] = {}

EXPLAINED: tuple[tuple[str, str], ...] = ()

_CONNECTION = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "${host}",
    "database.port": "${port}",
    "database.user": "${user}",
    "database.password": "${password}",
    "database.dbname": "${dbname}",
    "slot.name": "${slot}",
    "plugin.name": "pgoutput",
    "topic.prefix": "srv",
}

_MARKER = "all-read-"
_WAITS = ("-- @wait", "-- @stop")


def write(seed: int, folder: Path) -> None:
    """See Generator.write."""
    random = Random(f"postgres {seed}")
    world = random_world(random)
    tables = [random_table(random, world, number) for number in range(random.randrange(7, 13))]
    options = random_options(random, tables)
    setup = _setup(random, world, tables)
    workload = [*changes(random, tables, 100, random.randrange(70, 130)), *_later(random, world, tables)]
    (folder / "setup.sql").write_text(_script(setup), encoding="utf-8")
    workload = _marked(workload)
    settings: dict[str, object] = {"marker": _MARKER, "requires": ["vector"]}
    if "-- @stop" in workload:
        settings["collapse_topics"] = [r"[._]message$"]  # the engine repeats the last message after a restart
    (folder / "scenario.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")
    (folder / "workload.sql").write_text(_script(workload), encoding="utf-8")
    document = {"name": "compare", "config": {**_CONNECTION, **options}}
    (folder / "connector.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _setup(random: Random, world: World, tables: list[Table]) -> list[str]:
    statements = ["CREATE EXTENSION vector", *world.setup]
    for table in tables:
        statements += table.statements()
        if random.random() < 0.3:
            statements.append(f"COMMENT ON COLUMN {table.quoted}.n IS 'the number'")
    for table in tables:
        statements += [insert(random, table, 2 * number) for number in range(random.randrange(5))]
    return statements


def _later(random: Random, world: World, tables: list[Table]) -> list[str]:
    """In some scenarios, the tables are altered, or the connector is restarted, and changes go on."""
    statements = []
    first = 400
    for _ in range(random.choice((0, 1, 1, 2))):
        altered = alterations(random, world, tables)
        statements += ["-- @wait", *altered, *changes(random, tables, first, 20)]
        first += 100
    if random.random() < 0.15:
        statements += ["-- @stop", *changes(random, tables, 700, 8), "-- @start", *changes(random, tables, 800, 4)]
    return statements


def _marked(workload: list[str]) -> list[str]:
    """The workload with a message before each wait, and at its end."""
    marked, number = [], 0
    for line in (*workload, _WAITS[0]):
        if line in _WAITS:
            number += 1
            marked.append(f"SELECT pg_logical_emit_message(true, '{_MARKER}{number}', '')")
        marked.append(line)
    return marked[:-1]


def _script(statements: list[str]) -> str:
    return "".join(line + ("\n" if line.startswith("--") else ";\n") for line in statements)
