"""Tells OpenLineage what a pipeline reads and writes: which column of the database is which of the target.

Jobs are named as Debezium names them, datasets as OpenLineage's naming does. A thread of its own asks the database for
the tables and sends: where either does not answer, the pipeline goes on, and the log says so once.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tailrace.config import Config
from tailrace.config.masks import ColumnMasks, Propagate
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.options.events import TRANSFORM_NAMES, TRANSFORMS_FAMILY
from tailrace.config.options.filters import COLUMN_PROPAGATE_SOURCE_TYPE
from tailrace.config.options.runtime import (
    OPENLINEAGE_INTEGRATION_CONFIG_FILE_PATH,
    OPENLINEAGE_INTEGRATION_ENABLED,
    OPENLINEAGE_INTEGRATION_JOB_DESCRIPTION,
    OPENLINEAGE_INTEGRATION_JOB_NAMESPACE,
    OPENLINEAGE_INTEGRATION_JOB_OWNERS,
    OPENLINEAGE_INTEGRATION_JOB_TAGS,
)
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.config.topics import TopicNaming
from tailrace.errors import ConfigError, TailraceError
from tailrace.model.table import TableId, TableSchema
from tailrace.pipeline.definition import Definition, KafkaTarget, ReplicaTarget
from tailrace.pipeline.lineage_names import in_catalog, of_place, of_table
from tailrace.pipeline.sink_check import captured_now
from tailrace.sinks.replica.layout import column_names
from tailrace.sinks.replica.target import Target
from tailrace.version import __version__

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset

log = logging.getLogger(__name__)

_PREFIX = "openlineage.integration."
_PRODUCER = f"https://pypi.org/project/tailrace/{__version__}/"
# Tables are looked at, and a run is said to go on, so often; the end of a run waits so long for the events before it.
_PAUSE_SECONDS, _PATIENCE_SECONDS = 60.0, 5.0


def lineage_of(definition: Definition) -> Lineage | None:
    """What tells of a pipeline's run, from now on; None unless `openlineage.integration.enabled`.

    Raises ConfigError for a configuration of the client that cannot be used.
    """
    config = definition.config()
    return Lineage(definition, config) if config[OPENLINEAGE_INTEGRATION_ENABLED] else None


@dataclass(frozen=True)
class _Table:
    """A captured table: its dataset, its columns, and which of them are masked."""

    id: TableId
    schema: TableSchema
    input: InputDataset
    masked: frozenset[str]


class Lineage:
    """Sends START, RUNNING while the run goes on, and COMPLETE or FAIL."""

    def __init__(self, definition: Definition, config: Config) -> None:
        from openlineage.client.uuid import generate_new_uuid

        self._definition, self._config = definition, config
        self._client = _client(config[OPENLINEAGE_INTEGRATION_CONFIG_FILE_PATH])
        self._run, self._error = str(generate_new_uuid()), ""
        self._datasets: tuple[list[InputDataset], list[OutputDataset]] = [], []
        self._is_away = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"lineage {definition.name}", daemon=True)
        self._thread.start()

    def ended(self, error: TailraceError | None) -> None:
        """The run has ended, by an error or in order; called again, it does nothing."""
        if not self._over.is_set():
            self._error = "" if error is None else str(error)
            self._over.set()
            self._thread.join(_PATIENCE_SECONDS)

    def _follow(self) -> None:
        self._send("START")
        while not self._over.wait(_PAUSE_SECONDS):
            self._send("RUNNING")
        self._send("FAIL" if self._error else "COMPLETE")

    def _send(self, state: str) -> None:
        try:
            if not self._over.is_set():
                self._datasets = self._looked()
            self._client.emit(self._event(state))
        except Exception as error:  # whatever it is, the pipeline goes on
            level = logging.DEBUG if self._is_away else logging.ERROR
            log.log(level, "lineage of %s is not sent: %s; the pipeline goes on", self._definition.name, error)
            self._is_away = True
        else:
            self._is_away = False

    def _event(self, state: str) -> Any:
        from openlineage.client import event_v2 as events
        from openlineage.client import facet_v2 as facets

        config, prefix = self._config, self._config[TOPIC_PREFIX]
        run: dict[str, Any] = {
            "processing_engine": facets.processing_engine_run.ProcessingEngineRunFacet(__version__, "Tailrace")
        }
        if state == "FAIL":
            run["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(self._error, "Python")
        return events.RunEvent(
            eventTime=datetime.now(timezone.utc).isoformat(),
            producer=_PRODUCER,
            run=events.Run(self._run, run),
            job=events.Job(config[OPENLINEAGE_INTEGRATION_JOB_NAMESPACE] or prefix, f"{prefix}.0", _of_job(config)),
            eventType=events.RunState[state],
            inputs=self._datasets[0],
            outputs=self._datasets[1],
        )

    def _looked(self) -> tuple[list[InputDataset], list[OutputDataset]]:
        """The datasets as they are now. Raises TailraceError."""
        tables = list(self._tables())
        return [each.input for each in tables], list(_outputs(self._definition, self._config, tables))

    def _tables(self) -> Iterator[_Table]:
        from openlineage.client import event_v2 as events

        definition, config = self._definition, self._config
        entry, captured = definition.entry, captured_now(definition)
        namespace = f"{entry.lineage}://{definition.package().address(config)}"
        with definition.admin().now() as now:
            for id_ in captured:
                schema = now.table(id_)
                database = id_.database or config[DATABASE_DBNAME] or ""
                name = replace(id_, database=database).full
                fields = {"schema": _schema({each.name: str(each.arrow) for each in schema.columns})}
                yield _Table(id_, schema, events.InputDataset(namespace, name, facets=fields), _masked(config, schema))


def _masked(config: Config, table: TableSchema) -> frozenset[str]:
    """The columns whose values are masked, hashed or cut; fields of documents cannot be."""
    if COLUMN_PROPAGATE_SOURCE_TYPE not in config:
        return frozenset()
    masks = ColumnMasks.from_config(config)
    column_masks = {column.name: masks.of(table.id, column.name, "") for column in table.columns}
    return frozenset(
        name for name, mask in column_masks.items() if mask is not None and not isinstance(mask, Propagate)
    )


def _outputs(definition: Definition, config: Config, tables: list[_Table]) -> Iterator[OutputDataset]:
    from openlineage.client import event_v2 as events

    target = definition.sink.target
    if isinstance(target, ReplicaTarget):
        for table in tables:
            names = column_names(table.schema, target.names)
            place = Target(target.root, table.id.unique, target.options, target.names)
            facets = {"columnLineage": _columns([(table, names)])}
            if target.has_catalog:
                facets["symlinks"] = _symlink(
                    *in_catalog(target.catalog_properties, f"{target.namespace}.{place.name}")
                )
            yield events.OutputDataset(*of_table(target, place), facets=facets)
    elif isinstance(target, KafkaTarget):
        yield from _topics(config, f"kafka://{target.bootstrap_servers.split(',')[0].strip()}", definition, tables)
    elif definition.sink.path is not None:
        yield events.OutputDataset(*of_place(definition.sink.path))


def _topics(config: Config, namespace: str, definition: Definition, tables: list[_Table]) -> Iterator[OutputDataset]:
    """The topics with the tables of each. Transforms may rename topics and columns: they are named, and no column."""
    from openlineage.client import event_v2 as events

    naming, topics = TopicNaming(config), dict[str, list[_Table]]()
    for table in tables:
        topics.setdefault(naming.table(table.id), []).append(table)
    names = config[TRANSFORM_NAMES]
    changes = [f"{name}: {config.get(TRANSFORMS_FAMILY.named(f'{name}.type'), '')}" for name in names]
    changes += [f"step: {', '.join(map(str, step))}" for step in definition.steps]
    for topic, of_topic in topics.items():
        if changes:
            facet = _whole(of_topic, "; ".join(changes))
        else:
            facet = _columns([(each, {name: f"after.{name}" for name in _valued(each)}) for each in of_topic])
        yield events.OutputDataset(namespace, topic, facets={"columnLineage": facet})


def _valued(table: _Table) -> list[str]:
    return [each.name for each in table.schema.columns if each.in_value]


def _columns(tables: list[tuple[_Table, dict[str, str]]]) -> Any:
    """Which column of a database's table is which of the target's, by their names there."""
    from openlineage.client import facet_v2 as facets

    kinds = facets.column_lineage_dataset
    sources = dict[str, list[Any]]()
    for table, names in tables:
        for column, name in names.items():
            is_masked = column in table.masked
            change = kinds.Transformation(
                "DIRECT",
                "TRANSFORMATION" if is_masked else "IDENTITY",
                "masked or hashed by column.mask, or cut by column.truncate" if is_masked else "",
                is_masked,
            )
            place = kinds.InputField(table.input.namespace, table.input.name, column, [change])
            sources.setdefault(name, []).append(place)
    return kinds.ColumnLineageDatasetFacet({name: kinds.Fields(fields) for name, fields in sources.items()})


def _whole(tables: list[_Table], changes: str) -> Any:
    """That all of a target's columns come from all of a table's, by some transforms."""
    from openlineage.client import facet_v2 as facets

    kinds = facets.column_lineage_dataset
    change = kinds.Transformation("INDIRECT", "TRANSFORMATION", changes, False)
    fields = [
        kinds.InputField(table.input.namespace, table.input.name, column, [change])
        for table in tables
        for column in _valued(table)
    ]
    return kinds.ColumnLineageDatasetFacet({}, fields)


def _symlink(namespace: str, name: str) -> Any:
    """That a table has another name, in a catalog."""
    from openlineage.client import facet_v2 as facets

    kinds = facets.symlinks_dataset
    return kinds.SymlinksDatasetFacet([kinds.Identifier(namespace, name, "TABLE")])


def _schema(types: dict[str, str]) -> Any:
    from openlineage.client import facet_v2 as facets

    kinds = facets.schema_dataset
    return kinds.SchemaDatasetFacet([kinds.SchemaDatasetFacetFields(name, type_) for name, type_ in types.items()])


def _of_job(config: Config) -> dict[str, Any]:
    """The facets of the job: its kind, and what the properties say of it."""
    from openlineage.client import facet_v2 as facets

    job_facets: dict[str, Any] = {
        "jobType": facets.job_type_job.JobTypeJobFacet("STREAMING", "TAILRACE", jobType="PIPELINE")
    }
    description = config[OPENLINEAGE_INTEGRATION_JOB_DESCRIPTION]
    if description:
        job_facets["documentation"] = facets.documentation_job.DocumentationJobFacet(description)
    tags = [
        facets.tags_job.TagsJobFacetFields(*pair, source="CONFIG")
        for pair in _pairs(config[OPENLINEAGE_INTEGRATION_JOB_TAGS])
    ]
    if tags:
        job_facets["tags"] = facets.tags_job.TagsJobFacet(tags)
    owners = [facets.ownership_job.Owner(*pair) for pair in _pairs(config[OPENLINEAGE_INTEGRATION_JOB_OWNERS])]
    if owners:
        job_facets["ownership"] = facets.ownership_job.OwnershipJobFacet(owners)
    return job_facets


def _pairs(items: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of a list `name=value,...`."""
    parts = [each.partition("=") for each in items]
    return [(key.strip(), value.strip()) for key, _, value in parts]


def _client(file: str | None) -> Any:
    """OpenLineage's client by its own file, or as its environment variables say. Raises ConfigError."""
    from openlineage.client import OpenLineageClient

    where = f"{_PREFIX}config.file.path"
    try:
        given = None if file is None else yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return OpenLineageClient(config=given)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", where=where) from error
    except Exception as error:  # the client has no class of its own for what is wrong in its file
        what = f"OpenLineage's client does not take {file or 'its environment variables'}: {error}"
        raise ConfigError(what, where=where, remedy="see the configuration of OpenLineage's Python client") from error
