"""The pipeline file: source, steps, sink, checkpoint and trigger, read from YAML and checked before anything starts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from tailrace.config import Config
from tailrace.config.dialects import from_mapping, read
from tailrace.connectors import registry
from tailrace.connectors.ports import Admin, ConnectorPackage
from tailrace.errors import ConfigError
from tailrace.pipeline.document import read_pipeline
from tailrace.pipeline.problems import keys, property_problems, sentences
from tailrace.pipeline.table_forms import Scalar

# Re-exported: who has a definition needs its targets.
from tailrace.pipeline.targets import FileTarget as FileTarget
from tailrace.pipeline.targets import HttpSection as HttpSection
from tailrace.pipeline.targets import KafkaTarget as KafkaTarget
from tailrace.pipeline.targets import Location, Reconcile, Section, Sink, plain
from tailrace.pipeline.targets import ReplicaTarget as ReplicaTarget
from tailrace.transforms import examined
from tailrace.transforms.registry import CHECKS


def _config(value: object) -> object:
    if isinstance(value, str | Path) and str(value):
        return str(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise ValueError(f"the name {name} should be text: put it in quotes")
        return value
    raise ValueError("should be a connector config: the path of its file, or its properties")


def _connector(name: str) -> str:
    try:
        return registry.named(name).name
    except ConfigError as error:
        raise ValueError(error.line) from error


class Source(Section):
    """Where changes come from. `config` is a Debezium connector config: a file's path, or the properties themselves.

    Without `connector` the property connector.class says which one it is, see `registry.of_source`.
    """

    connector: Annotated[str | None, AfterValidator(_connector)] = None
    config: Annotated[str | dict[str, Any], BeforeValidator(_config)] = Field(repr=False)


_INTERVAL = re.compile(r"(\d+) ?(ms|milliseconds?|s|seconds?|m|minutes?)")
# Where the file has no trigger. Each commit of a replica rewrites files, so small ones are worth a wait.
_TRIGGER, _REPLICA_PAUSE_SECONDS = "500ms", 8.0
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes"}


def _trigger(text: str | None) -> str | None:
    if text is None or text in ("once", "availableNow") or _INTERVAL.fullmatch(text):
        return text
    raise ValueError(f"is {text!r}; write an interval such as 500ms or 10s, or once, or availableNow")


def _sink(value: object) -> object:
    """`sink: console` and `console:` without settings are written by hand, and YAML reads the key null as nothing."""
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, Mapping):
        return {"null" if key is None else key: {} if target is None else target for key, target in value.items()}
    return value


class Definition(Section):
    """A pipeline as its file describes it. Paths are absolute once loaded."""

    name: Annotated[str, AfterValidator(plain)] = "tailrace"
    source: Source
    steps: tuple[dict[str, Any], ...] = ()
    sink: Annotated[Sink, BeforeValidator(_sink)]
    checkpoint: Location
    trigger: Annotated[str | None, AfterValidator(_trigger)] = None
    spark: dict[str, Scalar] = Field(default_factory=dict, repr=False)
    http: HttpSection | None = None
    reconcile: Reconcile | None = None

    def properties(self) -> dict[str, str]:
        """The connector's properties as given. Raises ConfigError if their file cannot be read.

        A replica follows truncates and holds every column, which Debezium's defaults leave out. Signals lie beside the
        position.
        """
        given = self._given()
        defaults = {"signal.folder": f"{self.checkpoint}/signals"}
        if self.sink.replica:
            package = registry.of_source(self.source.connector, given).load()
            defaults |= {"skipped.operations": "none", **package.replica_properties, **self.sink.replica.properties}
        return {**defaults, **given}

    def written(self) -> dict[str, str]:
        """The properties as they are written, with references such as `${env:NAME}`. Raises ConfigError."""
        config = self.source.config
        return read(Path(config), as_written=True) if isinstance(config, str) else from_mapping(config, as_written=True)

    def _given(self) -> dict[str, str]:
        config = self.source.config
        return read(Path(config)) if isinstance(config, str) else from_mapping(config)

    @property
    def entry(self) -> registry.ConnectorEntry:
        """The connector in the registry. Raises ConfigError."""
        return registry.of_source(self.source.connector, self._given())

    def package(self) -> ConnectorPackage:
        """The connector's package. Raises ConfigError."""
        return self.entry.load()

    def config(self) -> Config:
        """The connector's properties, resolved. Raises ConfigError naming every problem."""
        return self.package().resolve(self.properties(), CHECKS)

    def admin(self) -> Admin:
        """The source as an operator asks it. Raises ConfigError."""
        return self.package().admin(self.config())

    def trigger_options(self) -> dict[str, Any]:
        """The trigger as arguments of Spark's `DataStreamWriter.trigger`."""
        trigger = self.trigger or _TRIGGER
        interval = _INTERVAL.fullmatch(trigger)
        if interval is None:
            return {trigger: True}
        return {"processingTime": f"{interval[1]} {_UNITS.get(interval[2], interval[2])}"}

    @property
    def rows_in_java(self) -> bool:
        """Whether the sink takes rows from Spark; Kafka and replicas of deltalake take them from Python as they are."""
        target = self.sink.target
        if isinstance(target, ReplicaTarget):
            return target.engine == "spark"
        return not isinstance(target, KafkaTarget) and self.sink.kind != "null"

    @property
    def pause_seconds(self) -> float:
        """The least time between the starts of micro-batches that read only the log, in addition to the trigger."""
        return _REPLICA_PAUSE_SECONDS if self.trigger is None and self.sink.replica else 0.0

    def steps_text(self) -> str:
        """The steps as the JSON text that travels to the reader."""
        return _steps_text(self.steps)


def load(path: Path) -> Definition:
    """The pipeline in the YAML file `path`. Raises ConfigError naming file and key, for all its problems at once."""
    return from_content(read_pipeline(path), base=path.parent, where=str(path))


def from_content(content: Mapping[str, Any], *, base: Path, where: str) -> Definition:
    """The pipeline in `content`, relative paths taken from `base`. Raises ConfigError, with `where` as its place.

    It names the problems of keys, sink and steps, and beside them those of the connector's properties.
    """
    try:
        definition = Definition.model_validate(dict(content))
    except ValidationError as error:
        wrong = [
            *sentences(error, Definition),
            *(f"{step.where}: {step.line}" for step in _wrong(content.get("steps"))),
        ]
        properties = property_problems(content.get("source"), base)
        raise ConfigError("\n  ".join(["is wrong:", *wrong, *properties]), where=where) from error
    errors = [*_wrong_sink(definition), *_wrong(definition.steps)]
    errors += [] if errors else _unfit_steps(definition)
    properties = property_problems(content.get("source"), base) if errors else []
    if len(errors) == 1 and not properties:
        (only,) = errors
        place = where if only.where is None else f"{where}: {only.where}"
        raise ConfigError(only.what, where=place, remedy=only.remedy)
    if errors:
        wrong = [each.line if each.where is None else f"{each.where}: {each.line}" for each in errors]
        raise ConfigError("\n  ".join(["is wrong:", *wrong, *properties]), where=where)
    return _absolute(definition, base.resolve())


def _steps_text(steps: Sequence[Any]) -> str:
    # YAML has types that JSON lacks, such as dates.
    return json.dumps(list(steps), default=str)


def _wrong(steps: object) -> list[ConfigError]:
    """What is wrong of a list of mappings; anything else is refused by its type."""
    if not isinstance(steps, list | tuple) or not all(isinstance(step, Mapping) for step in steps):
        return []
    return examined(_steps_text(steps))[1]


def _wrong_sink(definition: Definition) -> list[ConfigError]:
    chosen = [name for name, value in definition.sink if value is not None]
    if len(chosen) == 1:
        return []
    return [ConfigError(f"sink names {len(chosen)} targets", remedy=f"Choose one of {', '.join(keys(Sink))}.")]


def _unfit_steps(definition: Definition) -> list[ConfigError]:
    """The steps that the sink cannot have."""
    kind, problems = definition.sink.kind, list[ConfigError]()
    if any("transform" in step for step in definition.steps) and kind not in ("kafka", "json", "null"):
        what = f"a transform step works on Kafka records, and the sink {kind} takes changes"
        problems.append(ConfigError(what, remedy="Drop the transform step, or choose kafka or json."))
    if definition.sink.replica and any("route" in step for step in definition.steps):
        what = "a route step renames topics, and a replica has tables"
        problems.append(ConfigError(what, remedy="Drop the route step, or choose another sink."))
    if definition.reconcile is not None and definition.sink.replica is None:
        what = f"reconcile compares the tables of a replica, and the sink {kind} has none"
        problems.append(ConfigError(what, remedy="Drop `reconcile`, or choose another sink."))
    elif definition.reconcile is not None and definition.sink.replica and definition.sink.replica.mode == "changes":
        what = "reconcile compares rows with those of the source, and with `mode: changes` a replica holds changes"
        problems.append(ConfigError(what, remedy="Drop `reconcile`, or choose another mode."))
    return problems


def _absolute(definition: Definition, base: Path) -> Definition:
    changes: dict[str, Any] = {"checkpoint": _from(base, definition.checkpoint)}
    target = definition.sink.target
    if isinstance(target, FileTarget | ReplicaTarget) and target.path is not None:
        field = next(name for name, value in definition.sink if value is not None)
        moved = target.model_copy(update={"path": _from(base, target.path)})
        changes["sink"] = definition.sink.model_copy(update={field: moved})
    config = definition.source.config
    if isinstance(config, str):
        changes["source"] = definition.source.model_copy(update={"config": _from(base, config)})
    return definition.model_copy(update=changes)


def _from(base: Path, location: str) -> str:
    """`location` seen from `base`; what is a URL (s3://, hdfs://) or absolute stays."""
    return location if re.match(r"^[a-z][a-z0-9+.-]+:", location, re.IGNORECASE) else str(base / location)
