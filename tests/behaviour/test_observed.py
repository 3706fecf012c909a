"""Changes counted in the progress of a session of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tests.behaviour.streams import started
from tests.conftest import Database


@pytest.mark.parametrize("shape", ["event", pytest.param("arrow", marks=pytest.mark.long)])
def test_changes_are_counted_in_sparks_progress(
    database: Database, spark: SparkSession, tmp_path: Path, shape: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, note text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    options = {**database.properties, "topic.prefix": "shop", "slot.name": f"slot_{database.name}", "shape": shape}

    def counted() -> dict[str, int]:
        """What the micro-batches of one run have counted; each is looked at twice."""
        changes = tailrace.observe(spark.readStream.format("postgres-cdc").options(**options).load())
        writer = changes.writeStream.option("checkpointLocation", str(tmp_path / "state"))
        query = started(writer.trigger(availableNow=True).foreachBatch(look))
        query.awaitTermination()
        found = [each.observedMetrics["tailrace"].asDict() for each in query.recentProgress if each.observedMetrics]
        newest.extend(json.loads(each.pop("newest", None) or "[]") for each in found)
        return {name: sum(each[name] for each in found) for name in found[0] if name != "newest"}

    def look(frame: DataFrame, _: int) -> None:
        seen = frame.persist()
        seen.count()
        seen.collect()
        seen.unpersist()

    newest = list[list[dict[str, Any]]]()
    first = counted()
    assert (first["reads"], first["creates"]) == (2, 0)
    database.execute("UPDATE t SET note = 'c'", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (3, 'd')")
    second = counted()
    assert [second[name] for name in ("reads", "creates", "updates", "deletes")] == [0, 1, 2, 1]
    assert second.get("transactions") == (3 if shape == "arrow" else None)
    if shape == "arrow":
        row = {"id": "***", "note": "***"}
        changes = [(each["op"], each["table"], each["row"]) for each in newest[-1]]
        assert changes[-1] == ("create", "public.t", row)
