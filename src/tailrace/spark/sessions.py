"""Distinguishes, in this one place, a session with Java from one of Spark Connect, and does what each can.

Clients of Spark Connect, serverless compute and shared clusters have no SparkContext. There the function of a
`foreachBatch` runs in a process beside the server, with a session that it shares with the client and other queries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from tailrace.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# How many rows, and bytes, Spark hands to a Python worker at once.
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def has_java(session: SparkSession) -> bool:
    """Whether the session has a SparkContext, and so Java; one of Spark Connect has not."""
    # Not by its class: importing that of Connect asks for packages that the other kind does not need.
    return not type(session).__module__.startswith("pyspark.sql.connect.")


def demand_java(session: SparkSession, what: str) -> None:
    """Raises ConfigError in a session of Spark Connect, for `what` it cannot do."""
    if not has_java(session):
        raise ConfigError(
            f"{what} needs a Spark session with Java, and this one is a session of Spark Connect",
            remedy="use the source with a sink in a query of your own (docs/running.md, Spark Connect and serverless), "
            "or let `tailrace run` start a Spark of its own on a machine that reaches the database",
        )


def query_id(frame: DataFrame, given: str | None = None) -> str:
    """The id of the query whose `foreachBatch` gets this frame, or the given one.

    It is in the checkpoint, so it outlives restarts, and no other checkpoint has it. Spark Connect does not tell a
    `foreachBatch` whose it is: there it is known if the session has no other query. Raises ConfigError if it is not.
    """
    if given is not None:
        return given
    session = frame.sparkSession
    if has_java(session):
        id_ = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        if id_ is not None:
            return id_
        raise ConfigError("these rows come from no streaming query", remedy="call the sink by foreachBatch")
    return _only_query(session)


def _active_of_connect() -> SparkSession | None:
    """The active session in the process of a `foreachBatch` of Spark Connect, None elsewhere."""
    if "SPARK_CONNECT_LOCAL_URL" not in os.environ:
        return None
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    return ConnectSession.getActiveSession()  # type: ignore[return-value]  # has the same methods


# From Spark 4.3 on a micro-batch has a session of its own, which has no queries. That of the client is the active one
# while the function is unpickled, which imports this module.
_CLIENTS = _active_of_connect()


@cache
def _only_query(session: SparkSession) -> str:
    """The id of a session's only query: in the process of its `foreachBatch`, which has no other, it stays the same."""
    active = (_CLIENTS or session).streams.active
    if len(active) == 1:
        return str(active[0].id)
    raise ConfigError(
        f"Spark Connect does not say which of the session's {len(active)} queries this micro-batch belongs to",
        remedy="give the sink a `query_id`: a name that stays the same for this checkpoint, and that no other has; or "
        "start each query in a session of its own",
    )


@contextmanager
def few_rows(session: SparkSession) -> Iterator[None]:
    """Meanwhile a Python worker gets few rows at once: rows of the shape `arrow` are megabytes each.

    A batch of Arrow bytes also ends at 2 GiB.
    """
    with _setting(session, _BATCH_ROWS, "16"):
        yield


@contextmanager
def few_bytes(session: SparkSession) -> Iterator[None]:
    """Meanwhile a Python worker gets 64 MB at once."""
    with _setting(session, _BATCH_BYTES, str(64 << 20)):
        yield


@contextmanager
def _setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    usual = str(session.conf.get(name))
    # Queries of Spark Connect share a session: of two at once the first one puts back what was, not the second.
    if usual == value:
        yield
        return
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, usual)
