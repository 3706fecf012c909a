"""Checks a pipeline's sink: whether Kafka takes what will be written, or a folder, and replicas have distinct names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.events import TRANSFORM_NAMES
from tailrace.config.topics import TopicNaming
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin, TableOverview
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.pipeline import registry_check
from tailrace.pipeline.checkpoint import file_on_the_way
from tailrace.pipeline.definition import Definition, KafkaTarget, ReplicaTarget
from tailrace.pipeline.engines import engine_findings
from tailrace.pipeline.query_id import config_now
from tailrace.sinks.kafka import preflight
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.creation import PREFIX, Creation
from tailrace.sinks.replica.layout import Names, table_folder
from tailrace.sinks.replica.modes import HISTORY
from tailrace.transforms import parse, renamed_by

# A catalog of Iceberg tables, or a database, that does not answer so soon is away.
_ANSWER_SECONDS = 4.0


def check(definition: Definition, admin: Admin) -> list[Finding]:
    """The sink's problems, each with its remedy; writes nothing."""
    target = definition.sink.target
    if not isinstance(target, KafkaTarget):
        replica = _replica(definition, target, admin) if isinstance(target, ReplicaTarget) else []
        return [*_without_topics(definition), *folder(definition), *replica]
    properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
    settings = Settings(properties, target.transactional_id_prefix, target.state_topic)
    Creation.of(definition.config())  # raises for what the tasks would fail of
    findings = preflight.check(settings, _topics(definition, admin), transactions=target.delivery == "exactly-once")
    return [*findings, *registry_check.check(definition)]


def _replica(definition: Definition, target: ReplicaTarget, admin: Admin) -> list[Finding]:
    tables = _overview(definition.config(), admin)
    without = (table for table in tables if target.mode == HISTORY and not table.has_key)
    collisions = _collisions((table.id for table in tables), target.names)
    engine = engine_findings(target, definition.spark)
    return [*engine, *_away(target), *_catalog(target), *collisions, *map(_without_key, without)]


def _without_key(table: TableOverview) -> Finding:
    """A table that may have no history. Its replica identity, or message.key.columns, may name a key."""
    what = f"{table.id} has no primary key; without any key nothing says whose versions rows are, and it is set aside"
    remedy = "give it a primary key, name its key in message.key.columns, or leave the table out (table.exclude.list)"
    return Finding("sink.replica.mode", None, what, remedy)


def _away(target: ReplicaTarget) -> list[Finding]:
    """Whether what holds the tables answers: a store, catalog or database. Raises ConfigError for a wrong one.

    A store whose keys Spark alone may have is not asked.
    """
    if target.format == "delta" and ("://" not in target.root or target.engine == "spark"):
        return []
    from tailrace.sinks.replica.store_probe import StoreProbe  # loads deltalake, which other sinks do without

    said = StoreProbe(target.root, target.options).look(_ANSWER_SECONDS)
    name = {"iceberg": "catalog", "delta": "path"}.get(target.format, "url")
    remedy = f"check what `{name}` names, the network, and the properties that are given for it"
    return [] if said is None else [Finding(f"sink.replica.{name}", False, said[0], remedy)]


def _catalog(target: ReplicaTarget) -> list[Finding]:
    """Whether the catalog in which Delta tables are registered answers, and what it permits."""
    if not target.has_catalog:
        return []
    from tailrace.pipeline.cataloguing import check  # loads deltalake, too

    return [check(target)]


def _without_topics(definition: Definition) -> Iterator[Finding]:
    """The properties about topics, of which this sink has none."""
    for name in definition.config().given:
        if name.lower().startswith(PREFIX):
            what = (
                f"has no effect, only the sink kafka creates topics, and this pipeline's sink is {definition.sink.kind}"
            )
            yield Finding(name, None, what, "remove it, or choose the sink kafka")


def folder(definition: Definition) -> Iterator[Finding]:
    """Whether the sink's path is a folder that this user may write, or may make. Only a path of this machine."""
    path, settings = definition.sink.path, definition.spark
    is_here = str(settings.get("spark.master", "local")).startswith("local")
    if path is None or not Path(path).is_absolute() or not is_here or "spark.hadoop.fs.defaultFS" in settings:
        return
    name = f"sink.{definition.sink.kind}.path"
    file = file_on_the_way(Path(path))
    if file is not None:
        what = f"{path} is a file" if file == Path(path) else f"{path} cannot be made, as {file} is a file"
        yield Finding(name, False, what, f"set {name} to a folder, or to one to be made")
        return
    folder = next(each for each in (Path(path), *Path(path).parents) if os.path.exists(each))  # noqa: PTH110
    if not os.access(folder, os.W_OK | os.X_OK):
        what = f"this user may not write to the folder {folder}"
        yield Finding(name, False, what, f"give this user the right to write there, or set {name} to another folder")


def _topics(definition: Definition, admin: Admin) -> set[str]:
    """The topics of the captured tables. Transforms may name others, which nobody knows before there are records."""
    config = definition.config()
    if config[TRANSFORM_NAMES]:
        return set()
    naming, steps = TopicNaming(config), parse(definition.steps_text())
    return {renamed_by(steps, naming.table(table)) for table in captured(definition.config(), admin)}


def captured(config: Config, admin: Admin) -> list[TableId]:
    """The captured tables; none where the server cannot be queried; the check of the database says why."""
    return [table.id for table in _overview(config, admin)]


def _overview(config: Config, admin: Admin) -> list[TableOverview]:
    try:
        return _captured(config, admin)
    except SourceError:
        return []


def _captured(config: Config, admin: Admin) -> list[TableOverview]:
    captures = TableFilter.from_config(config).captures
    return [table for table in admin.overview() if captures(table.id)]


def captured_now(definition: Definition) -> list[TableId]:
    """The captured tables of a pipeline that runs, those included that were added meanwhile. Raises SourceError."""
    config = config_now(definition, definition.config())
    return [table.id for table in _captured(config, definition.package().admin(config))]


def _collisions(tables: Iterable[TableId], names: Names) -> Iterator[Finding]:
    """Tables that would have one folder, each pair."""
    table_of: dict[str, TableId] = {}
    for table in tables:
        name = table_folder(table.unique, names)
        other = table_of.setdefault(name, table)
        if other != table:
            yield Finding(
                "replica",
                False,
                f"the replicas of {other} and {table} would both be named {name}",
                "capture one of them alone (table.exclude.list), or set names: source for this replica",
            )
