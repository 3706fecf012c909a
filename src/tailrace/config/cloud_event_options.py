"""The settings of the converter for CloudEvents, and what they say together."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.config.converter_names import APICURIO_AVRO, CLOUD_EVENTS, CONFLUENT_AVRO
from tailrace.config.kinds import FLAG, NAMES, TEXT, choice
from tailrace.config.option import Option
from tailrace.config.resolve import Config, Problem

VALUE, HEADER, GENERATE = "value", "header", "generate"

_DEFAULT = "value,id:generate,type:generate,traceparent:header,dataSchemaName:generate"
_NAMES = ("id", "type", "traceparent", "dataSchemaName")
_TRACING = "opentelemetry.tracing.attributes.enable"


def cloud_events() -> Iterator[Option]:
    """The converter's own settings; those of JSON and Avro are beside them."""
    form = choice("json", "avro")
    yield Option("serializer.type", form, "json", "CloudEvents: how an event is written.")
    yield Option("data.serializer.type", form, "json", "CloudEvents: how its data are written; Avro within Avro.")
    yield Option(_TRACING, FLAG, "false", "CloudEvents: the attribute traceparent, from a header of that name.")
    yield Option("extension.attributes.enable", FLAG, "true", "CloudEvents: attributes with operation and source.")
    yield Option(
        "schema.name.adjustment.mode",
        choice("avro", "avro_unicode", "none"),
        "avro",
        "CloudEvents: make the name of an event's schema safe for Avro.",
    )
    yield Option("schema.cloudevents.name", TEXT, None, "CloudEvents: the name of an event's schema.")
    yield Option(
        "schema.data.name.source.header.enable",
        FLAG,
        "false",
        "CloudEvents: the data's schema may be named by the header dataSchemaName.",
    )
    yield Option("metadata.source", NAMES, _DEFAULT, "CloudEvents: where metadata come from: value, header, generate.")


def metadata_sources(config: Config, name: str) -> dict[str, str]:
    """Where each of the metadata comes from; `value` has where those come from that are not listed."""
    first, *others = config.names(f"{name}.metadata.source")
    own = {field: source for field, _, source in (each.partition(":") for each in others)}
    found = {VALUE: first, **{field: own.get(field, first) for field in _NAMES}}
    wanted = {
        "traceparent": config.flag(f"{name}.opentelemetry.tracing.attributes.enable"),
        "dataSchemaName": config.flag(f"{name}.schema.data.name.source.header.enable"),
    }
    return {
        field: GENERATE if source == HEADER and not wanted.get(field, True) else source
        for field, source in found.items()
    }


def registry_of(config: Config, name: str) -> tuple[str, str]:
    """The converter of Avro that is used, and the addresses of its registry; Apicurio's where both are given."""
    for kind, url in ((APICURIO_AVRO, "apicurio.registry.url"), (CONFLUENT_AVRO, "schema.registry.url")):
        given = config.optional(f"{name}.avro.{url}")
        if given:
            return kind, given
    return "", ""


def check_cloud_events(config: Config) -> Iterator[Problem]:
    """What the reference's converter would stop at, at its start or with each record."""
    name = "value.converter"
    if config.text(name) != CLOUD_EVENTS:
        return
    event, data = config.text(f"{name}.serializer.type"), config.text(f"{name}.data.serializer.type")
    if (event, data) == ("avro", "json"):
        yield Problem(f"{name}.data.serializer.type", "JSON cannot be within Avro", "set it to avro as well")
    if data == "avro" and not registry_of(config, name)[1]:
        yield Problem(
            f"{name}.avro.schema.registry.url", "A value is required", "or avro.apicurio.registry.url: the address"
        )
    yield from _metadata(config, f"{name}.metadata.source", name)


def _metadata(config: Config, shown: str, name: str) -> Iterator[Problem]:
    first, *others = config.names(shown) or ("",)
    if first not in (VALUE, HEADER):
        yield Problem(shown, "The first entry must be value or header", f"for example {_DEFAULT}")
        return
    for each in others:
        field, _, source = each.partition(":")
        if field not in _NAMES or source not in (HEADER, GENERATE):
            expected = f"{', '.join(_NAMES)}, a colon, and header or generate"
            yield Problem(shown, f"{each} is no entry: expected is one of {expected}")
            return
    found = metadata_sources(config, name)
    for field in ("id", "type"):
        if found[field] == VALUE:
            yield Problem(shown, f"a value has no {field}", f"add {field}:generate or {field}:header")
    if config.flag(f"{name}.{_TRACING}") and found["traceparent"] != HEADER:
        yield Problem(shown, "a traceparent can come from a header alone", "add traceparent:header")
