"""The converters of keys, values and headers, and the settings of schema registries, as properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tailrace.config.cloud_event_options import cloud_events
from tailrace.config.converter_names import (
    APICURIO,
    BYTES,
    CLOUD_EVENTS,
    CONFLUENT,
    JSON,
    SIMPLE,
    STRING,
)
from tailrace.config.kinds import COUNT, FLAG, INT, TEXT, choice
from tailrace.config.option import Alias, Option, Status
from tailrace.config.resolve import Config, Problem

CONNECT = Status.CONNECT

# The default of Kafka Connect first.
_HEADERS = (SIMPLE, STRING, JSON)
_KINDS = (JSON, *CONFLUENT, *APICURIO, STRING, BYTES)
_NO_KEYS = "the reference's keys are null with it: take another converter for keys"
_TAKE_ONE = "take one of these"

_SUBJECTS = "io.confluent.kafka.serializers.subject."
SUBJECTS = tuple(f"{_SUBJECTS}{name}Strategy" for name in ("TopicName", "RecordName", "TopicRecordName"))
_SERDE = "io.apicurio.registry.serde."
ARTIFACTS = (
    f"{_SERDE}strategy.TopicIdStrategy",
    f"{_SERDE}strategy.SimpleTopicIdStrategy",
    f"{_SERDE}avro.strategy.RecordIdStrategy",
    f"{_SERDE}avro.strategy.QualifiedRecordIdStrategy",
    f"{_SERDE}avro.strategy.TopicRecordIdStrategy",
)
# The second ones are those of Apicurio 2.
FOUR_BYTES = (f"{_SERDE}Default4ByteIdHandler", f"{_SERDE}Legacy4ByteIdHandler")
EIGHT_BYTES = (f"{_SERDE}Legacy8ByteIdHandler", f"{_SERDE}DefaultIdHandler")
_NO_ENUMS = "no schema of these connectors is an enum or a union in Avro"
_PROCESS_CACHE = "each process keeps the ids of all its schemas"
_NOT_READ = "the registry reads the token"
_PEM = "files are PEM whatever this says"
_LOGINS = {
    "username": "user of basic authentication.",
    "password": "its password.",
    "service.token.endpoint": "where OAuth's server gives tokens for client credentials.",
    "client.id": "the client of OAuth.",
    "client.secret": "its secret.",
    "client.scope": "the scope of its tokens.",
}
_SECRETS = ("password", "client.secret")
_ENDPOINT = "set apicurio.registry.auth.service.token.endpoint: URL/realms/REALM/protocol/openid-connect/token"
_NO_PASSWORD = "certificates in PEM have none"


def converters() -> tuple[Option, ...]:
    """The converters of keys, values and headers with their settings."""
    return (*_converter("key", "keys"), *_converter("value", "values"), *_headers())


def check_addresses(config: Config) -> Iterator[Problem]:
    """The registries' addresses are there."""
    for part in ("key", "value"):
        kind = config.text(f"{part}.converter")
        if kind in CONFLUENT + APICURIO:
            name = f"{part}.converter.{'schema.registry.url' if kind in CONFLUENT else 'apicurio.registry.url'}"
            if not config.optional(name):
                yield Problem(name, "A value is required", "it is the address of the schema registry")
        yield from _clients(config, f"{part}.converter")
    yield from _clients(config, "value.converter.avro")


def _clients(config: Config, name: str) -> Iterator[Problem]:
    """A client of OAuth has all that it needs."""
    wanted: list[str] = []
    if config.optional(f"{name}.bearer.auth.credentials.source") == "OAUTHBEARER":
        wanted += [f"{name}.bearer.auth.{each}" for each in ("issuer.endpoint.url", "client.id", "client.secret")]
    if config.optional(f"{name}.apicurio.registry.auth.service.token.endpoint"):
        wanted += [f"{name}.apicurio.registry.auth.client.{each}" for each in ("id", "secret")]
    for each in wanted:
        if not config.optional(each):
            yield Problem(each, "A value is required", "OAuth asks for tokens with it")


def _headers() -> Iterator[Option]:
    yield Option("header.converter", choice(*_HEADERS, otherwise=_TAKE_ONE), _HEADERS[0], "Serialises headers.")
    yield from _json("header.converter", "headers")
    yield Option("header.converter.*", TEXT, None, "Further settings.", CONNECT, "the converter has no such setting")


def _converter(part: str, plural: str) -> Iterator[Option]:
    """The converter of keys or values and its settings."""
    name = f"{part}.converter"
    own = choice(*_KINDS, CLOUD_EVENTS, otherwise=_TAKE_ONE)
    if part == "key":
        own = choice(*_KINDS, refused={CLOUD_EVENTS: _NO_KEYS}, otherwise=_TAKE_ONE)
    yield Option(name, own, JSON, f"Serialises {plural}.")
    yield from _json(name, plural)
    for option in (*_of_registries(part), *_json_schema()):
        yield option.within(name)
    if part == "value":
        for option in cloud_events():
            yield option.within(name)
        yield from _json(f"{name}.json", "CloudEvents")
        for option in _of_registries(part):
            yield _of_cloud_events(option).within(f"{name}.avro")
    yield Option(f"{name}.*", TEXT, None, "Further settings.", CONNECT, "the converter has no such setting")


def _of_registries(part: str) -> tuple[Option, ...]:
    """The settings of converters with schema registries."""
    return (*_avro(), *_confluent(part), *_apicurio())


def _of_cloud_events(option: Option) -> Option:
    """A setting of Avro within CloudEvents."""
    if option.name.endswith(".headers.enabled"):
        return replace(option, status=CONNECT, note="within CloudEvents the ids stand before the datums")
    return replace(option, help=f"CloudEvents: {option.help}")


def _json(name: str, plural: str) -> Iterator[Option]:
    """The settings of a JSON converter."""
    yield Option(f"{name}.schemas.enable", FLAG, "true", f"JSON: the schema beside each of {plural}.")
    yield Option(f"{name}.schemas.cache.size", INT, "1000", "Number of cached schemas.", CONNECT, "each table has one")
    yield Option(
        f"{name}.decimal.format",
        choice("BASE64", "NUMERIC"),
        "BASE64",
        f"JSON: decimals in {plural}: bytes of the unscaled value, or numbers.",
    )
    yield Option(
        f"{name}.replace.null.with.default",
        FLAG,
        "true",
        f"JSON: in {plural}, print a null with a default as that default.",
    )


def _avro() -> Iterator[Option]:
    """How Connect's data become Avro."""
    yield Option("connect.meta.data", FLAG, "true", "Avro: Connect's names, versions and parameters in schemas.")
    yield Option("enhanced.avro.schema.support", FLAG, "false", "Enums of Avro.", CONNECT, _NO_ENUMS)
    yield Option("generalized.sum.type.support", FLAG, "false", "Enums and unions.", CONNECT, _NO_ENUMS)
    yield Option("schemas.cache.config", INT, "1000", "Number of cached schemas.", CONNECT, _PROCESS_CACHE)


def _json_schema() -> Iterator[Option]:
    """The settings of Confluent's converter for JSON Schema alone."""
    yield Option("object.additional.properties", FLAG, "true", "JSON Schema: objects may have further properties.")
    yield Option("use.optional.for.nonrequired", FLAG, "false", "Of schemas.", CONNECT, "it is for reading records")


def _confluent(part: str) -> Iterator[Option]:
    """The settings of Confluent's converter."""
    yield Option("schema.registry.url", TEXT, None, "Confluent: addresses of the registry, separated by commas.")
    yield Option(
        f"{part}.subject.name.strategy",
        choice(*SUBJECTS, otherwise=_TAKE_ONE),
        SUBJECTS[0],
        "Confluent: what the subject of a schema is called.",
    )
    yield Option("auto.register.schemas", FLAG, "true", "Confluent: register schemas; else they must be there.")
    yield Option("use.latest.version", FLAG, "false", "Confluent: write with the subject's latest version.")
    yield Option("normalize.schemas", FLAG, "false", "Confluent: let the registry normalize schemas.")
    yield Option("scrub.invalid.names", FLAG, "false", "Confluent: make names legal for Avro.")
    yield Option("ignore.default.for.nullables", FLAG, "false", "Confluent: a null is null, and not the default.")
    yield Option("allow.optional.map.keys", FLAG, "false", "Confluent: maps with optional keys are maps of Avro.")
    yield Option("max.schemas.per.subject", INT, "1000", "Size of a cache.", CONNECT, _PROCESS_CACHE)
    yield Option("latest.compatibility.strict", FLAG, "true", "A check.", CONNECT, "data and schema must be alike")
    yield Option(
        "basic.auth.credentials.source",
        choice("URL", "USER_INFO", refused={"SASL_INHERIT": "use USER_INFO, and name the user in it"}),
        "URL",
        "Confluent: where user and password are: in the address, or in `basic.auth.user.info`.",
    )
    yield Option("basic.auth.user.info", TEXT, None, "Confluent: `user:password`.", secret=True)
    yield Option("schema.registry.basic.auth.user.info", TEXT, None, "The same under its former name.", secret=True)
    yield Option(
        "bearer.auth.credentials.source",
        choice("STATIC_TOKEN", "OAUTHBEARER", otherwise=_TAKE_ONE),
        None,
        "Confluent: where a token comes from: `bearer.auth.token`, or a server of OAuth by client credentials.",
    )
    yield Option("bearer.auth.token", TEXT, None, "Confluent: the token.", secret=True)
    yield Option("bearer.auth.issuer.endpoint.url", TEXT, None, "Confluent: where OAuth's server gives tokens.")
    yield Option("bearer.auth.client.id", TEXT, None, "Confluent: the client of OAuth.")
    yield Option("bearer.auth.client.secret", TEXT, None, "Confluent: its secret.", secret=True)
    yield Option("bearer.auth.scope", TEXT, None, "Confluent: the scope of its tokens.")
    yield Option("bearer.auth.cache.expiry.buffer.seconds", COUNT, "300", "Confluent: renew tokens so long before.")
    yield Option("bearer.auth.scope.claim.name", TEXT, "scope", "A claim.", CONNECT, _NOT_READ)
    yield Option("bearer.auth.sub.claim.name", TEXT, "sub", "A claim.", CONNECT, _NOT_READ)
    yield Option("bearer.auth.logical.cluster", TEXT, None, "Confluent: the cluster that tokens are for.")
    yield Option("bearer.auth.identity.pool.id", TEXT, None, "Confluent: the identity pool of the client.")
    yield from _certificates("schema.registry.ssl.", "Confluent")


def _apicurio() -> Iterator[Option]:
    """The settings of Apicurio's converter."""
    name = "apicurio.registry."
    yield Option(f"{name}url", TEXT, None, "Apicurio: the registry's address, with the path of its API, 2 or 3.")
    yield Option(f"{name}auto-register", FLAG, "false", "Apicurio: register schemas; else they must be there.")
    yield Option(
        f"{name}auto-register.if-exists",
        choice("FAIL", "CREATE_VERSION", "FIND_OR_CREATE_VERSION", otherwise=_TAKE_ONE),
        "FIND_OR_CREATE_VERSION",
        "Apicurio: what to do if the artifact is there.",
        old_values={"return_or_update": "FIND_OR_CREATE_VERSION", "return": "FIND_OR_CREATE_VERSION",
                    "update": "CREATE_VERSION"},
    )  # fmt: skip
    yield Option(f"{name}find-latest", FLAG, "false", "Apicurio: write with the artifact's latest version.")
    yield Option(f"{name}dereference-schema", FLAG, None, "Apicurio: schemas as a whole (true for API 2, else false).")
    yield Option(
        f"{name}artifact-resolver-strategy",
        choice(*ARTIFACTS, otherwise=_TAKE_ONE),
        ARTIFACTS[0],
        "Apicurio: what a schema's artifact is called.",
    )
    yield Option(f"{name}artifact.group-id", TEXT, None, "Apicurio: the group of artifacts.")
    yield Option(f"{name}artifact.artifact-id", TEXT, None, "Apicurio: one artifact for all.")
    yield Option(
        f"{name}headers.enabled",
        FLAG,
        None,
        "Apicurio: ids in headers instead of before each datum (true for API 2, else false).",
    )
    yield Option(
        f"{name}use-id",
        choice("contentId", "globalId"),
        None,
        "Apicurio: which id (globalId for API 2, else contentId).",
    )
    yield Option(
        f"{name}id-handler",
        choice(*FOUR_BYTES, *EIGHT_BYTES, otherwise=_TAKE_ONE),
        None,
        "Apicurio: how many bytes an id has (eight for API 2, else four).",
    )
    yield Option(f"{name}as-confluent", FLAG, "false", "Apicurio: ids have four bytes.")
    for own, meaning in _LOGINS.items():
        older = (Alias(f"apicurio.auth.{own}"),)
        yield Option(f"{name}auth.{own}", TEXT, None, f"Apicurio: {meaning}", secret=own in _SECRETS, aliases=older)
    for own in ("service.url", "realm"):
        yield Option(f"apicurio.auth.{own}", TEXT, None, "OAuth's server.", Status.REFUSED, _ENDPOINT)
    yield Option(f"{name}check-period-ms", COUNT, "30000", "Age of cached schemas.", CONNECT, _PROCESS_CACHE)
    yield from _certificates(f"{name}tls.", "Apicurio")


def _certificates(prefix: str, whose: str) -> Iterator[Option]:
    for store, meaning in (("truststore", "certificates to trust"), ("keystore", "own key and certificate")):
        yield Option(f"{prefix}{store}.location", TEXT, None, f"{whose}: a file with {meaning}, in PEM.")
        yield Option(f"{prefix}{store}.type", TEXT, None, "Its form.", CONNECT, _PEM)
    yield Option(f"{prefix}key.password", TEXT, None, f"{whose}: the password of the own key.", secret=True)
    for store in ("truststore", "keystore"):
        yield Option(f"{prefix}{store}.password", TEXT, None, "Its password.", CONNECT, _NO_PASSWORD, secret=True)
