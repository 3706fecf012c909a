"""Checks the schema registry of a pipeline whose keys or values are Avro: is it there, and what would it refuse?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from tailrace.capture.capture import Capture
from tailrace.connectors.finding import Finding
from tailrace.errors import SinkError, SourceError, TailraceError
from tailrace.events.registry.form import RegistryForm
from tailrace.events.registry.preflight import forms, of_cloud_events, reached, schemas
from tailrace.model.table import TableSchema
from tailrace.pipeline.definition import Definition
from tailrace.transforms import parse
from tailrace.transforms.outcome import Outcomes

_NAME = "schema registry"
_SHOWN = 5  # a line of names


def check(definition: Definition) -> Iterator[Finding]:
    """A finding for the registry, and one for each schema that it would refuse. Registers nothing. Raises ConfigError.

    What CloudEvents, and transforms that go by the values of rows, make of records is not known before there are
    records: a warning says so.
    """
    config = definition.config()
    found, events = forms(config), of_cloud_events(config)
    try:
        for text in reached([*found, *events]):
            yield Finding(_NAME, True, text)
    except SinkError as error:
        yield _problem(error)
        return
    if events:
        yield _unasked("the schemas that CloudEvents make are known with the first records")
    if found:
        yield from _asked(definition, found)


def _asked(definition: Definition, found: Sequence[RegistryForm]) -> Iterator[Finding]:
    """What the registry says of the schemas under which the records of the captured tables leave."""
    config = definition.config()
    try:
        outcomes = Outcomes(config, definition.package().source_block(config), parse(definition.steps_text()))
        made = {str(table.id): outcomes.of(table) for table in _tables(definition)}
    except SourceError:  # the check of the database says why
        return
    unknown = [table for table, records in made.items() if records is None]
    if unknown:
        shown = ", ".join(unknown[:_SHOWN]) + (f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else "")
        yield _unasked(f"what the transforms make of {shown} depends on the values of rows")
    wanted = list(schemas(found, (each for records in made.values() for each in records or ())))
    problems = [problem for each in wanted if (problem := each.problem()) is not None]
    yield from map(_problem, problems)
    if wanted and not problems:
        subjects = len({each.subject for each in wanted})
        yield Finding(_NAME, True, f"it takes the schemas of the captured tables, subjects: {subjects}")


def _unasked(what: str) -> Finding:
    """The warning that the registry may refuse schemas that are not known yet."""
    remedy = (
        "start with a table whose subjects are new, or watch the first records: a refused schema stops the pipeline"
    )
    return Finding(_NAME, None, f"not asked about: {what}", remedy)


def _tables(definition: Definition) -> list[TableSchema]:
    config = definition.config()
    with closing(Capture(definition.package().connector(config))) as capture:
        return capture.discover()


def _problem(error: TailraceError) -> Finding:
    what = error.what if error.where is None else f"{error.where}: {error.what}"
    return Finding(_NAME, False, what, error.remedy)
