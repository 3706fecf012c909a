"""The settings of Avro and of JSON within CloudEvents have their effect."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.position import SOURCE
from tailrace.events.cloud_events import CloudEvents
from tests.unit.events.event_recordings import configured

BASE = {
    "value.converter": "io.debezium.converters.CloudEventsConverter",
    "value.converter.data.serializer.type": "avro",
}
CONFLUENT = {**BASE, "value.converter.avro.schema.registry.url": "http://v:8081"}
APICURIO = {**BASE, "value.converter.avro.apicurio.registry.url": "http://v:8080/apis/registry/v2"}
PROXY = {
    "value.converter.avro.apicurio.registry.proxy.host": "proxy",
    "value.converter.avro.apicurio.registry.proxy.port": "3128",
    "value.converter.avro.apicurio.registry.proxy.username": "u",
}
OAUTH = {
    f"value.converter.avro.{name}": value
    for name, value in {
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": "http://oauth",
        "bearer.auth.client.id": "i",
        "bearer.auth.client.secret": "s",
        "apicurio.registry.auth.service.token.endpoint": "http://oauth",
        "apicurio.registry.auth.client.id": "i",
        "apicurio.registry.auth.client.secret": "s",
    }.items()
}
# Of each a value that is not the default, and what it needs beside it.
OF_CONFLUENT: list[tuple[str, str, dict[str, str]]] = [
    (
        "value.converter.avro.value.subject.name.strategy",
        "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        {},
    ),
    ("value.converter.avro.connect.meta.data", "false", {}),
    ("value.converter.avro.scrub.invalid.names", "true", {}),
    ("value.converter.avro.ignore.default.for.nullables", "true", {}),
    ("value.converter.avro.allow.optional.map.keys", "true", {}),
    ("value.converter.avro.auto.register.schemas", "false", {}),
    ("value.converter.avro.use.latest.version", "true", {}),
    ("value.converter.avro.normalize.schemas", "true", {}),
    (
        "value.converter.avro.basic.auth.credentials.source",
        "USER_INFO",
        {"value.converter.avro.basic.auth.user.info": "a:b"},
    ),
    (
        "value.converter.avro.basic.auth.user.info",
        "a:b",
        {"value.converter.avro.basic.auth.credentials.source": "USER_INFO"},
    ),
    (
        "value.converter.avro.schema.registry.basic.auth.user.info",
        "a:b",
        {"value.converter.avro.basic.auth.credentials.source": "USER_INFO"},
    ),
    (
        "value.converter.avro.bearer.auth.credentials.source",
        "STATIC_TOKEN",
        {"value.converter.avro.bearer.auth.token": "t"},
    ),
    (
        "value.converter.avro.bearer.auth.token",
        "t",
        {"value.converter.avro.bearer.auth.credentials.source": "STATIC_TOKEN"},
    ),
    ("value.converter.avro.schema.registry.ssl.truststore.location", "/x", {}),
    ("value.converter.avro.schema.registry.ssl.keystore.location", "/x", {}),
    ("value.converter.avro.schema.registry.ssl.key.password", "x", {}),
    ("value.converter.avro.bearer.auth.issuer.endpoint.url", "http://other", OAUTH),
    ("value.converter.avro.bearer.auth.client.id", "other", OAUTH),
    ("value.converter.avro.bearer.auth.client.secret", "other", OAUTH),
    ("value.converter.avro.bearer.auth.scope", "other", OAUTH),
    ("value.converter.avro.bearer.auth.logical.cluster", "other", OAUTH),
    ("value.converter.avro.bearer.auth.identity.pool.id", "other", OAUTH),
    ("value.converter.avro.bearer.auth.cache.expiry.buffer.seconds", "7", OAUTH),
    ("value.converter.avro.request.header.Authorization", "Bearer t", {}),
    ("value.converter.avro.proxy.host", "proxy", {"value.converter.avro.proxy.port": "3128"}),
    ("value.converter.avro.proxy.port", "3128", {"value.converter.avro.proxy.host": "proxy"}),
    ("value.converter.avro.http.connect.timeout.ms", "7", {}),
    ("value.converter.avro.http.read.timeout.ms", "7", {}),
    ("value.converter.avro.schema.registry.ssl.endpoint.identification.algorithm", "", {}),
]

OF_APICURIO: list[tuple[str, str, dict[str, str]]] = [
    ("value.converter.avro.apicurio.registry.auto-register", "true", {}),
    ("value.converter.avro.apicurio.registry.auto-register.if-exists", "CREATE_VERSION", {}),
    ("value.converter.avro.apicurio.registry.find-latest", "true", {}),
    ("value.converter.avro.apicurio.registry.dereference-schema", "false", {}),
    ("value.converter.avro.apicurio.registry.use-id", "contentId", {}),
    (
        "value.converter.avro.apicurio.registry.id-handler",
        "io.apicurio.registry.serde.Legacy4ByteIdHandler",
        {},
    ),
    (
        "value.converter.avro.apicurio.registry.as-confluent",
        "true",
        {},
    ),
    (
        "value.converter.avro.apicurio.registry.artifact-resolver-strategy",
        "io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy",
        {},
    ),
    ("value.converter.avro.apicurio.registry.artifact.group-id", "g", {}),
    ("value.converter.avro.apicurio.registry.artifact.artifact-id", "a", {}),
    ("value.converter.avro.apicurio.registry.auth.username", "u", {}),
    (
        "value.converter.avro.apicurio.registry.auth.password",
        "p",
        {"value.converter.avro.apicurio.registry.auth.username": "u"},
    ),
    ("value.converter.avro.apicurio.registry.tls.truststore.location", "/x", {}),
    ("value.converter.avro.apicurio.registry.tls.keystore.location", "/x", {}),
    ("value.converter.avro.apicurio.registry.tls.key.password", "x", {}),
    ("value.converter.avro.apicurio.registry.tls.verify-host", "false", {}),
    ("value.converter.avro.apicurio.registry.tls.trust-all", "true", {}),
    ("value.converter.avro.apicurio.registry.request.headers.Authorization", "Bearer t", {}),
    ("value.converter.avro.apicurio.registry.proxy.host", "other", PROXY),
    ("value.converter.avro.apicurio.registry.proxy.port", "3129", PROXY),
    ("value.converter.avro.apicurio.registry.proxy.username", "v", PROXY),
    ("value.converter.avro.apicurio.registry.proxy.password", "p", PROXY),
    (
        "value.converter.avro.apicurio.registry.auth.service.token.endpoint",
        "http://other",
        OAUTH,
    ),
    ("value.converter.avro.apicurio.registry.auth.client.id", "other", OAUTH),
    ("value.converter.avro.apicurio.registry.auth.client.secret", "other", OAUTH),
    ("value.converter.avro.apicurio.registry.auth.client.scope", "other", OAUTH),
]


def events(properties: dict[str, str]) -> CloudEvents:
    return CloudEvents.of(configured(properties), "value", SOURCE)


@pytest.mark.parametrize(
    ("base", "name", "value", "more"),
    [(CONFLUENT, *each) for each in OF_CONFLUENT] + [(APICURIO, *each) for each in OF_APICURIO],
)
def test_each_of_avro_has_an_effect(base: dict[str, str], name: str, value: str, more: dict[str, str]) -> None:
    before, after = (events({**base, **more, **own}).avro for own in ({}, {name: value}))
    assert before is not None
    assert after is not None
    assert (before.settings, before.language) != (after.settings, after.language)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("value.converter.data.serializer.type", "avro"),
        ("value.converter.serializer.type", "avro"),
        ("value.converter.schema.cloudevents.name", "org.acme.Event"),
        ("value.converter.schema.name.adjustment.mode", "none"),
        ("value.converter.extension.attributes.enable", "false"),
        ("value.converter.opentelemetry.tracing.attributes.enable", "true"),
        ("value.converter.metadata.source", "header,id:generate"),
        ("value.converter.json.schemas.enable", "false"),
        ("value.converter.json.decimal.format", "NUMERIC"),
        ("value.converter.json.replace.null.with.default", "false"),
    ],
)
def test_each_of_the_events_has_an_effect(name: str, value: str) -> None:
    given = {**CONFLUENT, "value.converter.serializer.type": "json"}
    before = events({**given, "value.converter.data.serializer.type": "json"})
    more = {"value.converter.data.serializer.type": "avro"} if value == "avro" else {}
    assert before != events({**given, "value.converter.data.serializer.type": "json", **more, name: value})


def test_a_datas_schema_may_be_named_by_a_header() -> None:
    source = {"value.converter.metadata.source": "value,id:generate,type:generate,dataSchemaName:header"}
    named = {"value.converter.schema.data.name.source.header.enable": "true"}
    found = [events({**CONFLUENT, **source, **own}).sources["dataSchemaName"] for own in ({}, named)]
    assert found == ["generate", "header"]


def test_apicurios_registry_is_taken_where_both_are_given() -> None:
    assert events({**CONFLUENT, **APICURIO}).addresses == "http://v:8080/apis/registry/v2"


def test_secrets_are_never_shown() -> None:
    assert "hidden" not in repr(configured({**CONFLUENT, "value.converter.avro.basic.auth.user.info": "hidden"}))
