"""Finds the id of a pipeline's query in its sink, for a checkpoint whose file `metadata` is damaged.

Sinks know by the id which changes they have. Under another one they take a repeated micro-batch for a new one, which
doubles the rows of a replica's tables without a key, and Kafka's records.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from tailrace.config import Config
from tailrace.errors import OffsetError, SinkError
from tailrace.pipeline.ahead import refuse_without_id
from tailrace.pipeline.checkpoint import CheckpointState, NoIdError, file_system, position
from tailrace.pipeline.definition import Definition, KafkaTarget, ReplicaTarget
from tailrace.sinks.kafka import state
from tailrace.sinks.kafka.client import Settings
from tailrace.snapshot.progress import Progress
from tailrace.spark.labels import batch_label

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def position_of(definition: Definition) -> CheckpointState:
    """The position in a pipeline's checkpoint. Raises OffsetError, with the query's id if that is what it lacks."""
    try:
        return position(definition.checkpoint)
    except NoIdError as error:
        raise with_id(definition, error) from error


def demand_id(session: SparkSession, definition: Definition) -> None:
    """Raises OffsetError for a checkpoint that has begun and lacks the query's id, as Spark sees it."""
    try:
        refuse_without_id(session, definition.checkpoint)
    except NoIdError as error:
        raise with_id(definition, error) from error


def with_id(definition: Definition, error: NoIdError) -> OffsetError:
    """The error with the command that writes the id again."""
    try:
        remedy = _remedy(definition, *_known(definition))
    except SinkError as failure:
        remedy = f"write the same id again, which can be found when the sink answers ({failure.what})"
    return OffsetError(error.what, where=error.where, remedy=f"put it back from a copy; or {remedy}")


def _remedy(definition: Definition, own: str | None, others: list[str]) -> str:
    new_id = own or str(uuid.uuid4())
    write = f"""printf '{{"id":"{new_id}"}}' > {definition.checkpoint}/metadata"""
    if own is not None:
        return f"write the id again under which the sink knows the pipeline: {write}"
    if others:
        ids = ", ".join(others)
        return (
            f"write the pipeline's own id, if it is one of those that the sink knows ({ids}), else a new one: {write}"
        )
    return f"write a new one, as the sink knows none: {write}"


def _known(definition: Definition) -> tuple[str | None, list[str]]:
    """The id that is the query's; without one, those that may be. Raises SinkError."""
    target = definition.sink.target
    if isinstance(target, ReplicaTarget):
        from tailrace.sinks.replica.queries import last_query  # loads deltalake, which other sinks do without

        return last_query(target.root, target.options), []
    if isinstance(target, KafkaTarget) and target.delivery == "exactly-once":
        properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
        settings = Settings(properties, target.transactional_id_prefix, target.state_topic)
        return _of_pipelines(state.splits(settings), set(_batches(definition.checkpoint)))
    return None, []


def _of_pipelines(splits: dict[str, set[str]], wanted: set[str]) -> tuple[str | None, list[str]]:
    """The pipeline that has written one of the wanted micro-batches, by the labels of its splits; else all of them."""
    batches = {pipeline: {label.partition("/")[0] for label in labels} for pipeline, labels in splits.items()}
    own = next((pipeline for pipeline, labels in batches.items() if labels & wanted), None)
    return own, [] if own else sorted(splits)


def _batches(checkpoint: str) -> Iterator[str]:
    """What the labels of the checkpoint's micro-batches begin with, see spark/reader.py; not of those of a snapshot."""
    filesystem, root = file_system(checkpoint)
    files = filesystem.get_file_info(fs.FileSelector(f"{root}/offsets"))
    numbers = sorted(int(file.base_name) for file in files if file.base_name.isdigit())
    offsets = {number: _offset(filesystem, f"{root}/offsets/{number}") for number in numbers}
    for number in numbers:
        start, end = offsets.get(number - 1), offsets[number]
        if start is not None and end is not None:
            yield batch_label(start, end, [])


def _offset(filesystem: fs.FileSystem, file: str) -> dict[str, Any] | None:
    with filesystem.open_input_stream(file) as stream:
        lines = stream.read().decode(errors="replace").splitlines()
    try:
        offset = json.loads(lines[2])
    except (IndexError, ValueError):
        return None
    return offset if isinstance(offset, dict) else None


def config_now(definition: Definition, config: Config) -> Config:
    """The configuration with the tables that were added or removed while the pipeline ran. Raises OffsetError."""
    offset = position_of(definition).planned
    added = Progress.from_json(offset.offset.get("snapshots")).tables if offset is not None else ()
    return replace(config, tables=added)
