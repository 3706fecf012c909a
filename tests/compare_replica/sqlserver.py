"""Random cases of SQL Server's replicas."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.compare.rows import Table
from tests.compare.sqlserver.scenarios import CONNECTION, Scenario, enable, random_table
from tests.compare_replica import change_tables

_NAMES = (("dbo", "t0"), ("dbo", "t1"), ("sales", "t2"))


def write(seed: int, folder: Path) -> None:
    """Write the case of a seed into the empty folder."""
    # Tables without a key are exact in a replica only if nobody writes while they are read.
    properties = {**CONNECTION, "include.schema.changes": "false", "snapshot.isolation.mode": "exclusive"}
    around = (("CREATE SCHEMA sales",), (), _recreated)
    change_tables.write(seed, folder, "sqlserver", (Scenario, _tables), properties, around)


def _tables(chance: Random) -> list[Table]:
    return [random_table(chance, *name) for name in _NAMES]


def _recreated(table: Table) -> list[str]:
    return [f"DROP TABLE {table.quoted}", *table.statements(), enable(table.schema, table.name)]
