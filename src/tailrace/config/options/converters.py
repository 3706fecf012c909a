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
from tailrace.config.option import Option, OptionStatus
from tailrace.config.options import registry_clients
from tailrace.config.options.registry_clients import (
    NO_RULES,
    ONLY_VALUE,
    PROCESS_CACHE,
    READING,
    TAKE_ONE,
    quiet,
    refused,
)

CONNECT = OptionStatus.CONNECT

# The default of Kafka Connect first.
_HEADERS = (SIMPLE, STRING, JSON)
_OF_OTHERS = (JSON, *CONFLUENT, *APICURIO, STRING, BYTES)
_KINDS = (*_OF_OTHERS, BYTES_OR_OTHER)
_NO_KEYS = "the reference's keys are null with it: take another converter for keys"

_SUBJECTS = "io.confluent.kafka.serializers.subject."
SUBJECTS = tuple(f"{_SUBJECTS}{name}Strategy" for name in ("TopicName", "RecordName", "TopicRecordName"))
_NO_ENUMS = "no schema of these connectors is an enum or a union in Avro"
_NOT_READ = "the registry reads the token"
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
    Option("schemas.cache.config", INT, "1000", "Number of cached schemas.", CONNECT, PROCESS_CACHE),
)
OF_JSON_SCHEMA = (
    OBJECT_ADDITIONAL_PROPERTIES := Option(
        "object.additional.properties", FLAG, "true", "JSON Schema: objects may have further properties."
    ),
    *quiet(
        READING,
        "use.optional.for.nonrequired",
        "ignore.modern.dialects",
        "preserve.additional.properties",
        "json.envelope.detection",
    ),
    Option(
        "json.indent.output",
        choice("false", refused={"true": "records have no line breaks: remove it, readers of JSON do not notice"}),
        "false",
        "Confluent: indent the JSON.",
        CONNECT,
        ONLY_VALUE,
    ),
    *quiet(
        "schemas and records are those of the tables, made together",
        "json.fail.invalid.schema",
        "json.fail.unknown.properties",
        "json.validate.before.domain.rules",
        "json.schema.spec.version",
        "json.schema.scan.packages",
        "json.oneof.for.nullables",
        "json.default.property.inclusion",
        "json.write.dates.iso8601",
    ),
)
SUBJECT_NAME_STRATEGY = {
    part: Option(
        f"{part}.subject.name.strategy",
        choice(*SUBJECTS, otherwise=TAKE_ONE),
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
        ONLY_VALUE,
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
        PROCESS_CACHE,
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
        ONLY_VALUE,
    ),
    *refused("schemas are registered in the form that AvroData gives them", "schema.format"),
    *refused(NO_RULES, "rule.executors", "rule.actions"),
    *refused(NO_RULES, "rule.executors.*", "rule.actions.*", secret=True),
    Option(
        "validation.rules.execution",
        choice("DISABLED", otherwise=NO_RULES),
        "DISABLED",
        "Confluent: run the rules of schemas.",
        CONNECT,
        ONLY_VALUE,
    ),
    *quiet(
        NO_RULES,
        "rule.service.loader.enable",
        "rule.metrics.enable",
        "execution.environment",
        "validation.rules.executor.class",
        "validation.rules.fail.fast",
    ),
    *quiet("tags of schemas are not copied to new versions", "propagate.schema.tags"),
    *quiet("it goes with use.schema.id", "id.compatibility.strict"),
    *quiet(
        READING,
        "key.schema.id.deserializer",
        "value.schema.id.deserializer",
        "schema.reflection",
        "flatten.singleton.unions",
        "schema.backup.enabled",
    ),
    *quiet(
        "records are generic, and their values plain", "avro.use.logical.type.converters", "avro.reflection.allow.null"
    ),
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
        optional(choice("STATIC_TOKEN", "OAUTHBEARER", otherwise=TAKE_ONE)),
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
HEADER_CONVERTER = Option("header.converter", choice(*_HEADERS, otherwise=TAKE_ONE), _HEADERS[0], "Serialises headers.")
DELEGATE_CONVERTER = Option(
    "delegate.converter.type",
    optional(choice(*_OF_OTHERS, refused=OTHERS, otherwise=TAKE_ONE)),
    None,
    "BinaryDataConverter: the converter of what is no bytes; its settings stand below this name.",
)
CONVERTER = {
    "key": Option(
        "key.converter",
        choice(*_KINDS, refused={CLOUD_EVENTS: _NO_KEYS, **OTHERS}, otherwise=TAKE_ONE),
        JSON,
        "Serialises keys.",
    ),
    "value": Option(
        "value.converter",
        choice(*_KINDS, CLOUD_EVENTS, refused=OTHERS, otherwise=TAKE_ONE),
        JSON,
        "Serialises values.",
    ),
    "header": HEADER_CONVERTER,
}
