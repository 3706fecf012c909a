"""The properties of Avro converters and of schema registries have their effect, for keys and for values."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.events.avro.schema import AvroSettings
from tailrace.events.registry.apicurio_settings import ApicurioSettings
from tailrace.events.registry.confluent import ConfluentSettings
from tailrace.events.registry.form import registry_form
from tailrace.events.registry.languages import Avro
from tests.unit.events.event_recordings import configured

CONFLUENT = {
    "key.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "key.converter.schema.registry.url": "http://k:8081",
    "value.converter.schema.registry.url": "https://u:p%20w@v:8081/, http://w",
}
APICURIO = {
    "key.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "key.converter.apicurio.registry.url": "http://k:8080",
    "value.converter.apicurio.registry.url": "http://v:8080/apis/registry/v2",
}
SERDE = "io.apicurio.registry.serde"


def confluent(part: str, **more: str) -> ConfluentSettings:
    """The settings of a part; `more` are below its converter, `__` stands for a dot."""
    own = {f"{part}.converter.{name.replace('__', '.')}": value for name, value in more.items()}
    return ConfluentSettings.of(configured({**CONFLUENT, **own}), part, f"{part}.converter")


def apicurio(part: str, more: dict[str, str] | None = None) -> ApicurioSettings:
    """The settings of a part; `more` are below apicurio.registry of its converter."""
    own = {f"{part}.converter.apicurio.registry.{name}": value for name, value in (more or {}).items()}
    return ApicurioSettings.of(configured({**APICURIO, **own}), f"{part}.converter")


def test_addresses_are_lists_and_may_hold_the_user() -> None:
    assert confluent("key").address.urls == ("http://k:8081",)
    found = confluent("value").address
    assert found.urls == ("https://v:8081", "http://w")
    assert found.user == ("u", "p w")
    assert "p w" not in repr(found) + found.shown


@pytest.mark.parametrize("part", ["key", "value"])
def test_properties_of_confluents_converter(part: str) -> None:
    found = confluent(part)
    assert (found.registers, found.takes_latest, found.normalizes) == (True, False, False)
    assert found.strategy == "TopicNameStrategy"
    more = {
        f"{part}.converter.auto.register.schemas": "false",
        f"{part}.converter.use.latest.version": "true",
        f"{part}.converter.normalize.schemas": "true",
        f"{part}.converter.{part}.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
    }
    found = ConfluentSettings.of(configured({**CONFLUENT, **more}), part, f"{part}.converter")
    assert (found.registers, found.takes_latest, found.normalizes) == (False, True, True)
    assert found.strategy == "RecordNameStrategy"


@pytest.mark.parametrize("part", ["key", "value"])
def test_users_tokens_and_certificates(part: str) -> None:
    info = {"basic__auth__credentials__source": "USER_INFO"}
    assert confluent(part, **info, basic__auth__user__info="a:b:c").address.user == ("a", "b:c")
    former = confluent(part, **info, schema__registry__basic__auth__user__info="a:b")
    assert former.address.user == ("a", "b")
    token = confluent(part, bearer__auth__credentials__source="STATIC_TOKEN", bearer__auth__token="t").address
    assert (token.token, token.user) == ("t", None)
    files = {
        "schema__registry__ssl__truststore__location": "/ca",
        "schema__registry__ssl__keystore__location": "/own",
        "schema__registry__ssl__key__password": "x",
    }
    found = confluent(part, **files).address
    assert (found.trusted, found.own, found.key_password) == ("/ca", "/own", "x")
    own = {"auth.username": "a", "auth.password": "b", "tls.truststore.location": "/ca"}
    other = apicurio(part, {**own, "tls.keystore.location": "/own", "tls.key.password": "x"}).address
    assert (other.user, other.trusted, other.own, other.key_password) == (("a", "b"), "/ca", "/own", "x")


SECRETS = (
    "key.converter.basic.auth.user.info",
    "value.converter.schema.registry.basic.auth.user.info",
    "key.converter.bearer.auth.token",
    "value.converter.schema.registry.ssl.key.password",
    "key.converter.apicurio.registry.auth.password",
    "value.converter.apicurio.registry.tls.key.password",
    "key.converter.request.header.Authorization",
    "value.converter.request.header.X-Own",
    "value.converter.avro.request.header.X-Own",
    "value.converter.apicurio.registry.request.headers.X-Own",
    "value.converter.apicurio.registry.proxy.password",
    "value.converter.apicurio.registry.request.ssl.key.password",
)


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_never_shown(name: str) -> None:
    assert "hidden" not in repr(configured({**CONFLUENT, name: "hidden"}))


OAUTH = {
    prefix: {
        f"{prefix}.bearer.auth.credentials.source": "OAUTHBEARER",
        f"{prefix}.bearer.auth.issuer.endpoint.url": "http://oauth",
        f"{prefix}.bearer.auth.client.id": "i",
        f"{prefix}.bearer.auth.client.secret": "s",
        f"{prefix}.apicurio.registry.auth.service.token.endpoint": "http://oauth",
        f"{prefix}.apicurio.registry.auth.client.id": "i",
        f"{prefix}.apicurio.registry.auth.client.secret": "s",
    }
    for prefix in ("key.converter", "value.converter")
}
# Of each a value that is not the default, and what it needs beside it.
OF_CONFLUENT: list[tuple[str, str, dict[str, str]]] = [
    ("key.converter.key.subject.name.strategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy", {}),
    ("key.converter.connect.meta.data", "false", {}),
    ("key.converter.scrub.invalid.names", "true", {}),
    ("key.converter.ignore.default.for.nullables", "true", {}),
    ("key.converter.allow.optional.map.keys", "true", {}),
    ("key.converter.auto.register.schemas", "false", {}),
    ("key.converter.use.latest.version", "true", {}),
    ("key.converter.normalize.schemas", "true", {}),
    ("key.converter.basic.auth.credentials.source", "USER_INFO", {"key.converter.basic.auth.user.info": "a:b"}),
    ("key.converter.basic.auth.user.info", "a:b", {"key.converter.basic.auth.credentials.source": "USER_INFO"}),
    (
        "key.converter.schema.registry.basic.auth.user.info",
        "a:b",
        {"key.converter.basic.auth.credentials.source": "USER_INFO"},
    ),
    ("key.converter.bearer.auth.credentials.source", "STATIC_TOKEN", {"key.converter.bearer.auth.token": "t"}),
    ("key.converter.bearer.auth.token", "t", {"key.converter.bearer.auth.credentials.source": "STATIC_TOKEN"}),
    ("key.converter.schema.registry.ssl.truststore.location", "/x", {}),
    ("key.converter.schema.registry.ssl.keystore.location", "/x", {}),
    ("key.converter.schema.registry.ssl.key.password", "x", {}),
    ("value.converter.value.subject.name.strategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy", {}),
    ("value.converter.connect.meta.data", "false", {}),
    ("value.converter.scrub.invalid.names", "true", {}),
    ("value.converter.ignore.default.for.nullables", "true", {}),
    ("value.converter.allow.optional.map.keys", "true", {}),
    ("value.converter.auto.register.schemas", "false", {}),
    ("value.converter.use.latest.version", "true", {}),
    ("value.converter.normalize.schemas", "true", {}),
    ("value.converter.basic.auth.credentials.source", "USER_INFO", {"value.converter.basic.auth.user.info": "a:b"}),
    ("value.converter.basic.auth.user.info", "a:b", {"value.converter.basic.auth.credentials.source": "USER_INFO"}),
    (
        "value.converter.schema.registry.basic.auth.user.info",
        "a:b",
        {"value.converter.basic.auth.credentials.source": "USER_INFO"},
    ),
    ("value.converter.bearer.auth.credentials.source", "STATIC_TOKEN", {"value.converter.bearer.auth.token": "t"}),
    ("value.converter.bearer.auth.token", "t", {"value.converter.bearer.auth.credentials.source": "STATIC_TOKEN"}),
    ("value.converter.schema.registry.ssl.truststore.location", "/x", {}),
    ("value.converter.schema.registry.ssl.keystore.location", "/x", {}),
    ("value.converter.schema.registry.ssl.key.password", "x", {}),
    ("key.converter.bearer.auth.issuer.endpoint.url", "http://other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.client.id", "other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.client.secret", "other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.scope", "other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.logical.cluster", "other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.identity.pool.id", "other", OAUTH["key.converter"]),
    ("key.converter.bearer.auth.cache.expiry.buffer.seconds", "7", OAUTH["key.converter"]),
    ("value.converter.bearer.auth.issuer.endpoint.url", "http://other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.client.id", "other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.client.secret", "other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.scope", "other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.logical.cluster", "other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.identity.pool.id", "other", OAUTH["value.converter"]),
    ("value.converter.bearer.auth.cache.expiry.buffer.seconds", "7", OAUTH["value.converter"]),
]
OF_CONFLUENT += [
    ("key.converter.request.header.Authorization", "Bearer t", {}),
    ("key.converter.proxy.host", "proxy", {"key.converter.proxy.port": "3128"}),
    ("key.converter.proxy.port", "3128", {"key.converter.proxy.host": "proxy"}),
    ("key.converter.http.connect.timeout.ms", "7", {}),
    ("key.converter.http.read.timeout.ms", "7", {}),
    ("key.converter.schema.registry.ssl.endpoint.identification.algorithm", "", {}),
    ("value.converter.request.header.Authorization", "Bearer t", {}),
    ("value.converter.proxy.host", "proxy", {"value.converter.proxy.port": "3128"}),
    ("value.converter.proxy.port", "3128", {"value.converter.proxy.host": "proxy"}),
    ("value.converter.http.connect.timeout.ms", "7", {}),
    ("value.converter.http.read.timeout.ms", "7", {}),
    ("value.converter.schema.registry.ssl.endpoint.identification.algorithm", "", {}),
]
OF_APICURIO: list[tuple[str, str, dict[str, str]]] = [
    ("key.converter.apicurio.registry.auto-register", "true", {}),
    ("key.converter.apicurio.registry.auto-register.if-exists", "CREATE_VERSION", {}),
    ("key.converter.apicurio.registry.find-latest", "true", {}),
    ("key.converter.apicurio.registry.dereference-schema", "true", {}),
    ("key.converter.apicurio.registry.headers.enabled", "true", {}),
    ("key.converter.apicurio.registry.use-id", "globalId", {}),
    (
        "key.converter.apicurio.registry.id-handler",
        "io.apicurio.registry.serde.Legacy8ByteIdHandler",
        {"key.converter.apicurio.registry.headers.enabled": "false"},
    ),
    (
        "key.converter.apicurio.registry.as-confluent",
        "true",
        {
            "key.converter.apicurio.registry.headers.enabled": "false",
            "key.converter.apicurio.registry.id-handler": "io.apicurio.registry.serde.Legacy8ByteIdHandler",
        },
    ),
    (
        "key.converter.apicurio.registry.artifact-resolver-strategy",
        "io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy",
        {},
    ),
    ("key.converter.apicurio.registry.artifact.group-id", "g", {}),
    ("key.converter.apicurio.registry.artifact.artifact-id", "a", {}),
    ("key.converter.apicurio.registry.auth.username", "u", {}),
    ("key.converter.apicurio.registry.auth.password", "p", {"key.converter.apicurio.registry.auth.username": "u"}),
    ("key.converter.apicurio.registry.tls.truststore.location", "/x", {}),
    ("key.converter.apicurio.registry.tls.keystore.location", "/x", {}),
    ("key.converter.apicurio.registry.tls.key.password", "x", {}),
    ("value.converter.apicurio.registry.auto-register", "true", {}),
    ("value.converter.apicurio.registry.auto-register.if-exists", "CREATE_VERSION", {}),
    ("value.converter.apicurio.registry.find-latest", "true", {}),
    ("value.converter.apicurio.registry.dereference-schema", "false", {}),
    ("value.converter.apicurio.registry.headers.enabled", "false", {}),
    ("value.converter.apicurio.registry.use-id", "contentId", {}),
    (
        "value.converter.apicurio.registry.id-handler",
        "io.apicurio.registry.serde.Legacy4ByteIdHandler",
        {"value.converter.apicurio.registry.headers.enabled": "false"},
    ),
    (
        "value.converter.apicurio.registry.as-confluent",
        "true",
        {"value.converter.apicurio.registry.headers.enabled": "false"},
    ),
    (
        "value.converter.apicurio.registry.artifact-resolver-strategy",
        "io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy",
        {},
    ),
    ("value.converter.apicurio.registry.artifact.group-id", "g", {}),
    ("value.converter.apicurio.registry.artifact.artifact-id", "a", {}),
    ("value.converter.apicurio.registry.auth.username", "u", {}),
    ("value.converter.apicurio.registry.auth.password", "p", {"value.converter.apicurio.registry.auth.username": "u"}),
    ("value.converter.apicurio.registry.tls.truststore.location", "/x", {}),
    ("value.converter.apicurio.registry.tls.keystore.location", "/x", {}),
    ("value.converter.apicurio.registry.tls.key.password", "x", {}),
    ("key.converter.apicurio.registry.auth.service.token.endpoint", "http://other", OAUTH["key.converter"]),
    ("key.converter.apicurio.registry.auth.client.id", "other", OAUTH["key.converter"]),
    ("key.converter.apicurio.registry.auth.client.secret", "other", OAUTH["key.converter"]),
    ("key.converter.apicurio.registry.auth.client.scope", "other", OAUTH["key.converter"]),
    ("value.converter.apicurio.registry.auth.service.token.endpoint", "http://other", OAUTH["value.converter"]),
    ("value.converter.apicurio.registry.auth.client.id", "other", OAUTH["value.converter"]),
    ("value.converter.apicurio.registry.auth.client.secret", "other", OAUTH["value.converter"]),
    ("value.converter.apicurio.registry.auth.client.scope", "other", OAUTH["value.converter"]),
]
PROXIES = {
    "key": {
        "key.converter.apicurio.registry.proxy.host": "proxy",
        "key.converter.apicurio.registry.proxy.port": "3128",
        "key.converter.apicurio.registry.proxy.username": "u",
    },
    "value": {
        "value.converter.apicurio.registry.proxy.host": "proxy",
        "value.converter.apicurio.registry.proxy.port": "3128",
        "value.converter.apicurio.registry.proxy.username": "u",
    },
}
OF_APICURIO += [
    ("key.converter.apicurio.registry.request.headers.Authorization", "Bearer t", {}),
    ("key.converter.apicurio.registry.tls.verify-host", "false", {}),
    ("key.converter.apicurio.registry.tls.trust-all", "true", {}),
    ("key.converter.apicurio.registry.request.ssl.truststore.location", "/x", {}),
    ("key.converter.apicurio.registry.request.ssl.keystore.location", "/x", {}),
    ("key.converter.apicurio.registry.request.ssl.key.password", "x", {}),
    ("key.converter.apicurio.registry.proxy.host", "other", PROXIES["key"]),
    ("key.converter.apicurio.registry.proxy.port", "3129", PROXIES["key"]),
    ("key.converter.apicurio.registry.proxy.username", "v", PROXIES["key"]),
    ("key.converter.apicurio.registry.proxy.password", "p", PROXIES["key"]),
    ("value.converter.apicurio.registry.request.headers.Authorization", "Bearer t", {}),
    ("value.converter.apicurio.registry.tls.verify-host", "false", {}),
    ("value.converter.apicurio.registry.tls.trust-all", "true", {}),
    ("value.converter.apicurio.registry.request.ssl.truststore.location", "/x", {}),
    ("value.converter.apicurio.registry.request.ssl.keystore.location", "/x", {}),
    ("value.converter.apicurio.registry.request.ssl.key.password", "x", {}),
    ("value.converter.apicurio.registry.proxy.host", "other", PROXIES["value"]),
    ("value.converter.apicurio.registry.proxy.port", "3129", PROXIES["value"]),
    ("value.converter.apicurio.registry.proxy.username", "v", PROXIES["value"]),
    ("value.converter.apicurio.registry.proxy.password", "p", PROXIES["value"]),
]


@pytest.mark.parametrize(
    ("base", "name", "value", "more"),
    [(CONFLUENT, *each) for each in OF_CONFLUENT] + [(APICURIO, *each) for each in OF_APICURIO],
)
def test_each_has_an_effect(base: dict[str, str], name: str, value: str, more: dict[str, str]) -> None:
    part = name.partition(".")[0]
    before, after = (registry_form(configured({**base, **more, **own}), part) for own in ({}, {name: value}))
    assert (before.settings, before.language) != (after.settings, after.language)


def test_a_secret_in_an_address_is_never_shown() -> None:
    assert "p%20w" not in repr(configured(CONFLUENT))


@pytest.mark.parametrize("part", ["key", "value"])
def test_how_schemas_are_made(part: str) -> None:
    assert registry_form(configured(CONFLUENT), part).language == Avro(AvroSettings())
    more = {
        f"{part}.converter.connect.meta.data": "false",
        f"{part}.converter.scrub.invalid.names": "true",
        f"{part}.converter.ignore.default.for.nullables": "true",
        f"{part}.converter.allow.optional.map.keys": "true",
    }
    assert registry_form(configured({**CONFLUENT, **more}), part).language == Avro(
        AvroSettings(False, True, True, True)
    )


def test_defaults_of_apicurios_converter_are_those_of_the_apis_version() -> None:
    newer, older = apicurio("key"), apicurio("value")
    assert newer.address.urls == ("http://k:8080/apis/registry/v3",)
    assert (newer.whole, newer.id_name, newer.id_bytes) == (False, "contentId", 4)
    assert (older.whole, older.id_name, older.id_bytes) == (True, "globalId", 8)
    assert (newer.in_headers, older.in_headers) == (False, True)
    assert (newer.registers, newer.if_exists, newer.takes_latest) == (False, "FIND_OR_CREATE_VERSION", False)


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"headers.enabled": "false"}, 8),
        ({"headers.enabled": "false", "as-confluent": "true"}, 4),
        ({"headers.enabled": "false", "id-handler": f"{SERDE}.Legacy4ByteIdHandler"}, 4),
    ],
)
def test_how_many_bytes_an_id_has_with_the_older_api(more: dict[str, str], size: int) -> None:
    assert apicurio("value", more).id_bytes == size


# Of `key.converter.` and `value.converter.` each.
APICURIOS: dict[str, tuple[str, str, Any]] = {
    "auto-register": ("true", "registers", True),
    "auto-register.if-exists": ("RETURN_OR_UPDATE", "if_exists", "FIND_OR_CREATE_VERSION"),
    "find-latest": ("true", "takes_latest", True),
    "dereference-schema": ("false", "whole", False),
    "artifact-resolver-strategy": (f"{SERDE}.strategy.SimpleTopicIdStrategy", "strategy", "SimpleTopicIdStrategy"),
    "artifact.group-id": ("g", "group", "g"),
    "artifact.artifact-id": ("a", "artifact", "a"),
    "use-id": ("globalId", "id_name", "globalId"),
}


@pytest.mark.parametrize("part", ["key", "value"])
@pytest.mark.parametrize("name", APICURIOS)
def test_properties_of_apicurios_converter(part: str, name: str) -> None:
    text, field, value = APICURIOS[name]
    assert getattr(apicurio(part, {name: text}), field) == value
