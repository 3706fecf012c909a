"""Converter settings that would change bytes or subjects are refused, and unknown ones warned of."""

from __future__ import annotations

import pytest

from tailrace.errors import ConfigError
from tests.unit.config.test_converter_options import CONFLUENT
from tests.unit.events.event_recordings import configured

# What would change bytes or subjects and does not, or needs what is not there.
REFUSED = {
    "value.schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer",
    "use.schema.id": "7",
    "use.latest.with.metadata": "application.version=v1",
    "context.name.strategy": "com.example.Contexts",
    "schema.format": "resolved",
    "rule.executors": "encrypt",
    "validation.rules.execution": "BEFORE_DOMAIN_RULES",
    "apicurio.registry.serde.contract-rules.enabled": "true",
    "apicurio.registry.url.version": "2",
    "rule.executors.encrypt.param.secret.access.key": "s3cret",
    "schema.registry.ssl.keystore.key": "-----BEGIN PRIVATE KEY----- s3cret",
    "apicurio.registry.avro.encoding": "JSON",
    "apicurio.registry.artifact.version": "3",
    "apicurio.registry.canonicalize": "true",
    "apicurio.registry.headers.value.globalId.name": "id",
    "apicurio.registry.tls.client-key": "s3cret",
}


@pytest.mark.parametrize("prefix", ["value.converter", "value.converter.avro"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_change_bytes_or_subjects_is_refused_with_what_to_do(name: str, prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"not supported|must be one of") as caught:
        configured({**CONFLUENT, f"{prefix}.{name}": REFUSED[name]})
    assert str(caught.value).endswith(")")
    assert "s3cret" not in str(caught.value)


def test_indented_json_is_refused() -> None:
    with pytest.raises(ConfigError, match="records have no line breaks"):
        configured({**CONFLUENT, "value.converter.json.indent.output": "true"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("json.indent.output", "false"),
        ("json.fail.invalid.schema", "true"),
        ("json.schema.spec.version", "draft_2019_09"),
        ("json.default.property.inclusion", "NON_NULL"),
        ("ignore.modern.dialects", "true"),
        ("validation.rules.execution", "disabled"),
        ("avro.reflection.allow.null", "true"),
        ("apicurio.registry.serializer.dereference-schema", "true"),
        ("apicurio.registry.avro.validate-writer-schema", "false"),
        ("value.schema.id.serializer", "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer"),
        ("context.name.strategy", "io.confluent.kafka.serializers.context.NullContextNameStrategy"),
        ("apicurio.registry.avro.encoding", "binary"),
        ("apicurio.registry.canonicalize", "false"),
        ("max.retries", "5"),
    ],
)
def test_the_references_defaults_may_be_given(name: str, value: str) -> None:
    assert configured({**CONFLUENT, f"value.converter.{name}": value}).warnings == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("value.converter.auto.register.schema", "value.converter.auto.register.schemas"),
        ("key.converter.schema.enable", "key.converter.schemas.enable"),
        ("header.converter.schema.enable", "header.converter.schemas.enable"),
        ("value.converter.apicurio.registry.autoregister", "value.converter.apicurio.registry.auto-register"),
    ],
)
def test_a_misspelt_setting_is_warned_of_with_the_nearest_name(name: str, near: str) -> None:
    (warning,) = configured({**CONFLUENT, name: "false"}).warnings
    assert (warning.name, warning.message) == (name, "unknown property, ignored")
    assert warning.remedy == f"did you mean {near}?"


def test_a_setting_like_no_other_is_warned_of_without_a_name() -> None:
    (warning,) = configured({**CONFLUENT, "value.converter.what.is.this": "x"}).warnings
    assert (warning.message, warning.remedy) == ("unknown property, ignored", "remove it")


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("org.apache.kafka.connect.converters.LongConverter", "StringConverter, which writes a number as its digits"),
        ("org.apache.kafka.connect.converters.BooleanConverter", "StringConverter, which writes a number"),
    ],
)
def test_other_converters_of_connect_are_refused_with_what_to_take(part: str, kind: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        configured({f"{part}.converter": kind})
