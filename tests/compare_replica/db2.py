"""Random cases of Db2's replicas."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.compare.db2.scenarios import CONNECTION, REINIT, Scenario, random_table
from tests.compare.rows import Table
from tests.compare_replica import change_tables


def write(seed: int, folder: Path) -> None:
    """Write the case of a seed into the empty folder."""
    # Tables without a key are exact in a replica only if nobody writes while they are read.
    properties = {**CONNECTION, "table.include.list": "MYSCHEMA.*", "snapshot.isolation.mode": "exclusive"}
    change_tables.write(seed, folder, "db2", (Scenario, _tables), properties, ((), (REINIT,), _recreated))


def _tables(chance: Random) -> list[Table]:
    return [random_table(chance, f"T{number}") for number in range(3)]


def _recreated(table: Table) -> list[str]:
    removed = f"CALL ASNCDC.REMOVETABLE('MYSCHEMA', '{table.name}')"
    added = f"CALL ASNCDC.ADDTABLE('MYSCHEMA', '{table.name}')"
    return [removed, REINIT, f"DROP TABLE {table.quoted}", *table.statements(), added, REINIT]
