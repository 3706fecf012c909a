"""Random alterations of random tables."""

from __future__ import annotations

from random import Random

from tests.compare.postgres.tables import NUMBER, Column, Table, World, quote, random_column, random_table
from tests.compare.postgres.types import INTEGER, Type

_WIDER = {
    "smallint": Type("bigint", ["0", "9223372036854775807"]),
    "integer": Type("bigint", ["0", "9223372036854775807"]),
    "varchar(20)": Type("text", ["''", "'a longer text than was possible before'"]),
    "numeric(10,2)": Type("numeric(20,4)", ["0", "1.2345"]),
    "real": Type("double precision", ["0", "1.5"]),
    "date": Type("timestamp", ["'2024-02-29 12:34:56.789012'"]),
    "timestamp(0)": Type("timestamp(6)", ["'2024-02-29 12:34:56.789012'"]),
}


def alterations(random: Random, world: World, tables: list[Table]) -> list[str]:
    """Statements that change several tables, or create, rename or drop one."""
    able = [table for table in tables if not table.is_fixed]
    chosen = random.sample(able, min(len(able), random.randrange(1, 5)))
    statements = [statement for table in chosen for statement in _alter(random, world, table)]
    if random.random() < 0.3:
        tables.append(random_table(random, world, 90 + len(tables)))
        able.append(tables[-1])
        statements += tables[-1].statements()
    if random.random() < 0.1 and len(able) > 1:
        dropped = able.pop(0)
        tables.remove(dropped)
        statements.append(f"DROP TABLE {dropped.quoted}")
    table = random.choice(able)
    if random.random() < 0.15 and not table.partitioned:
        statements.append(f"ALTER TABLE {table.quoted} RENAME TO {quote(table.name + '_new')}")
        table.name += "_new"
    return statements


def _alter(random: Random, world: World, table: Table) -> list[str]:
    start = f"ALTER TABLE {table.quoted}"
    others = [c for c in table.columns if c.name not in (NUMBER, *table.key, *table.unique)]
    kind = random.random()
    if kind < 0.07 and table.key and not table.partitioned and table.identity == "FULL":
        table.key = []
        return [f"{start} DROP CONSTRAINT {quote(table.constraint)}"]
    if kind < 0.4 or not others:
        column = random_column(random, world, random.randrange(20, 1000))
        if (
            column.given
            or column.generated
            or "serial" in column.type.sql
            or (not column.nullable and not column.default)
        ):
            column = Column(f"added_{column.name}", INTEGER if "serial" in column.type.sql else column.type)
        table.columns.append(column)
        return [f"{start} ADD COLUMN {column.ddl()}"]
    column = random.choice(others)
    if kind < 0.55:
        table.columns.remove(column)
        return [f"{start} DROP COLUMN {column.quoted}"]
    if kind < 0.7:
        old, column.name = column.quoted, f"new_{column.name}"
        return [f"{start} RENAME COLUMN {old} TO {column.quoted}"]
    wider = _WIDER.get(column.type.sql)
    if wider is not None and column.default is None and column.generated is None:
        column.type = wider
        return [f"{start} ALTER COLUMN {column.quoted} TYPE {wider.sql}"]
    if not column.nullable and not column.generated and "serial" not in column.type.sql:
        column.nullable = True
        return [f"{start} ALTER COLUMN {column.quoted} DROP NOT NULL"]
    return []
