"""Errors of Delta become messages with a remedy."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from tailrace.errors import SinkAwayError, SinkError, TableError
from tailrace.sinks.replica.aside import tables_set_aside
from tailrace.sinks.replica.failures import failed, retried
from tailrace.sinks.replica.table import LakeError
from tailrace.sinks.replica.target import Target


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "afile"
    file.write_text("no folder")
    with pytest.raises(SinkError) as caught:
        tables_set_aside(str(file), {}, "source")
    assert type(caught.value) is SinkError
    assert caught.value.where == str(file)
    assert caught.value.what.endswith("Generic LocalFileSystem error (Not a directory (os error 20))")
    assert "remove the file that is in place of the folder" in (caught.value.remedy or "")


def test_an_error_without_causes_is_its_first_line() -> None:
    error = failed(Target("/lake", "t", {}), DeltaError("no such version\nof the table"))
    assert (type(error), error.what) == (TableError, "the replica could not be written: no such version")
    assert failed(Target("/lake", "t", {}), DeltaError()).what == "the replica could not be written: DeltaError"


PLACE = Target("/lake", "t", {})
# No server listens there.
AWAY = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "x",
    "AWS_ALLOW_HTTP": "true",
    "max_retries": "0",
}


def raised(attempt: Callable[[], object]) -> SinkError:
    with pytest.raises(SinkError) as caught:
        retried(PLACE, attempt, 1)
    return caught.value


@pytest.mark.parametrize(
    "words",
    [
        "connection_id",
        "Permission denied",
        "No space left on device",
        "Not a directory",
        "dns, timeout, forbidden, credential, certificate",
        "too many open files",
    ],
)
@pytest.mark.parametrize("kind", [DeltaError, pa.ArrowInvalid, pa.ArrowNotImplementedError, LakeError])
def test_names_and_values_of_a_users_columns_never_concern_the_other_tables(kind: type, words: str) -> None:
    error = failed(PLACE, kind(f"Schema error: Field {words}: cannot merge\nPreview of {words}"))
    assert type(error) is TableError
    assert "tailrace retry" in (error.remedy or "")


def test_a_storage_that_is_away_concerns_all_tables() -> None:
    rows = pa.table({"k": [1]})
    opened = raised(lambda: DeltaTable("s3://bucket/t", storage_options=AWAY))
    written = raised(lambda: write_deltalake("s3://bucket/t", rows, storage_options=AWAY))
    beneath = "C Data interface error: External error: Generic S3 error: Error performing GET http://s3 in 1 ms"
    for error in (opened, written, failed(PLACE, pa.ArrowInvalid(beneath)), failed(PLACE, OSError("no answer"))):
        assert type(error) is SinkAwayError


def test_a_lost_file_of_a_table_concerns_that_table(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"k": [1]}))
    table = DeltaTable(tmp_path)
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    merge = table.merge(pa.table({"k": [1]}), "t.k = s.k", source_alias="s", target_alias="t").when_matched_delete()
    for attempt in (merge.execute, lambda: pa.table(table.scan())):
        assert type(raised(attempt)) is TableError


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "free space"), (errno.EACCES, "right to write"), (errno.ENOTDIR, "remove the file")],
)
@pytest.mark.parametrize(
    "shape", ["Generic LocalFileSystem error (os error {0})", "Error: Os {{ code: {0}, kind: X }}"]
)
def test_errors_of_the_operating_system_are_told_by_their_numbers(number: int, remedy: str, shape: str) -> None:
    for error in (OSError(number, "said in any language"), DeltaError(shape.format(number))):
        assert type(failed(PLACE, error)) is SinkError
        assert re.search(remedy, failed(PLACE, error).remedy or "")


def test_a_library_that_gives_up_concerns_one_table() -> None:
    class PanicException(BaseException):
        """As the class is named that Rust's libraries raise."""

    def give_up() -> None:
        raise PanicException("index out of bounds")

    assert type(raised(give_up)) is TableError
    with pytest.raises(KeyboardInterrupt):
        retried(PLACE, interrupted)


def interrupted() -> None:
    raise KeyboardInterrupt
