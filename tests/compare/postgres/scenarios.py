"""Random scenarios of PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tests.compare.beats import BINARY, Beats
from tests.compare.cases import MARKER, marked, write_settings
from tests.compare.postgres.alter import alterations
from tests.compare.postgres.changes import changes, insert
from tests.compare.postgres.further import FIRST, Further
from tests.compare.postgres.options import random_options
from tests.compare.postgres.tables import NUMBER, Table, World, random_table, random_world
from tests.compare.postgres.types import within_nanoseconds

ENGINE: dict[str, str] = {}

EXPLAINED: tuple[tuple[str, str], ...] = (
    BINARY,
    (
        r': value: expected \{"schema": null, "payload": \{"row": null\}\}, found null$',
        "docs/transforms.md, HoistField",
    ),
    (r': key: expected \{"schema": null, "payload": \{"row": null\}\}, found null$', "docs/transforms.md, HoistField"),
)

CONNECTION = {
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

MARK = "SELECT pg_logical_emit_message(true, '{}', '')"


def write(seed: int, folder: Path) -> None:
    """Write the scenario of a seed into an empty folder, as Generator.write says."""
    random = Random(f"postgres {seed}")
    world = random_world(random)
    tables = [random_table(random, world, number) for number in range(random.randrange(7, 13))]
    further = Further(Random(f"further postgres {seed}"), tables) if seed >= FIRST else None
    if further is not None:
        further.extend_tables()
    options = random_options(random, tables)
    if further is not None:
        world.setup.extend(further.options(options))
    if options.get("time.precision.mode") == "nanoseconds":
        _keep_to_nanoseconds(tables)
    setup = _setup(random, world, tables)
    if further is not None:
        setup += further.heirs()
    workload = list(changes(random, tables, 100, random.randrange(70, 130)))
    if further is not None:
        workload = further.workload(workload, with_more=True)
    later = _later(random, world, tables)
    workload += later if further is None else further.workload(later, with_more=False)
    settings: dict[str, object] = {"marker": MARKER, "requires": ["vector"]}
    if random.random() < 0.2 and not {"skipped.operations", "transforms"} & options.keys():
        setup.append(_SIGNAL_TABLE)
        workload += _signals(random, tables)
        options |= {"signal.data.collection": "public.signals", "incremental.snapshot.chunk.size": "3"}
        settings |= {"settle_seconds": 4, "unordered_reads": True}
        for name in ("column.propagate.source.type", "datatype.propagate.source.type"):
            options.pop(name, None)  # the engine shows NUMERIC otherwise in the log once a signal has read the table
        if "column.include.list" in options:  # the engine takes no signal without all of its columns
            options["column.include.list"] += r",public\.signals\..*"
    collapsed = _beats(seed, options, setup)
    (folder / "setup.sql").write_text(_script(setup), encoding="utf-8")
    workload = marked(workload, MARK)
    if "-- @stop" in workload:
        collapsed.append(r"[._]message$")  # the engine repeats the last message after a restart
    if collapsed:
        settings["collapse_topics"] = collapsed
    (folder / "workload.sql").write_text(_script(workload), encoding="utf-8")
    write_settings(folder, {**CONNECTION, **options}, settings)


def _beats(seed: int, options: dict[str, str], setup: list[str]) -> list[str]:
    """Adds what heartbeats need, and returns the topics that then have any number of equal events."""
    beats = Beats.of(seed, "postgres")
    options |= beats.properties
    action = beats.action("public.beats", options)
    options |= action
    setup += beats.table("beats") if action else []
    return beats.rules(acts=bool(action))


def _keep_to_nanoseconds(tables: list[Table]) -> None:
    """The engine sends no required times that 64 bits do not hold, and no required ones that an old row lacks."""
    for table in tables:
        for column in table.columns:
            column.type = within_nanoseconds(column.type)
            if column.default is not None and column.default not in column.type.literals and not column.given:
                column.default = column.type.literals[0]
            if column.type.sql.startswith(("timestamp", "dom")) and column.name not in (*table.key, *table.unique):
                column.nullable = True


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
        # The engine loses messages without a transaction that come while it is stopped.
        meanwhile = [
            text.replace("emit_message(false", "emit_message(true") for text in changes(random, tables, 700, 8)
        ]
        statements += ["-- @stop", *meanwhile, "-- @start", *changes(random, tables, 800, 4)]
    return statements


_SIGNAL_TABLE = "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))"


def _signals(random: Random, tables: list[Table]) -> list[str]:
    """Snapshots of tables by signals, with changes between them."""
    # The engine takes no chunks of other keys, skips tables with generated columns and partitioned ones made later.
    able = [table for table in tables if table.key == [NUMBER] and table.is_plain and not table.has_expressions]
    able = [table for table in able if not table.partitioned]
    # After a blocking snapshot it describes all tables in events of the log as the snapshot's are.
    is_generated = any(table.has_expressions or table.has_sequences for table in tables)
    statements = ["-- @wait"]
    for number in range(3):
        chosen = random.sample(able, min(len(able), 2))
        kind = random.choice(("incremental", "incremental", "blocking"))
        data = {
            "type": "incremental" if is_generated else kind,
            "data-collections": [f"{table.schema}.{table.name}" for table in chosen],
        }
        if not chosen:
            continue
        statements.append(f"INSERT INTO signals VALUES ('{number}', 'execute-snapshot', '{json.dumps(data)}')")
        statements += ["-- @wait", *changes(random, tables, 900 + 20 * number, 6), "-- @wait"]
    return statements


def _script(statements: list[str]) -> str:
    return "".join(line + ("\n" if line.startswith("--") else ";\n") for line in statements)
