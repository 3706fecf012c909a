"""Reads the settings of the converter for CloudEvents together."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.config.converter_names import APICURIO_AVRO, CLOUD_EVENTS, CONFLUENT_AVRO
from tailrace.config.options.apicurio import APICURIO_URL
from tailrace.config.options.cloud_events import (
    DATA_SERIALIZER_TYPE,
    METADATA_SOURCE,
    OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE,
    SCHEMA_DATA_NAME_SOURCE_HEADER_ENABLE,
    SERIALIZER_TYPE,
)
from tailrace.config.options.converters import CONVERTER, SCHEMA_REGISTRY_URL
from tailrace.config.resolve import Config, Problem

VALUE, HEADER, GENERATE = "value", "header", "generate"

_NAMES = ("id", "type", "traceparent", "dataSchemaName")


def metadata_sources(config: Config, name: str) -> dict[str, str]:
    """Where each of the metadata comes from; `value` has where those come from that are not listed."""
    own = config.within(name)
    first, others = _entries(own)
    listed = dict(others)
    sources = {VALUE: first, **{field: listed.get(field, first) for field in _NAMES}}
    wanted = {
        "traceparent": own[OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE],
        "dataSchemaName": own[SCHEMA_DATA_NAME_SOURCE_HEADER_ENABLE],
    }
    return {
        field: GENERATE if source == HEADER and not wanted.get(field, True) else source
        for field, source in sources.items()
    }


def _entries(own: Config) -> tuple[str, list[tuple[str, str]]]:
    """The first entry, and the fields of the others with their sources, which are in any case as in the reference."""
    first, *others = own[METADATA_SOURCE] or ("",)
    pairs = (each.partition(":") for each in others)
    return first.lower(), [(field, source.strip().lower()) for field, _, source in pairs]


def makes_events_of_values(config: Config) -> bool:
    """Whether values become CloudEvents, with the metadata that stand in them."""
    name = CONVERTER["value"].name
    return config[CONVERTER["value"]] == CLOUD_EVENTS and metadata_sources(config, name)[VALUE] == VALUE


def registry_of(config: Config, name: str) -> tuple[str, str]:
    """The converter of Avro that is used, and the addresses of its registry; Apicurio's where both are given."""
    avro = config.within(f"{name}.avro")
    for kind, url in ((APICURIO_AVRO, APICURIO_URL), (CONFLUENT_AVRO, SCHEMA_REGISTRY_URL)):
        given = avro[url]
        if given:
            return kind, given
    return "", ""


def check_cloud_events(config: Config) -> Iterator[Problem]:
    """What the reference's converter would stop at, at its start or with each record."""
    name = CONVERTER["value"].name
    if config[CONVERTER["value"]] != CLOUD_EVENTS:
        return
    own = config.within(name)
    event, data = own[SERIALIZER_TYPE], own[DATA_SERIALIZER_TYPE]
    if (event, data) == ("avro", "json"):
        yield Problem(f"{name}.data.serializer.type", "JSON cannot be within Avro", "set it to avro as well")
    if data == "avro" and not registry_of(config, name)[1]:
        yield Problem(
            f"{name}.avro.schema.registry.url", "A value is required", "or avro.apicurio.registry.url: the address"
        )
    yield from _metadata(config, name)


def _metadata(config: Config, name: str) -> Iterator[Problem]:
    own, shown = config.within(name), METADATA_SOURCE.within(name).name
    first, others = _entries(own)
    if first not in (VALUE, HEADER):
        yield Problem(shown, "The first entry must be value or header", f"for example {METADATA_SOURCE.default}")
        return
    for field, source in others:
        if field not in _NAMES or source not in (HEADER, GENERATE):
            expected = f"{', '.join(_NAMES)}, a colon, and header or generate"
            yield Problem(shown, f"{field}:{source} is no entry: expected is one of {expected}")
            return
    sources = metadata_sources(config, name)
    for field in ("id", "type"):
        if sources[field] == VALUE:
            yield Problem(shown, f"a value has no {field}", f"add {field}:generate or {field}:header")
    if own[OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE] and sources["traceparent"] != HEADER:
        yield Problem(shown, "a traceparent can come from a header alone", "add traceparent:header")
