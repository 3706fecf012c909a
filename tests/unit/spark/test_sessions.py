"""What sinks ask a session: whose micro-batch it is, and settings that are put back. test_connect.py has the sessions
of Spark Connect.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tailrace.errors import ConfigError
from tailrace.spark.sessions import few_rows, has_java, query_id

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def test_a_frame_of_no_query_has_no_id_unless_one_is_given(spark: SparkSession) -> None:
    assert has_java(spark)
    with pytest.raises(ConfigError, match="come from no streaming query"):
        query_id(spark.range(1))
    assert query_id(spark.range(1), "mine") == "mine"


def test_a_setting_is_put_back_however_two_queries_overlap(spark: SparkSession) -> None:
    usual = spark.conf.get(ROWS)
    first, second = few_rows(spark), few_rows(spark)
    first.__enter__()
    second.__enter__()
    assert spark.conf.get(ROWS) == "16"
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert spark.conf.get(ROWS) == usual
