"""Deletion vectors: their bytes as pyiceberg reads them, and the one vector that each data file has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from tailrace.sinks.replica.iceberg.manifests import added_field, entries
from tailrace.sinks.replica.iceberg.vectors import is_vector, read_vector, referenced, write_vectors
from tests.unit.sinks.iceberg.lake import Lake, order

pytestmark = pytest.mark.usefixtures("newer_metadata")


def content(file: DataFile) -> bytes:
    return Path(file.file_path.removeprefix("file://")).read_bytes()


def test_vectors_are_read_as_they_were_written(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 3)
    lake.write(("c", None, order(1)))
    dead = {
        "file:///a": np.array([0, 5, 2**31, 2**33 + 1, 2**40], np.int64),
        "file:///b": np.arange(100_000, dtype=np.int64),
        "file:///c": np.unique(np.random.default_rng(1).integers(0, 2**20, 5000)),
    }
    files = write_vectors(lake.table, dead)
    assert len({file.file_path for file in files}) == 1
    assert {referenced(file): file.record_count for file in files} == {path: len(some) for path, some in dead.items()}
    for file in files:
        assert np.array_equal(read_vector(lake.table, file), dead[referenced(file)])
    assert len(content(files[0])) == files[0].file_size_in_bytes < 40_000
    # pyiceberg makes a bitmap for each one that is missing before the largest, so positions of 2**40 are too many.
    del dead["file:///a"]
    found = deletion_vectors_from_puffin_file(PuffinFile(content(write_vectors(lake.table, dead)[0])))
    assert {each.referenced_data_file: each.to_vector().to_pylist() for each in found} == {
        path: positions.tolist() for path, positions in dead.items()
    }


def test_a_data_file_has_one_vector(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 3)
    lake.write(*(("c", None, order(number)) for number in range(10)))
    for number in range(4):
        lake.write(("d", order(number), None), ("u", None, order(9, str(number))))
    found = [entry.data_file for entry in entries(lake.table)]
    vectors = [file for file in found if is_vector(file)]
    assert {*Counter(map(referenced, vectors)).values()} == {1}
    assert sum(file.record_count for file in vectors) == 8
    assert lake.read() == [[*(order(number) for number in range(4, 9)), order(9, "3")]] * 3
    ids = [added_field(file, "first_row_id") for file in found if file.content == DataFileContent.DATA]
    assert sorted(ids) == [0, 10, 11, 12, 13]
    assert lake.table.metadata.format_version == 3
