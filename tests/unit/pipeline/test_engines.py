"""What `engine: spark` of Iceberg tables needs is told by `check`, and before a query starts."""

from __future__ import annotations

from typing import Any

import pyspark
import pytest

from tailrace.errors import TailraceError
from tailrace.pipeline.engines import demand_engine, engine_findings
from tailrace.pipeline.targets import ReplicaTarget

DELTA = ReplicaTarget.model_validate({"path": "p", "engine": "spark"})
CATALOG = {"type": "sql", "uri": "sqlite:////lake/catalog.db", "warehouse": "file:///lake"}
ICEBERG = {"format": "iceberg", "namespace": "n", "catalog": CATALOG}
MERGED = ReplicaTarget.model_validate({**ICEBERG, "engine": "spark"})


class OfVersion:
    """A session of a Spark, asked for nothing else."""

    def __init__(self, version: str) -> None:
        self.version = version


def test_a_spark_without_a_runtime_is_refused_before_the_query_starts() -> None:
    session: Any = OfVersion("4.2.1")
    with pytest.raises(TailraceError, match=r"engine: spark: Iceberg has no runtime for Spark 4\.2\.1") as caught:
        demand_engine(MERGED, session)
    assert "\n" not in caught.value.what
    assert "leave `engine` out" in str(caught.value.remedy)
    demand_engine(DELTA, session)


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0"])
def test_a_check_refuses_a_spark_without_a_runtime(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    (finding,) = engine_findings(MERGED, {})
    assert (finding.name, finding.ok) == ("sink.replica.engine", False)
    assert finding.what == f"Iceberg has no runtime for Spark {version}, which MERGE needs"
    assert engine_findings(ReplicaTarget.model_validate(ICEBERG), {}) == []


def test_a_check_names_the_package_that_a_session_will_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    (finding,) = engine_findings(MERGED, {"spark.jars": "other.jar"})
    assert finding.ok is None
    package = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    assert package in str(finding.remedy)
    assert engine_findings(MERGED, {"spark.jars.packages": package}) == []


def test_a_check_refuses_a_spark_that_delta_is_not_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    (finding,) = engine_findings(DELTA, {})
    assert finding.what == "Delta for Spark does not run on Spark 4.3.0"
