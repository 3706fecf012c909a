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

    What transforms and CloudEvents make of records is not known before there are records: a warning says so.
    """
    config = definition.config()
    found = forms(config)
    try:
        for text in reached([*found, *of_cloud_events(config)]):
            yield Finding(_NAME, True, text)
    except SinkError as error:
        yield _problem(error)
        return
    yield from _unasked(definition)
    steps = parse(definition.steps_text())
    if not found or _has_transforms(definition):
        return
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


def _has_transforms(definition: Definition) -> bool:
    return bool(definition.config()[TRANSFORM_NAMES]) or any("transform" in step for step in definition.steps)


def _unasked(definition: Definition) -> Iterator[Finding]:
    """The warning that the registry may refuse schemas that are not known yet."""
    config = definition.config()
    if of_cloud_events(config):
        made = "CloudEvents"
    elif forms(config) and _has_transforms(definition):
        made = "transforms"
    else:
        return
    what = f"not asked about: the schemas that {made} make are known with the first records"
    remedy = (
        "start with a table whose subjects are new, or watch the first records: a refused schema stops the pipeline"
    )
    yield Finding(_NAME, None, what, remedy)


def _tables(definition: Definition) -> list[TableSchema]:
    config = definition.config()
    with closing(Capture(definition.package().connector(config))) as capture:
        return capture.discover()


def _problem(error: TailraceError) -> Finding:
    what = error.what if error.where is None else f"{error.where}: {error.what}"
    return Finding(_NAME, False, what, error.remedy)
