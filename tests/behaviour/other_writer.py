"""Another program that writes a Delta table of a replica while its pipeline runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tests.behaviour.streams import eventually


def write_as_another(table: Path, write: Callable[[DeltaTable], object]) -> None:
    """Write the newest version of the table; again, as other programs do, if the pipeline has committed first."""

    def has_written() -> bool:
        try:
            write(DeltaTable(table))
        except CommitFailedError:
            return False
        return True

    eventually(has_written)
