"""Asks a schema registry about a pipeline's tables before the first record; registers nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.cloud_events import registry_of
from tailrace.config.converter_checks import converter_of
from tailrace.config.converter_names import APICURIO, CLOUD_EVENTS, CONFLUENT
from tailrace.config.options.cloud_events import DATA_SERIALIZER_TYPE
from tailrace.errors import TailraceError
from tailrace.events.converter import Converter
from tailrace.events.records import Records
from tailrace.events.registry.form import RegistryForm, registry_form, registry_form_of
from tailrace.model.schema import ConnectSchema


def forms(config: Config) -> list[RegistryForm]:
    """The converters that need a registry. Raises ConfigError."""
    named = CONFLUENT + APICURIO
    return [registry_form(config, part) for part in ("key", "value") if converter_of(config, part)[1] in named]


def of_cloud_events(config: Config) -> list[RegistryForm]:
    """The form of the data of CloudEvents in Avro, whose schemas are made with the records. Raises ConfigError."""
    name = "value.converter"
    if Converter.of(config, "value").kind != CLOUD_EVENTS or config.within(name)[DATA_SERIALIZER_TYPE] != "avro":
        return []
    return [registry_form_of(config, "value", f"{name}.avro", registry_of(config, name)[0])]


def reached(registry_forms: Sequence[RegistryForm]) -> Iterator[str]:
    """What each registry says of itself. Raises SinkError for one that is away or does not let the user in."""
    yield from dict.fromkeys(form.registry.about() for form in registry_forms)


@dataclass(frozen=True)
class TopicSchema:
    """The schema of the keys or the values of a topic's records."""

    form: RegistryForm
    topic: str
    schema: ConnectSchema

    @property
    def subject(self) -> str:
        """What the registry calls it. Raises ConfigError, SinkError."""
        return self.form.registry.name(self.form.wanted(self.schema, self.topic))

    def problem(self) -> TailraceError | None:
        """Why the registry would refuse it, or Avro does not allow it."""
        try:
            return self.form.registry.refusal(self.form.wanted(self.schema, self.topic))
        except TailraceError as error:
            return error


def schemas(registry_forms: Sequence[RegistryForm], records: Iterable[Records]) -> Iterator[TopicSchema]:
    """The schemas of the records' keys and values, each once for a topic."""
    yielded: set[tuple[str, str, ConnectSchema]] = set()
    for each in records:
        for form in registry_forms:
            part = each.key if form.part == "key" else each.value
            topics = [] if part is None or form.are_nulls(part) else pc.unique(each.topic).to_pylist()
            for topic in topics:
                assert part is not None
                if (form.part, topic, part.schema) not in yielded:
                    yielded.add((form.part, topic, part.schema))
                    yield TopicSchema(form, topic, part.schema)
