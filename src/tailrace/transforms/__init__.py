"""Steps between source and sink: pure functions over ChangeBatches and topics, usable in and out of Spark.

A pipeline's steps travel to the reader as JSON text, `[{"filter": {...}}, {"route": {...}}]`, and run there. Single
message transforms (`transform` steps and the connector's property `transforms`) work on records: see encoder.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.options.topics import TOPIC_NAMING_STRATEGY
from tailrace.errors import ConfigError
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.transforms.filter import Filter
from tailrace.transforms.registry import Single, is_router, stages
from tailrace.transforms.route import Route, renamed


class Step(Protocol):
    """What a step may do: drop rows of a batch, rename a topic. Both must depend on their argument alone."""

    def keep(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch with the rows that stay, in order."""

    def topic(self, topic: str) -> str:
        """The name under which records of that topic leave."""


STEPS: Mapping[str, Callable[..., Step]] = {"filter": Filter.of, "route": Route.of, "transform": Single.of}


def parse(text: str) -> tuple[Step, ...]:
    """The steps written in `text`, a JSON array of one-key objects. Raises ConfigError."""
    steps, wrong = examined(text)
    if wrong:
        raise wrong[0]
    return tuple(steps)


def examined(text: str) -> tuple[list[Step], list[ConfigError]]:
    """The steps written in `text`, and what is wrong of the others."""
    outcomes = [_examined(index, entry) for index, entry in enumerate(json.loads(text or "[]"))]
    wrong = [each for each in outcomes if isinstance(each, ConfigError)]
    return [each for each in outcomes if not isinstance(each, ConfigError)], wrong


def _examined(index: int, entry: Mapping[str, object]) -> Step | ConfigError:
    try:
        return _step(index, entry)
    except ConfigError as error:
        return error


def apply(batches: Iterable[ChangeBatch | ControlBatch], steps: Sequence[Step]) -> Iterator[ChangeBatch | ControlBatch]:
    """The batches with what the steps keep; batches left without a row are dropped, control batches pass."""
    for batch in batches:
        if isinstance(batch, ChangeBatch):
            for step in steps:
                batch = step.keep(batch)
        if len(batch):
            yield batch


def rename(records: pa.RecordBatch, steps: Sequence[Step]) -> pa.RecordBatch:
    """Rows of a shape that has the column `topic`, with the names the steps give, in their order."""
    if not steps or not records.num_rows:
        return records
    index = records.schema.get_field_index("topic")
    names = renamed(records.column(index), lambda topic: renamed_by(steps, topic))
    return records.set_column(index, records.schema.field(index), names)


def renamed_by(steps: Sequence[Step], topic: str) -> str:
    """The name under which the steps let records of a topic leave."""
    for step in steps:
        topic = step.topic(topic)
    return topic


def joins_topics(config: Config, steps: Sequence[Step]) -> bool:
    """Whether the configuration, or steps of a pipeline, may give records of several tables one topic."""
    if "Regex" in config[TOPIC_NAMING_STRATEGY] or any(isinstance(step, Route) for step in steps):
        return True
    given = (*stages(config), *(step.stage for step in steps if isinstance(step, Single)))
    return any(is_router(stage.transform) for stage in given)


def _step(index: int, entry: Mapping[str, object]) -> Step:
    where = f"steps[{index}]"
    if len(entry) != 1:
        raise ConfigError(
            f"has the keys {', '.join(entry) or '(none)'}", where=where, remedy="Write one step an entry."
        )
    ((kind, settings),) = entry.items()
    if kind not in STEPS:
        raise ConfigError(f"unknown step {kind!r}", where=where, remedy=f"Known steps: {', '.join(STEPS)}.")
    make, where = STEPS[kind], f"{where}.{kind}"
    if not isinstance(settings, Mapping):
        raise ConfigError("should be a mapping, of the step's settings", where=where)
    _check_names(make, settings, where)
    try:
        return make(**settings)
    except ConfigError as error:
        raise ConfigError(error.what, where=where, remedy=error.remedy) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error), where=where) from error


def _check_names(make: Callable[..., Step], settings: Mapping[str, object], where: str) -> None:
    """Raises ConfigError for settings that a step lacks or does not know."""
    parameters = signature(make).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    remedy = f"It takes {', '.join(parameters)}."
    for name in settings:
        if name not in parameters:
            raise ConfigError(f"unknown setting {name}", where=where, remedy=remedy)
    for name, parameter in parameters.items():
        if parameter.default is Parameter.empty and name not in settings:
            raise ConfigError(f"the setting {name} is missing", where=where, remedy=remedy)
