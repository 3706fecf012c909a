"""What `engine: spark` of a replica needs: a Spark for which its format has a jar, and a session that has the jar."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tailrace.connectors.finding import Finding
from tailrace.errors import TailraceError
from tailrace.pipeline.targets import ReplicaTarget
from tailrace.spark.versions import demand_delta, demand_iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "sink.replica.engine"
# Settings by which a session gets jars, beside those in the folder of PySpark.
_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_RUNTIME = "iceberg-spark-runtime"


def demand_engine(target: ReplicaTarget, session: SparkSession) -> None:
    """Raises TailraceError for a session with which Spark cannot write the target's tables."""
    if target.format == "delta":
        demand_delta(session.version)
    elif target.namespace is not None:
        from tailrace.sinks.replica.iceberg.spark_catalog import demand  # asks for pyiceberg, which is optional

        demand(session, target.options, target.namespace)


def engine_findings(target: ReplicaTarget, settings: Mapping[str, object]) -> list[Finding]:
    """What is wrong of `engine: spark` by the installed Spark and the settings of the session that will be started."""
    if target.engine != "spark":
        return []
    try:
        if target.format == "delta":
            demand_delta(pyspark.__version__)
            return []
        package = demand_iceberg(pyspark.__version__)
    except TailraceError as error:
        return [Finding(_NAME, False, error.what, error.remedy)]
    if any(_RUNTIME in str(settings.get(name, "")) for name in _JARS) or _is_installed():
        return []
    what = "no setting of `spark` names Iceberg's runtime; unless the cluster has it, the pipeline does not start"
    return [Finding(_NAME, None, what, f"set `spark: {{spark.jars.packages: {package}}}`")]


def _is_installed() -> bool:
    return any((Path(pyspark.__file__).parent / "jars").glob(f"{_RUNTIME}*.jar"))
