"""The labels of splits: the same for a repeated micro-batch, another for other changes under the same batch number."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from tests.behaviour.streams import Stream, properties
from tests.conftest import Database

Labels = dict[int, list[str]]


def labels(stream: Stream) -> Labels:
    """The labels of the rows that a run reads, by batch."""
    stream.batches.clear()
    stream.run()
    return {number: sorted({row["split"] for row in rows}) for number, rows in stream.batches.items() if rows}


def repeat(checkpoint: Path, number: int) -> None:
    """Make the checkpoint look as if the run had ended between that batch's write and its commit."""
    for folder, first in (("commits", number), ("offsets", number + 1)):
        for file in (checkpoint / folder).iterdir():
            if int(file.name.strip(".").removesuffix(".crc")) >= first:
                file.unlink()


def test_a_label_names_what_a_split_holds(spark: SparkSession, database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE items (id int PRIMARY KEY)",
        "CREATE TABLE others (id int PRIMARY KEY)",
        "INSERT INTO items VALUES (1)",
        "INSERT INTO others VALUES (1)",
    )
    stream = Stream(spark, properties(database, shape="arrow"), tmp_path / "state")

    ((number, (first, second)),) = labels(stream).items()
    assert [label.split("/")[1:] for label in (first, second)] == [["0", "2"], ["1", "2"]]
    assert first.split("/")[0] == second.split("/")[0], "both are of one batch"
    repeat(stream.checkpoint, number)
    again = labels(stream)
    assert list(again) == [number]
    assert not {first, second} & set(again[number]), "the snapshot began anew and holds other rows"

    shutil.copytree(stream.checkpoint, tmp_path / "older")
    database.execute("INSERT INTO items VALUES (2)")
    ((number, (written,)),) = labels(stream).items()
    repeat(stream.checkpoint, number)
    assert labels(stream) == {number: [written]}

    shutil.rmtree(stream.checkpoint)
    (tmp_path / "older").rename(stream.checkpoint)
    database.execute("INSERT INTO items VALUES (3)")
    # By the pace of the machine the slot may be past the copy.
    stream.options = {**stream.options, "offset.mismatch.strategy": "trust_slot"}
    ((same, (other,)),) = labels(stream).items()
    assert same == number
    assert other != written, "another range of the log under the same batch number"
