"""The targets that a pipeline file may name, with their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tailrace.model.table import NULL, TEXT
from tailrace.pipeline.table_forms import PartitionBy, Scalar, TableProperties
from tailrace.sinks.replica.catalogs.kinds import problem
from tailrace.sinks.replica.form import FEED, VECTORS, FormatVersion, Forms
from tailrace.sinks.replica.iceberg.java_properties import spark_properties
from tailrace.sinks.replica.layout import Names, ReplicaLayout
from tailrace.sinks.replica.modes import COLUMNS, LATEST, Kind, Metadata, Mode
from tailrace.sinks.replica.roots import DATABASE_FORMAT, ICEBERG, Engine, Format, database_root


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _location(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


Location = Annotated[str, BeforeValidator(_location), Field(min_length=1)]


def plain(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise ValueError(f"is {text!r}; only letters, digits, `.`, `_` and `-` are allowed")
    return text


_RETENTION = re.compile(r"([1-9]\d*) ?(m|minutes?|h|hours?|d|days?)")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}


def _minutes(text: str) -> int | None:
    match = _RETENTION.fullmatch(text)
    return None if match is None else int(match[1]) * _MINUTES[match[2][0]]


def _retention(text: str) -> str:
    if _minutes(text) is None:
        raise ValueError(f"is {text!r}; write a number of minutes, hours or days such as 30m, 2h or 7d")
    return text


_PAUSE = re.compile(r"(\d+) ?(s|seconds?|m|minutes?|h|hours?)")


def _pause(text: str) -> str:
    if _PAUSE.fullmatch(text) is None:
        raise ValueError(f"is {text!r}; write a number of seconds, minutes or hours such as 0s, 10m or 1h")
    return text


def _seconds(text: str) -> float:
    match = _PAUSE.fullmatch(text)
    assert match is not None
    return int(match[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[match[2][0]]


def _producer(value: dict[str, Any]) -> dict[str, Any]:
    if "transactional.id" in value:
        raise ValueError("transactional.id is made for each task; set sink.kafka.transactional.id.prefix")
    return value


def _topic(text: str) -> str:
    if len(text) > 249:
        raise ValueError(f"has {len(text)} characters; Kafka takes 249")
    return plain(text)


class KafkaTarget(Section):
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
        other = next((each for each, shown in names.items() if each != kind and shown.lower() == name.lower()), None)
        if other is not None:
            raise ValueError(f"{other} and {kind} have one name, {name}; give each a name of its own")
    return names


class HttpSection(Section):
    """Where metrics, health checks and the console are served; on this machine alone unless `host` says otherwise."""

    port: Annotated[int, Field(ge=0, le=65535)]
    host: str = Field(default="127.0.0.1", min_length=1)


class ReadAgain(Section):
    """How a table is read again: so many rows a second at most (0: as many as can be read), and at most so often."""

    rows_per_second: Annotated[int, Field(ge=0)] = 0
    at_most_every: Annotated[str, AfterValidator(_pause)] = "1m"

    @property
    def pause_seconds(self) -> float:
        """The least time between two requests for one table."""
        return _seconds(self.at_most_every)


class Reconcile(Section):
    """Whether a replica is compared with its source all the time, by so many rows a second; `repair`: and repaired."""

    continuous: bool = False
    rate: Annotated[int, Field(ge=1)] = 2000
    repair: bool = False


_NAMESPACE = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")
_SCHEMA = re.compile(r"[A-Za-z0-9_]{1,63}")
_LATEST_METADATA = ["commit_time", "position", "op"]
# Hive and Glue take no other names of tables than those of `names: catalog`.
_STRICT = ("hive", "glue")


class ReplicaTarget(Section):
    """Tables, each kept equal to its source table; `on_drop`: or not, once that is dropped.

    Delta tables lie below `path`; a `catalog` shows them by name in a `namespace`. Iceberg tables are in a `namespace`
    of a `catalog`, given by pyiceberg's properties. Tables of a database are in the schema `namespace` of the one at
    `url`, whose role has the `password`.

    `on_error`: a table whose rows cannot be written as they are is set aside, or it stops the pipeline. `out_of_range`
    is what becomes of dates and times that no table holds: of all columns, or by expressions for `schema.table.column`.

    `names` of tables and columns are the source's, or such as a catalog takes. `metadata`: names of columns about each
    row's last change, by what they hold.

    `table_properties` and `partition_by` say how Delta tables are stored, see tailrace.sinks.replica.form;
    `format_version` is that of Iceberg tables that are made.

    `mode` is what a table keeps: the source's rows of now, every version of them, or each change.

    `on_incomplete`: a table whose rows may differ from the source's is read again, set aside, or that is told alone;
    `read_again` says how fast and how often.

    With `maintenance` small files are joined, and versions of a table removed once they were replaced `retention` ago,
    or sooner or later as the disk space allows (None).
    """

    format: Format = "delta"
    path: Location | None = None
    url: str | None = Field(default=None, repr=False)
    password: str | None = Field(default=None, repr=False)
    catalog: dict[str, Scalar] = Field(default_factory=dict, repr=False)
    namespace: str | None = None
    engine: Engine = "deltalake"
    mode: Kind = "latest"
    on_drop: Literal["clear", "keep"] = "clear"
    on_error: Literal["aside", "stop"] = "aside"
    on_incomplete: Literal["read_again", "set_aside", "tell"] = "read_again"
    read_again: ReadAgain = Field(default_factory=lambda: ReadAgain())
    maintenance: bool = True
    retention: Annotated[str, AfterValidator(_retention)] | None = None
    out_of_range: Annotated[OutOfRange | dict[str, OutOfRange], BeforeValidator(_out_of_range)] = "error"
    names: Names = "source"
    metadata: Annotated[dict[Metadata, Annotated[str, Field(min_length=1)]], AfterValidator(_distinct)] = Field(
        default_factory=dict
    )
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)
    table_properties: TableProperties = Field(default_factory=dict)
    partition_by: PartitionBy = Field(default_factory=dict)
    format_version: FormatVersion = 2

    @model_validator(mode="after")
    def _is_of_format(self) -> ReplicaTarget:
        given = self.model_fields_set
        if given & {"table_properties", "partition_by"} and self.format != "delta":
            raise ValueError("table_properties and partition_by are of `format: delta`")
        if "format_version" in given and self.format != "iceberg":
            raise ValueError("format_version is of `format: iceberg`")
        if self.format == DATABASE_FORMAT:
            return self._is_of_a_database()
        if given & {"url", "password"}:
            raise ValueError(f"url and password are of `format: {DATABASE_FORMAT}`")
        other = {"delta": "pyiceberg", "iceberg": "deltalake"}[self.format]
        if "engine" in given and self.engine == other:
            raise ValueError(f"`engine: {other}` does not write `format: {self.format}`; leave engine out")
        if self.format == "delta":
            if self.path is None:
                raise ValueError("path is missing: the folder or URL of the Delta tables")
            if given & {"catalog", "namespace"} and (wrong := self._catalog_problem()) is not None:
                raise ValueError(wrong)
            return self
        if given & {"path", "storage_options"}:
            raise ValueError(
                "path and storage_options are of `format: delta`; Iceberg tables lie where `catalog` has them, whose "
                "properties are those of the storage as well"
            )
        if not self.catalog or self.namespace is None or not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError(
                "`format: iceberg` needs catalog, with pyiceberg's properties (type, uri, warehouse, ...), and "
                "namespace, of letters, digits and underscores, with dots between its levels"
            )
        if self.format_version == VECTORS and self.catalog.get("type") != "rest":
            raise ValueError(
                "`format_version: 3` needs a catalog of type rest, whose server writes the metadata of tables: "
                "pyiceberg writes none of that version"
            )
        if self.catalog.get("type") in _STRICT and self.names == "source":
            raise ValueError(f"a catalog of type {self.catalog['type']} needs `names: catalog`")
        if self.engine == "spark" and self.catalog.keys() & {"type", "uri"}:  # others are in pyiceberg's settings
            spark_properties(self.catalog_properties)  # raises for a catalog that Spark does not reach
        return self

    def _is_of_a_database(self) -> ReplicaTarget:
        wrong = self.model_fields_set & {"path", "catalog", "engine", "storage_options", "maintenance", "retention"}
        if wrong:
            raise ValueError(
                f"{', '.join(sorted(wrong))}: `format: {DATABASE_FORMAT}` has url, password and namespace in their "
                "place, and the database keeps its tables small itself (autovacuum)"
            )
        if self.url is None or self.namespace is None or not _SCHEMA.fullmatch(self.namespace):
            raise ValueError(
                f"`format: {DATABASE_FORMAT}` needs url, of the database, and namespace, the schema of the tables, of "
                "at most 63 letters, digits and underscores"
            )
        database_root(self.url, self.namespace)
        return self

    def _catalog_problem(self) -> str | None:
        """What is wrong of a catalog of Delta tables."""
        what = problem(self.catalog, self.namespace)
        if what is None and self.names == "source":
            return f"a catalog of type {self.catalog['type']} needs `names: catalog`"
        return what

    @property
    def has_catalog(self) -> bool:
        """Whether its tables are Delta tables that a catalog shows."""
        return self.format == "delta" and bool(self.catalog)

    @property
    def catalog_properties(self) -> dict[str, str]:
        """The properties of the catalog."""
        return {name: str(value) for name, value in self.catalog.items()}

    @model_validator(mode="after")
    def _is_of_mode(self) -> ReplicaTarget:
        if self.mode != LATEST and self.engine == "spark":
            raise ValueError(f"`engine: spark` merges newest rows alone; leave it out, as `mode: {self.mode}` does not")
        if self.partition_by and self.engine == "spark":
            raise ValueError("`engine: spark` makes no partitions; leave partition_by out")
        has_feed = self.table_properties.get(FEED) == "true"
        if has_feed and self.maintenance and self.retention is None:
            raise ValueError(
                f"`{FEED}` needs retention: without it the changes of a commit are removed after 20 seconds to two "
                "hours, as the disk space allows; set it to more than the longest pause of those who read them"
            )
        usual, given = COLUMNS[self.mode], {str(kind): name for kind, name in self.metadata.items()}
        taken = [*usual] or _LATEST_METADATA
        wrong = [kind for kind in given if kind not in taken]
        if wrong:
            raise ValueError(f"metadata of `mode: {self.mode}` are {', '.join(taken)}, and not {', '.join(wrong)}")
        _distinct({**usual, **given})
        return self

    @property
    def root(self) -> str:
        """Where its tables lie, as tailrace.sinks.replica.lakes takes it."""
        if self.url is not None and self.namespace is not None:
            return database_root(self.url, self.namespace)
        return self.path if self.path is not None else f"{ICEBERG}{self.namespace}"

    @property
    def is_here(self) -> bool:
        """Whether its tables are listed on this machine."""
        return "://" not in self.root or self.catalog_properties.get("uri", "").startswith("sqlite:")

    @property
    def options(self) -> dict[str, str]:
        """The options of the storage, the properties of the catalog, or how the database is reached."""
        if self.url is not None:
            return {"url": self.url, "password": self.password or ""}
        return self.storage_options if self.format == "delta" else self.catalog_properties

    @property
    def layout(self) -> ReplicaLayout:
        """How its tables differ from the source's."""
        names = {str(kind): name for kind, name in self.metadata.items()}
        forms = Forms(self.table_properties, self.partition_by, self.format_version)
        return ReplicaLayout(self.names, names if self.mode == LATEST else {}, Mode.of(self.mode, names), forms)

    @property
    def properties(self) -> dict[str, str]:
        """The connector's properties that its settings stand for, and those that keep its tables equal."""
        given = {".*": self.out_of_range} if isinstance(self.out_of_range, str) else self.out_of_range
        chosen = {policy: ",".join(name for name, each in given.items() if each == policy) for policy in (NULL, TEXT)}
        properties = {f"column.out.of.range.{policy}": names for policy, names in chosen.items() if names}
        rate = self.read_again.rows_per_second
        watching = {"table.watch.interval.ms": "5000", **({"read.again.rows.per.second": str(rate)} if rate else {})}
        # The columns `transaction` are of the transactions that this has the connector count.
        counted = {} if self.mode == LATEST else {"provide.transaction.metadata": "true"}
        return properties | watching | counted

    @property
    def retention_minutes(self) -> int | None:
        """The retention in minutes, None where the disk space decides."""
        return None if self.retention is None else _minutes(self.retention)


class FileTarget(Section):
    """A directory of files."""

    path: Location


class NoSettings(Section):
    """A target without settings."""


class Sink(Section):
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
