"""The properties of Apicurio's converters: artifacts, ids, and how they log in.

Declared without the converter's name before them, as `Config.within` gives them.
"""

from __future__ import annotations

from tailrace.config.kinds import COUNT, FLAG, TEXT, choice, optional
from tailrace.config.option import JVM, Alias, Option, OptionStatus
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
_ENDPOINT = "set apicurio.registry.auth.service.token.endpoint: URL/realms/REALM/protocol/openid-connect/token"


def _login(own: str, meaning: str, *, secret: bool = False) -> Option[str | None]:
    """A setting of how Apicurio's converter logs in, with its older name."""
    older = (Alias(f"apicurio.auth.{own}"),)
    return Option(
        f"apicurio.registry.auth.{own}", optional(TEXT), None, f"Apicurio: {meaning}", secret=secret, aliases=older
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
        choice("FAIL", "CREATE_VERSION", "FIND_OR_CREATE_VERSION", otherwise=TAKE_ONE),
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
        choice(*ARTIFACTS, otherwise=TAKE_ONE),
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
        optional(choice(*FOUR_BYTES, *EIGHT_BYTES, otherwise=TAKE_ONE)),
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
        ONLY_VALUE,
    ),
    Option(
        "apicurio.registry.canonicalize",
        choice("false", refused={"true": "schemas are registered as AvroData writes them: remove it"}),
        "false",
        "Apicurio: register the canonical form of schemas.",
        CONNECT,
        ONLY_VALUE,
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
        PROCESS_CACHE,
        "apicurio.registry.cache-latest",
        "apicurio.registry.fault-tolerant-refresh",
        "apicurio.registry.background-refresh-enabled",
        "apicurio.registry.background-refresh.executor-threads",
        "apicurio.registry.background-refresh.timeout-ms",
        "apicurio.registry.avro.schema-cache-size",
    ),
    *quiet(
        READING,
        "apicurio.registry.converter.deserializer",
        "apicurio.registry.serializer.dereference-schema",
        "apicurio.registry.deserializer.dereference-schema",
        "apicurio.registry.deserializer.key.return-class",
        "apicurio.registry.deserializer.value.return-class",
        "apicurio.registry.use-specific-avro-reader",
        "apicurio.registry.fallback.artifact-id",
        "apicurio.registry.fallback.group-id",
        "apicurio.registry.fallback.version",
        "apicurio.registry.fallback.provider",
    ),
    *quiet("records are generic", "apicurio.registry.avro-datum-provider"),
    *quiet("the property key.converter or value.converter says it", "apicurio.registry.is-key"),
    *quiet(
        "schemas and records are made together",
        "apicurio.registry.serde.validation-enabled",
        "apicurio.registry.avro.validate-writer-schema",
    ),
    Option(
        "apicurio.registry.serde.contract-rules.enabled",
        choice("false", refused={"true": NO_RULES}),
        "false",
        "Apicurio: run the rules of contracts.",
        CONNECT,
        ONLY_VALUE,
    ),
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
    Option("apicurio.registry.check-period-ms", COUNT, "30000", "Age of cached schemas.", CONNECT, PROCESS_CACHE),
    *registry_clients.OF_APICURIO,
)
