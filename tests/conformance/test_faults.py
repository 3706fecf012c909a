"""What a user can get wrong: a named error with its place and its remedy, by `check` and by a run, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace.cli.terminal import notes, print_error
from tailrace.errors import OffsetError, TailraceError
from tests.conformance.pipelines import Line
from tests.conformance.subject import (
    KEY,
    NO_PRIVILEGE,
    NOTE,
    SECRET,
    UNREACHABLE,
    VALUE,
    WRONG_PASSWORD,
    Insert,
    Source,
    Subject,
)

FAULTS = {"wrong_password": WRONG_PASSWORD, "unreachable": UNREACHABLE, "no_privilege": NO_PRIVILEGE}


@pytest.fixture(scope="module")
def table(source: Source) -> str:
    """The name of a table with one row."""
    source.create("orders")
    source.commit(Insert("orders", {KEY: 1, VALUE: 0, NOTE: None}))
    return "orders"


def sentence(error: TailraceError) -> str:
    """An error as the command line prints it."""
    with notes.capture() as captured:
        print_error(error)
    text = captured.get()
    assert text.startswith("Error "), text
    assert "\n  Remedy " in text, text
    assert len(text.splitlines()) < 12, text
    for hidden in ("Traceback", SECRET):
        assert hidden not in text
    return text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_an_error_with_its_remedy(
    subject: Subject, source: Source, table: str, folder: Path, spark: SparkSession, fault: str
) -> None:
    with source.fault(FAULTS[fault]) as wrong:
        line = Line(subject, source, folder / fault, tables=[table], properties=wrong)
        said = line.command("check", code=1)
        assert "problem" in said
        assert "Remedy" in said
        assert SECRET not in said
        sentence(line.fails(spark))


def test_a_wrong_property_is_named(subject: Subject, source: Source, folder: Path, table: str) -> None:
    line = Line(subject, source, folder / "typo", tables=[table], properties={"snapshot.mode": "sometimes"})
    said = line.command("check", code=1)
    assert "snapshot.mode" in said
    assert "when_needed" in said, "the values that there are"
    assert SECRET not in said


def test_a_plug_in_that_is_not_there_is_named(subject: Subject, source: Source, folder: Path, table: str) -> None:
    own = {"snapshot.mode": "custom", "snapshot.mode.custom.name": "nobodys"}
    said = Line(subject, source, folder / "plugin", tables=[table], properties=own).command("check", code=1)
    for part in ("snapshot.mode.custom.name", "'nobodys'", "every_start", "install the package"):
        assert part in said


def test_a_run_killed_while_it_wrote_its_first_offset_does_no_harm(
    subject: Subject, source: Source, table: str, folder: Path, spark: SparkSession
) -> None:
    line = Line(subject, source, folder / "torn", tables=[table])
    offsets = line.folder / "state" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.e20f71c0-6ff8-4eba-9805-23913cb440a9.tmp").touch()
    (offsets / "..0.e20f71c0-6ff8-4eba-9805-23913cb440a9.tmp.crc").touch()
    line.once(spark)
    assert line.keys(table) == [("r", 1)]


def test_the_checkpoint_of_another_source_is_an_error(
    subject: Subject, source: Source, table: str, folder: Path, spark: SparkSession
) -> None:
    """The pipeline of one database is given the checkpoint of another."""
    with subject.source() as other:
        other.create(table)
        first = Line(subject, other, folder / "other", tables=[table])
        first.once(spark)
        second = Line(subject, source, folder / "mixed", tables=[table], checkpoint=str(folder / "other" / "state"))
        error = second.fails(spark)
    assert isinstance(error, OffsetError)
    sentence(error)
