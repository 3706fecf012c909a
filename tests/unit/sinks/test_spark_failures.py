"""Errors of Spark's MERGE concern one table or all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException, PySparkException

from tailrace.errors import SinkAwayError, SinkError, TableError
from tailrace.sinks.replica import spark_fold
from tailrace.sinks.replica.batch import MicroBatch
from tailrace.sinks.replica.marks import Extent
from tailrace.sinks.replica.parts import Part
from tailrace.sinks.replica.spark_merge import _failed
from tailrace.sinks.replica.target import Target

PLACE = Target("/lake", "t", {})


def of_spark(condition: str | None, kind: type[PySparkException] = PySparkException) -> PySparkException:
    error = kind("[X] said by Spark")
    error._errorClass = condition
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (of_spark("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"), TableError),
        (of_spark("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"), TableError),
        (of_spark("MERGE_CARDINALITY_VIOLATION"), TableError),
        (of_spark("CAST_INVALID_INPUT"), TableError),
        (of_spark(None, AnalysisException), TableError),
        (DeltaError("Kernel error: Json error: Encountered unexpected 'b' whilst parsing object"), TableError),
        (of_spark("DELTA_CONCURRENT_APPEND"), SinkAwayError),
        (of_spark("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"), SinkAwayError),
        (of_spark(None), SinkError),
    ],
)
def test_what_concerns_one_table_leaves_the_others(error: Exception, kind: type[SinkError]) -> None:
    found = _failed(PLACE, error)
    assert type(found) is kind
    assert found.where == "t"


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
