"""The properties of the converters of keys, values and headers, and of their schema registries.

The settings of a converter are declared without the converter's name before them, as `Config.within` gives them.
"""

from __future__ import annotations

from tailrace.config.converter_names import (
    APICURIO,
    BYTES,
    BYTES_OR_OTHER,
    CLOUD_EVENTS,
    CONFLUENT,
    JSON,
    OTHERS,
    SIMPLE,
    STRING,
)
from tailrace.config.kinds import COUNT, FLAG, INT, TEXT, choice, optional
from tailrace.config.option import JVM, Alias, Option, OptionStatus
from tailrace.config.options import registry_clients
from tailrace.config.options.registry_clients import quiet, refused

CONNECT = OptionStatus.CONNECT

# The default of Kafka Connect first.
_HEADERS = (SIMPLE, STRING, JSON)
_OF_OTHERS = (JSON, *CONFLUENT, *APICURIO, STRING, BYTES)
_KINDS = (*_OF_OTHERS, BYTES_OR_OTHER)
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
_NO_RULES = "rules of data contracts are not run: remove them, or encrypt and check by transforms"
_NOT_READ = "the registry reads the token"
_ENDPOINT = "set apicurio.registry.auth.service.token.endpoint: URL/realms/REALM/protocol/openid-connect/token"


def _login(own: str, meaning: str, *, secret: bool = False) -> Option[str | None]:
    """A setting of how Apicurio's converter logs in, with its older name."""
    older = (Alias(f"apicurio.auth.{own}"),)
    return Option(
        f"apicurio.registry.auth.{own}", optional(TEXT), None, f"Apicurio: {meaning}", secret=secret, aliases=older
    )


# In their texts {} stands for what the converter is for.
OF_JSON = (
    SCHEMAS_ENABLE := Option("schemas.enable", FLAG, "true", "JSON: the schema beside each of {}."),
    Option("schemas.cache.size", INT, "1000", "Number of cached schemas.", CONNECT, "each table has one"),
    DECIMAL_FORMAT := Option(
        "decimal.format",
        choice("BASE64", "NUMERIC"),
        "BASE64",
        "JSON: decimals in {}: bytes of the unscaled value, or numbers.",
    ),
    REPLACE_NULL_WITH_DEFAULT := Option(
        "replace.null.with.default", FLAG, "true", "JSON: in {}, print a null with a default as that default."
    ),
)
# How Connect's data become Avro.
OF_AVRO = (
    CONNECT_META_DATA := Option(
        "connect.meta.data", FLAG, "true", "Avro: Connect's names, versions and parameters in schemas."
    ),
    Option("enhanced.avro.schema.support", FLAG, "false", "Enums of Avro.", CONNECT, _NO_ENUMS),
    Option("generalized.sum.type.support", FLAG, "false", "Enums and unions.", CONNECT, _NO_ENUMS),
    Option("schemas.cache.config", INT, "1000", "Number of cached schemas.", CONNECT, _PROCESS_CACHE),
)
OF_JSON_SCHEMA = (
    OBJECT_ADDITIONAL_PROPERTIES := Option(
        "object.additional.properties", FLAG, "true", "JSON Schema: objects may have further properties."
    ),
    Option("use.optional.for.nonrequired", FLAG, "false", "Of schemas.", CONNECT, "it is for reading records"),
)
SUBJECT_NAME_STRATEGY = {
    part: Option(
        f"{part}.subject.name.strategy",
        choice(*SUBJECTS, otherwise=_TAKE_ONE),
        SUBJECTS[0],
        "Confluent: what the subject of a schema is called.",
    )
    for part in ("key", "value")
}
# The reference's own classes that do what is done here; others change bytes or subjects.
_PREFIX_IDS = "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer"
_HEADER_IDS = "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"
_NO_GUIDS = "ids stand before each record: remove it, which readers with DualSchemaIdDeserializer, their default, read"
SCHEMA_ID_SERIALIZER = {
    part: Option(
        f"{part}.schema.id.serializer",
        choice(_PREFIX_IDS, refused={_HEADER_IDS: _NO_GUIDS}, otherwise=_NO_GUIDS),
        _PREFIX_IDS,
        "Confluent: where the id of a schema is written.",
        CONNECT,
        "the only value is what is done",
    )
    for part in ("key", "value")
}
_CONTEXT = "io.confluent.kafka.serializers.context.NullContextNameStrategy"
_IN_ADDRESS = "write the context into the address: https://registry:8081/contexts/:.NAME:"
SCHEMA_REGISTRY_URL = Option(
    "schema.registry.url", optional(TEXT), None, "Confluent: addresses of the registry, separated by commas."
)
OF_CONFLUENT = (
    AUTO_REGISTER_SCHEMAS := Option(
        "auto.register.schemas", FLAG, "true", "Confluent: register schemas; else they must be there."
    ),
    USE_LATEST_VERSION := Option(
        "use.latest.version", FLAG, "false", "Confluent: write with the subject's latest version."
    ),
    NORMALIZE_SCHEMAS := Option("normalize.schemas", FLAG, "false", "Confluent: let the registry normalize schemas."),
    SCRUB_INVALID_NAMES := Option("scrub.invalid.names", FLAG, "false", "Confluent: make names legal for Avro."),
    IGNORE_DEFAULT_FOR_NULLABLES := Option(
        "ignore.default.for.nullables", FLAG, "false", "Confluent: a null is null, and not the default."
    ),
    ALLOW_OPTIONAL_MAP_KEYS := Option(
        "allow.optional.map.keys", FLAG, "false", "Confluent: maps with optional keys are maps of Avro."
    ),
    *quiet(
        _PROCESS_CACHE,
        "max.schemas.per.subject",
        "latest.cache.size",
        "latest.cache.ttl.sec",
        "missing.cache.size",
        "missing.id.cache.ttl.sec",
        "missing.version.cache.ttl.sec",
        "missing.schema.cache.ttl.sec",
    ),
    *refused(
        "every table has a schema of its own: register the schemas, and set use.latest.version=true with "
        "auto.register.schemas=false",
        "use.schema.id",
        "use.schema.guid",
        "use.latest.with.metadata",
    ),
    Option(
        "context.name.strategy",
        choice(_CONTEXT, otherwise=_IN_ADDRESS),
        _CONTEXT,
        "Confluent: the context of subjects.",
        CONNECT,
        "the only value is what is done",
    ),
    *refused("schemas are registered in the form that AvroData gives them", "schema.format"),
    *refused(_NO_RULES, "rule.executors", "rule.actions"),
    *refused(_NO_RULES, "rule.executors.*", "rule.actions.*", secret=True),
    *quiet(_NO_RULES, "rule.service.loader.enable", "rule.metrics.enable", "execution.environment"),
    *quiet("tags of schemas are not copied to new versions", "propagate.schema.tags"),
    *quiet("it goes with use.schema.id", "id.compatibility.strict"),
    *quiet(
        "it is for reading records",
        "key.schema.id.deserializer",
        "value.schema.id.deserializer",
        "schema.reflection",
        "flatten.singleton.unions",
    ),
    *quiet("records are generic, and their values plain", "avro.use.logical.type.converters"),
    *quiet("schemas of these connectors have none", "avro.remove.java.properties", "discard.type.doc.default"),
    Option("latest.compatibility.strict", FLAG, "true", "A check.", CONNECT, "data and schema must be alike"),
    BASIC_AUTH_CREDENTIALS_SOURCE := Option(
        "basic.auth.credentials.source",
        choice("URL", "USER_INFO", refused={"SASL_INHERIT": "use USER_INFO, and name the user in it"}),
        "URL",
        "Confluent: where user and password are: in the address, or in `basic.auth.user.info`.",
    ),
    BASIC_AUTH_USER_INFO := Option(
        "basic.auth.user.info", optional(TEXT), None, "Confluent: `user:password`.", secret=True
    ),
    SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO := Option(
        "schema.registry.basic.auth.user.info", optional(TEXT), None, "The same under its former name.", secret=True
    ),
    BEARER_AUTH_CREDENTIALS_SOURCE := Option(
        "bearer.auth.credentials.source",
        optional(choice("STATIC_TOKEN", "OAUTHBEARER", otherwise=_TAKE_ONE)),
        None,
        "Confluent: where a token comes from: `bearer.auth.token`, or a server of OAuth by client credentials.",
    ),
    BEARER_AUTH_TOKEN := Option("bearer.auth.token", optional(TEXT), None, "Confluent: the token.", secret=True),
    BEARER_AUTH_ISSUER_ENDPOINT_URL := Option(
        "bearer.auth.issuer.endpoint.url", optional(TEXT), None, "Confluent: where OAuth's server gives tokens."
    ),
    BEARER_AUTH_CLIENT_ID := Option("bearer.auth.client.id", optional(TEXT), None, "Confluent: the client of OAuth."),
    BEARER_AUTH_CLIENT_SECRET := Option(
        "bearer.auth.client.secret", optional(TEXT), None, "Confluent: its secret.", secret=True
    ),
    BEARER_AUTH_SCOPE := Option("bearer.auth.scope", optional(TEXT), None, "Confluent: the scope of its tokens."),
    BEARER_AUTH_CACHE_EXPIRY_BUFFER_SECONDS := Option(
        "bearer.auth.cache.expiry.buffer.seconds", COUNT, "300", "Confluent: renew tokens so long before."
    ),
    Option("bearer.auth.scope.claim.name", TEXT, "scope", "A claim.", CONNECT, _NOT_READ),
    Option("bearer.auth.sub.claim.name", TEXT, "sub", "A claim.", CONNECT, _NOT_READ),
    BEARER_AUTH_LOGICAL_CLUSTER := Option(
        "bearer.auth.logical.cluster", optional(TEXT), None, "Confluent: the cluster that tokens are for."
    ),
    BEARER_AUTH_IDENTITY_POOL_ID := Option(
        "bearer.auth.identity.pool.id", optional(TEXT), None, "Confluent: the identity pool of the client."
    ),
    *registry_clients.OF_CONFLUENT,
)
OF_APICURIO = (
    APICURIO_URL := Option(
        "apicurio.registry.url",
        optional(TEXT),
        None,
        "Apicurio: the registry's address, with the path of its API, 2 or 3.",
    ),
    APICURIO_AUTO_REGISTER := Option(
        "apicurio.registry.auto-register", FLAG, "false", "Apicurio: register schemas; else they must be there."
    ),
    APICURIO_AUTO_REGISTER_IF_EXISTS := Option(
        "apicurio.registry.auto-register.if-exists",
        choice("FAIL", "CREATE_VERSION", "FIND_OR_CREATE_VERSION", otherwise=_TAKE_ONE),
        "FIND_OR_CREATE_VERSION",
        "Apicurio: what to do if the artifact is there.",
        old_values={
            "return_or_update": "FIND_OR_CREATE_VERSION",
            "return": "FIND_OR_CREATE_VERSION",
            "update": "CREATE_VERSION",
        },
    ),
    APICURIO_FIND_LATEST := Option(
        "apicurio.registry.find-latest", FLAG, "false", "Apicurio: write with the artifact's latest version."
    ),
    APICURIO_DEREFERENCE_SCHEMA := Option(
        "apicurio.registry.dereference-schema",
        optional(FLAG),
        None,
        "Apicurio: schemas as a whole (true for API 2, else false).",
    ),
    APICURIO_ARTIFACT_RESOLVER_STRATEGY := Option(
        "apicurio.registry.artifact-resolver-strategy",
        choice(*ARTIFACTS, otherwise=_TAKE_ONE),
        ARTIFACTS[0],
        "Apicurio: what a schema's artifact is called.",
    ),
    APICURIO_ARTIFACT_GROUP_ID := Option(
        "apicurio.registry.artifact.group-id", optional(TEXT), None, "Apicurio: the group of artifacts."
    ),
    APICURIO_ARTIFACT_ARTIFACT_ID := Option(
        "apicurio.registry.artifact.artifact-id", optional(TEXT), None, "Apicurio: one artifact for all."
    ),
    APICURIO_HEADERS_ENABLED := Option(
        "apicurio.registry.headers.enabled",
        optional(FLAG),
        None,
        "Apicurio: ids in headers instead of before each datum (true for API 2, else false).",
    ),
    APICURIO_USE_ID := Option(
        "apicurio.registry.use-id",
        optional(choice("contentId", "globalId")),
        None,
        "Apicurio: which id (globalId for API 2, else contentId).",
    ),
    APICURIO_ID_HANDLER := Option(
        "apicurio.registry.id-handler",
        optional(choice(*FOUR_BYTES, *EIGHT_BYTES, otherwise=_TAKE_ONE)),
        None,
        "Apicurio: how many bytes an id has (eight for API 2, else four).",
    ),
    APICURIO_AS_CONFLUENT := Option("apicurio.registry.as-confluent", FLAG, "false", "Apicurio: ids have four bytes."),
    Option(
        "apicurio.registry.avro.encoding",
        choice("BINARY", refused={"JSON": "take the converter org.apache.kafka.connect.json.JsonConverter, or BINARY"}),
        "BINARY",
        "Apicurio: how records are written.",
        CONNECT,
        "the only value is what is done",
    ),
    Option(
        "apicurio.registry.canonicalize",
        choice("false", refused={"true": "schemas are registered as AvroData writes them: remove it"}),
        "false",
        "Apicurio: register the canonical form of schemas.",
        CONNECT,
        "the only value is what is done",
    ),
    *refused(
        "every table has an artifact of its own: remove it, or set apicurio.registry.find-latest=true to write with "
        "the latest version",
        "apicurio.registry.artifact.version",
        "apicurio.registry.artifact.schema.location",
    ),
    *refused(
        "headers have the names apicurio.value.globalId and so on: remove it, and the same in consumers",
        "apicurio.registry.headers.<part>.<field>.name",
        "apicurio.registry.headers.handler",
    ),
    *refused(
        JVM,
        "apicurio.registry.schema-resolver",
        "apicurio.registry.converter.serializer",
    ),
    *quiet(
        _PROCESS_CACHE,
        "apicurio.registry.cache-latest",
        "apicurio.registry.fault-tolerant-refresh",
        "apicurio.registry.background-refresh-enabled",
        "apicurio.registry.avro.schema-cache-size",
    ),
    *quiet(
        "it is for reading records",
        "apicurio.registry.converter.deserializer",
        "apicurio.registry.deserializer.dereference-schema",
        "apicurio.registry.use-specific-avro-reader",
        "apicurio.registry.fallback.artifact-id",
        "apicurio.registry.fallback.group-id",
        "apicurio.registry.fallback.version",
        "apicurio.registry.fallback.provider",
    ),
    *quiet("records are generic", "apicurio.registry.avro-datum-provider"),
    *quiet("the property key.converter or value.converter says it", "apicurio.registry.is-key"),
    *quiet("schemas and records are made together", "apicurio.registry.serde.validation-enabled"),
    APICURIO_AUTH_USERNAME := _login("username", "user of basic authentication."),
    APICURIO_AUTH_PASSWORD := _login("password", "its password.", secret=True),
    APICURIO_AUTH_ENDPOINT := _login(
        "service.token.endpoint", "where OAuth's server gives tokens for client credentials."
    ),
    APICURIO_AUTH_CLIENT_ID := _login("client.id", "the client of OAuth."),
    APICURIO_AUTH_CLIENT_SECRET := _login("client.secret", "its secret.", secret=True),
    APICURIO_AUTH_CLIENT_SCOPE := _login("client.scope", "the scope of its tokens."),
    *(
        Option(f"apicurio.auth.{own}", optional(TEXT), None, "OAuth's server.", OptionStatus.REFUSED, _ENDPOINT)
        for own in ("service.url", "realm")
    ),
    Option("apicurio.registry.check-period-ms", COUNT, "30000", "Age of cached schemas.", CONNECT, _PROCESS_CACHE),
    *registry_clients.OF_APICURIO,
)
HEADER_CONVERTER = Option(
    "header.converter", choice(*_HEADERS, otherwise=_TAKE_ONE), _HEADERS[0], "Serialises headers."
)
DELEGATE_CONVERTER = Option(
    "delegate.converter.type",
    optional(choice(*_OF_OTHERS, refused=OTHERS, otherwise=_TAKE_ONE)),
    None,
    "BinaryDataConverter: the converter of what is no bytes; its settings stand below this name.",
)
CONVERTER = {
    "key": Option(
        "key.converter",
        choice(*_KINDS, refused={CLOUD_EVENTS: _NO_KEYS, **OTHERS}, otherwise=_TAKE_ONE),
        JSON,
        "Serialises keys.",
    ),
    "value": Option(
        "value.converter",
        choice(*_KINDS, CLOUD_EVENTS, refused=OTHERS, otherwise=_TAKE_ONE),
        JSON,
        "Serialises values.",
    ),
    "header": HEADER_CONVERTER,
}
