"""Errors of Spark's MERGE concern one table or all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException, PySparkException

from tailrace.errors import SinkAwayError, SinkError, TableError
from tailrace.sinks.replica import failures, spark_fold
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.delta.by_spark import DeltaBySpark
from tailrace.sinks.replica.iceberg.by_spark import IcebergBySpark
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.spark_merge import attempted
from tailrace.sinks.replica.spark_tables import SparkTables
from tailrace.sinks.replica.table import LakeError, LostRaceError
from tailrace.sinks.replica.target import Target

PLACE = Target("/lake", "t", {})


SESSION: Any = None
DELTA, ICEBERG = DeltaBySpark(SESSION), IcebergBySpark(SESSION)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_PAUSE_S", 0)


def of_spark(condition: str | None, kind: type[PySparkException] = PySparkException) -> PySparkException:
    error = kind("[X] said by Spark")
    error._errorClass = condition
    return error


class OfJava(PySparkException):
    """An error whose cause, in Java, is of a class."""

    def __init__(self, name: str) -> None:
        super().__init__("[_LEGACY_ERROR_TEMP] Writing job aborted.")
        self._stackTrace = (
            f"org.apache.spark.SparkException: aborted\n\tat x\nCaused by: org.apache.iceberg.{name}: why"
        )


@pytest.mark.parametrize(
    ("tables", "error", "kind", "attempts"),
    [
        (DELTA, of_spark("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"), TableError, 1),
        (DELTA, of_spark("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"), TableError, 1),
        (DELTA, of_spark("MERGE_CARDINALITY_VIOLATION"), TableError, 1),
        (DELTA, of_spark("CAST_INVALID_INPUT"), TableError, 1),
        (DELTA, of_spark(None, AnalysisException), TableError, 1),
        (DELTA, DeltaError("Kernel error: Json error: Encountered unexpected 'b' whilst parsing"), TableError, 1),
        (DELTA, of_spark("DELTA_CONCURRENT_APPEND"), SinkAwayError, 5),
        (DELTA, of_spark("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"), SinkAwayError, 5),
        (DELTA, of_spark(None), SinkError, 1),
        (ICEBERG, of_spark("CAST_INVALID_INPUT"), TableError, 1),
        (ICEBERG, of_spark(None, AnalysisException), TableError, 1),
        (ICEBERG, LakeError("of another form"), TableError, 1),
        (ICEBERG, LostRaceError("another process"), SinkAwayError, 5),
        (ICEBERG, OfJava("exceptions.ValidationException"), SinkAwayError, 5),
        (ICEBERG, OfJava("exceptions.CommitFailedException"), SinkAwayError, 5),
        (ICEBERG, OfJava("jdbc.UncheckedSQLException"), SinkAwayError, 1),
        (ICEBERG, OSError("the catalog does not answer"), SinkAwayError, 1),
        (ICEBERG, of_spark(None), SinkError, 1),
    ],
)
def test_what_concerns_one_table_leaves_the_others(
    tables: SparkTables, error: Exception, kind: type[SinkError], attempts: int
) -> None:
    made = []

    def attempt() -> None:
        made.append(1)
        raise error

    with pytest.raises(SinkError) as caught:
        attempted(tables, PLACE, attempt)
    assert type(caught.value) is kind
    assert caught.value.where == "t"
    assert len(made) == attempts


@pytest.mark.parametrize("name", ["_opened", "fold"])
def test_a_table_that_cannot_be_opened_or_folded_is_set_aside_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(*_: Any) -> None:
        raise pa.ArrowInvalid("Failed to parse string: 'Permission denied'")

    monkeypatch.setattr(spark_fold, "table_parts", lambda *_: iter([("t", iter([Part(Extent(0))]))]))
    monkeypatch.setattr(spark_fold, name, fail)
    monkeypatch.setattr(Part, "left", lambda *_: [object()])
    found = list(spark_fold.folding(MicroBatch("/lake", "q", 0, sets_aside=True))(iter([])))
    assert "Failed to parse string" in found[0].column("header")[0].as_py()
    with pytest.raises(TableError):
        list(spark_fold.folding(MicroBatch("/lake", "q", 0))(iter([])))
