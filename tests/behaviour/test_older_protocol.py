"""A query whose Spark tells the reader neither its start nor a limit: this Spark does so for the older reader as well.

What other releases do beyond this protocol is in test_spark_versions.py, which needs them.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.behaviour.streams import started
from tests.conftest import Database

INSERT = "INSERT INTO orders SELECT n, repeat('y', 200) FROM generate_series({}, {}) n"


def register(spark: SparkSession) -> str:
    """A format with the reader of older releases; its class travels by value, so it is made here."""
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

    from tailrace.spark.source import ChangeDataSource

    class Older(ChangeDataSource):
        connector = "postgres"

        @classmethod
        def name(cls) -> str:
            return "older-postgres-cdc"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            from tailrace.spark.older_reader import OlderReader

            return OlderReader(self._recipe(schema), schema, self.steps, self.run_id, 0.0, self.pace)

    spark.dataSource.register(Older)
    return Older.name()


def test_a_query_resumes_and_reads_each_change_once(spark: SparkSession, database: Database, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "INSERT INTO orders SELECT n, 'x' FROM generate_series(1, 100) n",
    )
    options = {
        **database.properties,
        "topic.prefix": "t",
        "slot.name": f"slot_{database.name}",
        "publication.name": f"publication_{database.name}",
        "maxBytesPerTrigger": "65536",
    }
    name, found, sizes = register(spark), Counter[tuple[str, int]](), list[int]()

    def take(frame: DataFrame, number: int) -> None:
        values = [json.loads(row["value"])["payload"] for row in frame.select("value").collect()]
        found.update((value["op"], value["after"]["id"]) for value in values)
        sizes.append(len(values))

    def run(pace: str | None, **trigger: bool | str) -> None:
        given = options if pace is None else {**options, "tailrace.pace": pace}
        writer = spark.readStream.format(name).options(**given).load().writeStream.foreachBatch(take)
        query = started(writer.option("checkpointLocation", str(tmp_path)).trigger(**trigger))  # type: ignore[arg-type]
        try:
            if "availableNow" in trigger:
                query.awaitTermination()
            else:
                query.processAllAvailable()
        finally:
            query.stop()

    run(None, availableNow=True)
    expected = Counter({("r", n): 1 for n in range(1, 101)})
    assert found == expected
    database.execute(*(INSERT.format(n, n + 99) for n in range(1001, 2001, 100)))
    run(None, availableNow=True)
    expected += Counter({("c", n): 1 for n in range(1001, 2001)})
    assert found == expected, "one micro-batch takes the whole backlog, in spite of the limit"
    database.execute(*(INSERT.format(n, n + 99) for n in range(3001, 4001, 100)))
    sizes.clear()
    run("endless", processingTime="0 seconds")
    expected += Counter({("c", n): 1 for n in range(3001, 4001)})
    assert found == expected
    assert len([size for size in sizes if size]) > 2, "a run that is known to go on keeps to the limit"
