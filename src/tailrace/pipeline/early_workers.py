"""Starts Python's worker processes while Spark plans the first micro-batch, whose tasks then find them ready."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tailrace.connectors import registry

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from tailrace.config import Config

log = logging.getLogger(__name__)


def start_workers(session: SparkSession, connector: str, config: Config, most: int) -> None:
    """Start a worker for each core of a local session, but not more than `most`, in the background.

    A worker imports for a second before it reads, and Spark starts it for the first task alone. On a cluster nobody
    knows which executors will have the tasks.
    """
    context = session.sparkContext
    if not (context.master or "").startswith("local["):
        return

    def run() -> None:
        try:
            run_tasks(context, connector, config, min(most, context.defaultParallelism))
        except Exception as error:  # the pipeline does not need it, and its own tasks say what is wrong
            log.debug("no workers were started early: %s", error)

    threading.Thread(target=run, name="early workers", daemon=True).start()


def run_tasks(context: SparkContext, connector: str, config: Config, count: int) -> None:
    """Run so many tasks, in the environment that the tasks of a data source have: Spark keeps workers by it."""
    from pyspark.core.rdd import _wrap_function

    jvm: Any = context._jvm
    rdd: Any = context.parallelize(range(count), count).mapPartitions(partial(_import, connector, config))
    function: Any = _wrap_function(context, rdd.func, rdd._prev_jrdd_deserializer, rdd._jrdd_deserializer)
    # What SparkContext.environment adds is not in that of a data source's function.
    of_sources: Any = getattr(getattr(jvm, "org.apache.spark.api.python.PythonUtils$"), "MODULE$")
    function.envVars().clear()
    function.envVars().putAll(of_sources.createPythonFunction(b"").envVars())
    function.envVars().put("SPARK_SIMPLIFIED_TRACEBACK", "1")
    jvm.PythonRDD(rdd._prev_jrdd.rdd(), function, False, False).count()


def _import(connector: str, config: Config, rows: Iterable[int]) -> Iterable[int]:
    """Import in a worker what its tasks use."""
    import tailrace.spark.reader  # noqa: F401

    registry.named(connector).load().connector(config)
    return rows
