"""Checks the schema registry of a pipeline whose keys or values are Avro: is it there, and what would it refuse?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tailrace.capture.capture import Capture
from tailrace.config.options.events import TRANSFORM_NAMES
from tailrace.connectors.finding import Finding
from tailrace.errors import SinkError, SourceError, TailraceError
from tailrace.events.registry.preflight import forms, of_cloud_events, reached, schemas
from tailrace.model.table import TableSchema
from tailrace.pipeline.definition import Definition
from tailrace.transforms import parse, renamed_by

_NAME = "schema registry"


def check(definition: Definition) -> Iterator[Finding]:
    """A finding for the registry, and one for each schema that it would refuse. Registers nothing. Raises ConfigError.

    What transforms make of records is not known before there are records.
    """
    config = definition.config()
    found = forms(config)
    try:
        for text in reached([*found, *of_cloud_events(config)]):
            yield Finding(_NAME, True, text)
    except SinkError as error:
        yield _problem(error)
        return
    if not found or config[TRANSFORM_NAMES]:
        return
    steps = parse(definition.steps_text())
    try:
        source = definition.package().source_block(config)
        wanted = list(schemas(found, _tables(definition), config, source, lambda topic: renamed_by(steps, topic)))
    except SourceError:  # the check of the database says why
        return
    problems = [problem for each in wanted if (problem := each.problem()) is not None]
    yield from map(_problem, problems)
    if not problems:
        subjects = len({each.subject for each in wanted})
        yield Finding(_NAME, True, f"it takes the schemas of the captured tables, subjects: {subjects}")


def _tables(definition: Definition) -> list[TableSchema]:
    config = definition.config()
    with closing(Capture(definition.package().connector(config))) as capture:
        return capture.discover()


def _problem(error: TailraceError) -> Finding:
    what = error.what if error.where is None else f"{error.where}: {error.what}"
    return Finding(_NAME, False, what, error.remedy)
