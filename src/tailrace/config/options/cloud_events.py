"""The settings of the converter for CloudEvents, declared without the converter's name before them."""

from __future__ import annotations

from tailrace.config.kinds import FLAG, NAMES, TEXT, choice, optional
from tailrace.config.option import Option

_METADATA = "value,id:generate,type:generate,traceparent:header,dataSchemaName:generate"
_FORM = choice("json", "avro")

# Those of JSON and Avro are beside them.
SETTINGS = (
    SERIALIZER_TYPE := Option("serializer.type", _FORM, "json", "CloudEvents: how an event is written."),
    DATA_SERIALIZER_TYPE := Option(
        "data.serializer.type", _FORM, "json", "CloudEvents: how its data are written; Avro within Avro."
    ),
    OPENTELEMETRY_TRACING_ATTRIBUTES_ENABLE := Option(
        "opentelemetry.tracing.attributes.enable",
        FLAG,
        "false",
        "CloudEvents: the attribute traceparent, from a header of that name.",
    ),
    EXTENSION_ATTRIBUTES_ENABLE := Option(
        "extension.attributes.enable", FLAG, "true", "CloudEvents: attributes with operation and source."
    ),
    SCHEMA_NAME_ADJUSTMENT_MODE := Option(
        "schema.name.adjustment.mode",
        choice("avro", "avro_unicode", "none"),
        "avro",
        "CloudEvents: make the name of an event's schema safe for Avro.",
    ),
    SCHEMA_CLOUDEVENTS_NAME := Option(
        "schema.cloudevents.name", optional(TEXT), None, "CloudEvents: the name of an event's schema."
    ),
    SCHEMA_DATA_NAME_SOURCE_HEADER_ENABLE := Option(
        "schema.data.name.source.header.enable",
        FLAG,
        "false",
        "CloudEvents: the data's schema may be named by the header dataSchemaName.",
    ),
    METADATA_SOURCE := Option(
        "metadata.source", NAMES, _METADATA, "CloudEvents: where metadata come from: value, header, generate."
    ),
)
