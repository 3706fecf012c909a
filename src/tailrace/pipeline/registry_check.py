"""Checks what converters make of the captured tables: what a schema registry would refuse, what is no CloudEvent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from tailrace.capture.capture import Capture
from tailrace.config.cloud_events import makes_events_of_values
from tailrace.connectors.finding import Finding
from tailrace.errors import SinkError, SourceError, TailraceError
from tailrace.events.records import Records
from tailrace.events.registry.form import RegistryForm
from tailrace.events.registry.preflight import forms, of_cloud_events, reached, schemas
from tailrace.model.table import TableSchema
from tailrace.pipeline.definition import Definition
from tailrace.transforms import parse
from tailrace.transforms.outcome import Outcomes

_NAME = "schema registry"
_SHOWN = 5  # a line of names


def check(definition: Definition) -> Iterator[Finding]:
    """A finding for the registry, one for each schema that it would refuse, and one for what is no CloudEvent.

    Registers nothing. Raises ConfigError.

    What CloudEvents, and transforms that go by the values of rows, make of records is not known before there are
    records: a warning says so.
    """
    config = definition.config()
    registry_forms, events = forms(config), of_cloud_events(config)
    try:
        for text in reached([*registry_forms, *events]):
            yield Finding(_NAME, True, text)
    except SinkError as error:
        yield _problem(error)
        return
    if events:
        yield _unasked("the schemas that CloudEvents make are known with the first records")
    by_value = makes_events_of_values(config)
    if not registry_forms and not by_value:
        return
    try:
        outcomes = Outcomes(config, definition.package().source_block(config), parse(definition.steps_text()))
        made = {str(table.id): outcomes.of(table) for table in _tables(definition)}
    except SourceError:  # the check of the database says why
        return
    if registry_forms:
        yield from _asked(made, registry_forms)
    if by_value:
        yield from _without_events(made)


def _without_events(made: Mapping[str, list[Records] | None]) -> Iterator[Finding]:
    """A warning of tables whose records are no change events for CloudEvents, so that their values are null."""
    tables = [
        table
        for table, records in made.items()
        if any(each.value is not None and not each.value.is_envelope for each in records or ())
    ]
    if tables:
        remedy = (
            "let add.headers of ExtractNewRecordState (with an empty add.headers.prefix), or HeaderFrom, add op, "
            "source and transaction, and set value.converter.metadata.source=header,id:generate,type:generate"
        )
        what = f"the transforms leave no change events of {_shown(tables)}, so the records have no values"
        yield Finding("CloudEvents", None, what, remedy)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _asked(made: Mapping[str, list[Records] | None], registry_forms: Sequence[RegistryForm]) -> Iterator[Finding]:
    """What the registry says of the schemas under which the records of the captured tables leave."""
    unknown = [table for table, records in made.items() if records is None]
    if unknown:
        yield _unasked(f"what the transforms make of {_shown(unknown)} depends on the values of rows")
    wanted = list(schemas(registry_forms, (each for records in made.values() for each in records or ())))
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
