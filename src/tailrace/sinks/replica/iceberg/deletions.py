"""The files by which rows of an Iceberg table are deleted: position deletes, or deletion vectors in version 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.table import Table

from tailrace.sinks.replica.form import VECTORS
from tailrace.sinks.replica.iceberg.files import Places, dead_rows, write_deletes
from tailrace.sinks.replica.iceberg.manifests import entries, version_of
from tailrace.sinks.replica.iceberg.vectors import Positions, is_vector, referenced, write_vectors


@dataclass
class Deletions:
    """The files that delete rows, and the entries of those that they replace."""

    added: list[DataFile] = field(default_factory=list)
    replaced: list[ManifestEntry] = field(default_factory=list)

    @staticmethod
    def at(table: Table, places: Places) -> Deletions:
        """Delete the rows at some places. A data file has one vector at most, which has its former rows as well."""
        if not len(places.numbers):
            return Deletions()
        if version_of(table) != VECTORS:
            return Deletions([write_deletes(table, places)])
        dead = _by_file(places)
        deletes = [entry for entry in entries(table) if entry.data_file.content != DataFileContent.DATA]
        replaced = [entry for entry in deletes if is_vector(entry.data_file) and referenced(entry.data_file) in dead]
        # Position deletes of before the table had version 3 hold no longer where there is a vector.
        others = [entry for entry in deletes if not is_vector(entry.data_file)]
        former = dead_rows(table, [entry.data_file for entry in (*replaced, *others)])
        merged = {path: np.union1d(former.get(path, some), some) for path, some in dead.items()}
        return Deletions(write_vectors(table, merged), replaced)

    @staticmethod
    def of(table: Table, dead: Mapping[str, Positions]) -> list[DataFile]:
        """Files that delete these rows of data files, in place of all that there are."""
        if not dead or version_of(table) == VECTORS:
            return write_vectors(table, dead) if dead else []
        numbers = np.repeat(np.arange(len(dead), dtype=np.int32), [len(positions) for positions in dead.values()])
        return [write_deletes(table, Places([*dead], numbers, np.concatenate([*dead.values()])))]


def _by_file(places: Places) -> dict[str, Positions]:
    order = np.argsort(places.numbers, kind="stable")
    numbers, positions = places.numbers[order], places.positions[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    parts = np.split(positions, first[1:])
    return {places.files[numbers[at]]: np.unique(part) for at, part in zip(first, parts, strict=True)}
