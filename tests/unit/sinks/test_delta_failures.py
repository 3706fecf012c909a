"""Errors of Delta become messages with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from tailrace.errors import SinkError, TableError
from tailrace.sinks.replica.aside import found
from tailrace.sinks.replica.failures import failed
from tailrace.sinks.replica.target import Target


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "afile"
    file.write_text("no folder")
    with pytest.raises(SinkError) as caught:
        found(str(file), {}, "source")
    assert type(caught.value) is SinkError
    assert caught.value.where == str(file)
    assert caught.value.what.endswith("Generic LocalFileSystem error (Not a directory (os error 20))")
    assert "remove the file that is in place of the folder" in (caught.value.remedy or "")


def test_an_error_without_causes_is_its_first_line() -> None:
    error = failed(Target("/lake", "t", {}), DeltaError("no such version\nof the table"))
    assert (type(error), error.what) == (TableError, "the replica could not be written: no such version")
    assert failed(Target("/lake", "t", {}), DeltaError()).what == "the replica could not be written: DeltaError"
