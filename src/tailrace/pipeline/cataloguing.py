"""Makes the registrar of a pipeline's replica, and what `status` and `check` say of its catalogue."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tailrace.capture.capture import Capture
from tailrace.connectors.finding import CATALOG, Finding, catalog_warnings
from tailrace.errors import ConfigError, SinkError, TableError, TailraceError
from tailrace.pipeline.checkpoint import SparkAloneError, file_system
from tailrace.pipeline.definition import Definition, ReplicaTarget
from tailrace.pipeline.files import checkpoint_file
from tailrace.pipeline.query_id import config_now
from tailrace.pipeline.registrar import Registrar, Shelf
from tailrace.pipeline.table_states import TableStates
from tailrace.sinks.replica.catalogs.catalog import Catalog
from tailrace.sinks.replica.catalogs.entry import TableDescription
from tailrace.sinks.replica.catalogs.kinds import catalog_of
from tailrace.sinks.replica.fold import merge_key
from tailrace.sinks.replica.layout import column_names
from tailrace.sinks.replica.states import GONE
from tailrace.transforms.registry import CHECKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "catalog.json"


def catalog(target: ReplicaTarget) -> Catalog:
    """The catalogue of a replica that has one. Raises ConfigError where its package is missing."""
    return catalog_of(target.catalog_properties, target.namespace or "")


def registrar_of(
    session: SparkSession, definition: Definition, target: ReplicaTarget, states: TableStates
) -> Registrar | None:
    """What registers the tables of a pipeline that starts; None without a catalogue. Raises ConfigError."""
    if not target.has_catalog:
        return None
    file = checkpoint_file(session, definition.checkpoint, FILE)
    return Registrar(
        catalog(target),
        Shelf(target.root, target.options, target.names, target.catalog_properties.get("location")),
        lambda: described(definition, target),
        lambda: {name: state.state != GONE for name, state in states.tables.items()},
        lambda problems: file.write(json.dumps({"version": 1, "problems": problems})),
    )


def described(definition: Definition, target: ReplicaTarget) -> dict[str, TableDescription]:
    """What the source says of its captured tables, by their unique names. Raises SourceError, OffsetError."""
    package = definition.package()
    config = package.resolve({**definition.properties(), "include.schema.comments": "true"}, CHECKS)
    with suppress(SparkAloneError):  # then tables that were added meanwhile are not described
        config = config_now(definition, config)
    comments, mode = package.admin(config).comments(), target.layout.mode
    descriptions = {}
    with closing(Capture(package.connector(config))) as capture:
        for table in capture.discover():
            try:
                names = column_names(table, target.names)
            except TableError:  # it is set aside for that, and has no replica to be described
                continue
            docs = {names[each.name]: each.schema.doc for each in table.columns if each.schema.doc}
            key = tuple(names[name] for name in merge_key(table)) if mode.is_latest else (mode.columns["sequence"],)
            descriptions[table.id.unique] = TableDescription(comments.get(table.id), docs, key)
    return descriptions


def stored_problems(definition: Definition) -> tuple[Finding, ...]:
    """What kept tables from being registered when the run last looked, for `status`. Raises TailraceError."""
    target = definition.sink.replica
    if target is None or not target.has_catalog:
        return ()
    try:
        filesystem, root = file_system(definition.checkpoint)
        with filesystem.open_input_stream(f"{root}/{FILE}") as stream:
            lines = json.loads(stream.read().decode())["problems"]
    except (FileNotFoundError, SparkAloneError):
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TailraceError(
            f"what the catalog lacks cannot be read: {error}",
            where=f"{definition.checkpoint}/{FILE}",
            remedy="run this as the user who runs the pipeline, or delete the file, which the run writes again",
        ) from error
    return catalog_warnings(lines)


def check(target: ReplicaTarget) -> Finding:
    """Whether the catalogue of a replica answers and may be written, as far as it tells; changes nothing."""
    try:
        return Finding(CATALOG, True, catalog(target).look())
    except (SinkError, ConfigError) as error:
        return Finding(CATALOG, False, error.what, error.remedy)
