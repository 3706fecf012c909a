"""The pipeline file: source, steps, sink, checkpoint and trigger, read from YAML and checked before anything starts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tailrace.config import Config
from tailrace.config.dialects import from_mapping, read
from tailrace.connectors import registry
from tailrace.connectors.ports import Admin, ConnectorPackage
from tailrace.errors import ConfigError
from tailrace.model.table import NULL, TEXT
from tailrace.pipeline.document import read_pipeline
from tailrace.pipeline.problems import keys, sentences
from tailrace.sinks.replica.layout import Metadata, Names, ReplicaLayout
from tailrace.transforms import examined


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _location(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


Location = Annotated[str, BeforeValidator(_location), Field(min_length=1)]


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


def _scalar(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    raise ValueError("should be text, a number, true or false")


Scalar = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def _plain(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise ValueError(f"is {text!r}; only letters, digits, `.`, `_` and `-` are allowed")
    return text


class Source(_Part):
    """Where changes come from. `config` is a Debezium connector config: a file's path, or the properties themselves.

    Without `connector` the property connector.class says which one it is, see `registry.of_source`.
    """

    connector: Annotated[str | None, AfterValidator(_connector)] = None
    config: Annotated[str | dict[str, Any], BeforeValidator(_config)] = Field(repr=False)


_RETENTION = re.compile(r"([1-9]\d*) ?(m|minutes?|h|hours?|d|days?)")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}


def _minutes(text: str) -> int | None:
    match = _RETENTION.fullmatch(text)
    return None if match is None else int(match[1]) * _MINUTES[match[2][0]]


def _retention(text: str) -> str:
    if _minutes(text) is None:
        raise ValueError(f"is {text!r}; write a number of minutes, hours or days such as 30m, 2h or 7d")
    return text


def _producer(value: dict[str, Any]) -> dict[str, Any]:
    if "transactional.id" in value:
        raise ValueError("transactional.id is made for each task; set sink.kafka.transactional.id.prefix")
    return value


def _topic(text: str) -> str:
    if len(text) > 249:
        raise ValueError(f"has {len(text)} characters; Kafka takes 249")
    return _plain(text)


class KafkaTarget(_Part):
    """A Kafka cluster; `properties` are the producer's (librdkafka's names) and win over the defaults."""

    bootstrap_servers: str = Field(alias="bootstrap.servers", min_length=1)
    properties: Annotated[dict[str, Scalar], AfterValidator(_producer)] = Field(default_factory=dict, repr=False)
    delivery: Literal["exactly-once", "at-least-once"] = "exactly-once"
    transactional_id_prefix: str = Field(default="tailrace-", alias="transactional.id.prefix", min_length=1)
    state_topic: Annotated[str, AfterValidator(_topic)] = Field(default="tailrace-state", alias="state.topic")


def _out_of_range(value: object) -> object:
    """The bare word null is YAML's nothing. Refused here, for the library reports each type that it could have been."""
    given = value if isinstance(value, Mapping) else {"": value}
    policies = {name: NULL if policy is None else policy for name, policy in given.items()}
    for name, policy in policies.items():
        if not isinstance(name, str) or policy not in ("error", NULL, TEXT):
            where = f"{name}: " if isinstance(value, Mapping) else ""
            raise ValueError(f"{where}should be error, null or text, or such a word for each expression of columns")
    return policies if isinstance(value, Mapping) else policies[""]


OutOfRange = Literal["error", "null", "text"]


def _distinct(names: dict[str, str]) -> dict[str, str]:
    """Delta and catalogs ignore the case of columns' names."""
    for kind, name in names.items():
        other = next((each for each, known in names.items() if each != kind and known.lower() == name.lower()), None)
        if other is not None:
            raise ValueError(f"{other} and {kind} have one name, {name}; give each a name of its own")
    return names


class ReplicaTarget(_Part):
    """Delta tables below `path`, each kept equal to its source table; `on_drop`: or not, once that is dropped.

    `on_error`: a table whose rows cannot be written as they are is set aside, or it stops the pipeline. `out_of_range`
    is what becomes of dates and times that no table holds: of all columns, or by expressions for `schema.table.column`.

    `names` of tables and columns are the source's, or such as a catalog takes. `metadata`: names of columns about each
    row's last change, by what they hold.

    With `maintenance` small files are joined, and versions of a table removed once they were replaced `retention` ago.
    """

    path: Location
    engine: Literal["deltalake", "spark"] = "deltalake"
    on_drop: Literal["clear", "keep"] = "clear"
    on_error: Literal["aside", "stop"] = "aside"
    maintenance: bool = True
    retention: Annotated[str, AfterValidator(_retention)] = "2h"
    out_of_range: Annotated[OutOfRange | dict[str, OutOfRange], BeforeValidator(_out_of_range)] = "error"
    names: Names = "source"
    metadata: Annotated[dict[Metadata, Annotated[str, Field(min_length=1)]], AfterValidator(_distinct)] = Field(
        default_factory=dict
    )
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)

    @property
    def layout(self) -> ReplicaLayout:
        """How its tables differ from the source's."""
        return ReplicaLayout(self.names, {str(kind): name for kind, name in self.metadata.items()})

    @property
    def properties(self) -> dict[str, str]:
        """The connector's properties that `out_of_range` stands for."""
        given = {".*": self.out_of_range} if isinstance(self.out_of_range, str) else self.out_of_range
        chosen = {policy: ",".join(name for name, each in given.items() if each == policy) for policy in (NULL, TEXT)}
        return {f"column.out.of.range.{policy}": names for policy, names in chosen.items() if names}

    @property
    def retention_minutes(self) -> int | None:
        """The retention in minutes, None without maintenance."""
        return _minutes(self.retention) if self.maintenance else None


class FileTarget(_Part):
    """A directory of files."""

    path: Location


class NoSettings(_Part):
    """A target without settings."""


class Sink(_Part):
    """Where changes go: exactly one of the targets."""

    kafka: KafkaTarget | None = None
    replica: ReplicaTarget | None = None
    parquet: FileTarget | None = None
    json_lines: FileTarget | None = Field(default=None, alias="json")
    console: NoSettings | None = None
    discard: NoSettings | None = Field(default=None, alias="null")

    @property
    def target(self) -> KafkaTarget | ReplicaTarget | FileTarget | NoSettings:
        """The settings of the one target."""
        target: KafkaTarget | ReplicaTarget | FileTarget | NoSettings
        target = next(value for _, value in self if value is not None)
        return target

    @property
    def kind(self) -> str:
        """The target's name as written in the file: kafka, replica, parquet, json, console or null."""
        field = next(name for name, value in self if value is not None)
        return type(self).model_fields[field].alias or field

    @property
    def path(self) -> str | None:
        """Where the target's files or tables lie, None for one without."""
        target = self.target
        return target.path if isinstance(target, FileTarget | ReplicaTarget) else None


_INTERVAL = re.compile(r"(\d+) ?(ms|milliseconds?|s|seconds?|m|minutes?)")
# Where the file has no trigger. Each commit of a replica rewrites files, so small ones are worth a wait.
_TRIGGER, _REPLICA_PAUSE_SECONDS = "500ms", 5.0
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


class Definition(_Part):
    """A pipeline as its file describes it. Paths are absolute once loaded."""

    name: Annotated[str, AfterValidator(_plain)] = "tailrace"
    source: Source
    steps: tuple[dict[str, Any], ...] = ()
    sink: Annotated[Sink, BeforeValidator(_sink)]
    checkpoint: Location
    trigger: Annotated[str | None, AfterValidator(_trigger)] = None
    spark: dict[str, Scalar] = Field(default_factory=dict, repr=False)

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

    def _given(self) -> dict[str, str]:
        config = self.source.config
        return read(Path(config)) if isinstance(config, str) else from_mapping(config)

    @property
    def entry(self) -> registry.Entry:
        """The connector in the registry. Raises ConfigError."""
        return registry.of_source(self.source.connector, self._given())

    def package(self) -> ConnectorPackage:
        """The connector's package. Raises ConfigError."""
        return self.entry.load()

    def config(self) -> Config:
        """The connector's properties, resolved. Raises ConfigError naming every problem."""
        return self.package().resolve(self.properties())

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
    """The pipeline in `content`, relative paths taken from `base`. Raises ConfigError, with `where` as its place."""
    try:
        definition = Definition.model_validate(dict(content))
    except ValidationError as error:
        wrong = [f"{step.where}: {step.line}" for step in _wrong_steps(content.get("steps"))]
        raise ConfigError("\n  ".join(["is wrong:", *sentences(error, Definition), *wrong]), where=where) from error
    chosen = [name for name, value in definition.sink if value is not None]
    if len(chosen) != 1:
        known = ", ".join(keys(Sink))
        raise ConfigError(f"sink names {len(chosen)} targets", where=where, remedy=f"Choose one of {known}.")
    _check_steps(definition, where)
    return _absolute(definition, base.resolve())


def _steps_text(steps: Sequence[Any]) -> str:
    # YAML has types that JSON lacks, such as dates.
    return json.dumps(list(steps), default=str)


def _wrong_steps(steps: object) -> list[ConfigError]:
    """What is wrong of a list of mappings; anything else is refused by its type."""
    if not isinstance(steps, list | tuple) or not all(isinstance(step, Mapping) for step in steps):
        return []
    return examined(_steps_text(steps))[1]


def _check_steps(definition: Definition, where: str) -> None:
    wrong = _wrong_steps(definition.steps)
    if len(wrong) == 1:
        raise ConfigError(wrong[0].what, where=f"{where}: {wrong[0].where}", remedy=wrong[0].remedy)
    if wrong:
        raise ConfigError("\n  ".join(["is wrong:", *(f"{step.where}: {step.line}" for step in wrong)]), where=where)
    kind, single = definition.sink.kind, any("transform" in step for step in definition.steps)
    if single and kind not in ("kafka", "json", "null"):
        what = f"a transform step works on Kafka records, and the sink {kind} takes changes"
        raise ConfigError(what, where=where, remedy="Drop the transform step, or choose kafka or json.")
    if definition.sink.replica and any("route" in step for step in definition.steps):
        what = "a route step renames topics, and a replica has tables"
        raise ConfigError(what, where=where, remedy="Drop the route step, or choose another sink.")


def _absolute(definition: Definition, base: Path) -> Definition:
    changes: dict[str, Any] = {"checkpoint": _from(base, definition.checkpoint)}
    target = definition.sink.target
    if isinstance(target, FileTarget | ReplicaTarget):
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
