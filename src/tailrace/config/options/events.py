"""The properties of values and events, of the converters of values, and of post processors."""

from __future__ import annotations

from tailrace.config import plugin_groups
from tailrace.config.kinds import FLAG, NAMES, PATTERNS, TEXT, choice, optional
from tailrace.config.option import JVM, Alias, Option, OptionStatus
from tailrace.config.options.converter_families import converters

CONNECT = OptionStatus.CONNECT

_ADJUSTMENT = choice("none", "avro", "avro_unicode")
_FACTORY = choice("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory", otherwise=JVM)
EVENTS = (
    UNAVAILABLE_VALUE_PLACEHOLDER := Option(
        "unavailable.value.placeholder",
        TEXT,
        "__debezium_unavailable_value",
        "Replaces a value that the log does not contain; `hex:` begins bytes.",
        aliases=(Alias("toasted.value.placeholder"),),
    ),
    EVENT_CONVERTING_FAILURE_HANDLING_MODE := Option(
        "event.converting.failure.handling.mode",
        choice("fail", "warn", "skip"),
        "warn",
        "What to do with a value that cannot be converted.",
    ),
    EVENT_PROCESSING_FAILURE_HANDLING_MODE := Option(
        "event.processing.failure.handling.mode",
        choice("fail", "warn", "skip"),
        "fail",
        "What to do with a change that cannot be encoded: `warn` and `skip` leave it out and log it. A replica's table "
        "is incomplete then. The connector's page says whether that holds for one that cannot be read.",
        old_values={"ignore": "skip"},
    ),
    SCHEMA_NAME_ADJUSTMENT_MODE := Option(
        "schema.name.adjustment.mode", _ADJUSTMENT, "none", "Make schema names safe for Avro."
    ),
    FIELD_NAME_ADJUSTMENT_MODE := Option(
        "field.name.adjustment.mode",
        _ADJUSTMENT,
        "none",
        "Make field names safe for Avro.",
        aliases=(Alias("sanitize.field.names", {"true": "avro", "false": "none"}),),
    ),
    INCLUDE_SCHEMA_COMMENTS := Option(
        "include.schema.comments", FLAG, "false", "Column comments as `doc` of the schema."
    ),
    EXTENDED_HEADERS_ENABLED := Option("extended.headers.enabled", FLAG, "true", "Context headers on each record."),
    PROVIDE_TRANSACTION_METADATA := Option(
        "provide.transaction.metadata", FLAG, "false", "Transaction blocks and the transaction topic."
    ),
    CONVERTER_NAMES := Option(
        "converters",
        NAMES,
        None,
        "Names of your converters; `<name>.*` are the settings of each.",
        protects=True,
    ),
    POST_PROCESSORS := Option("post.processors", NAMES, None, "Names of post processors; one type is known."),
    TYPE_OF_PART := Option(
        "<p>.type",
        TEXT,
        None,
        "Type of a post processor (ReselectColumnsPostProcessor, by its full name) or of a converter (an entry point "
        f"of the group `{plugin_groups.CONVERTERS}`).",
    ),
    RESELECT_INCLUDE := Option(
        "<p>.reselect.columns.include.list", PATTERNS, None, "Columns to select again, as schema.table:column."
    ),
    RESELECT_EXCLUDE := Option(
        "<p>.reselect.columns.exclude.list", PATTERNS, None, "Columns not to select again, if not included."
    ),
    RESELECT_UNAVAILABLE_VALUES := Option(
        "<p>.reselect.unavailable.values", FLAG, None, "Select values again that the log does not contain (true)."
    ),
    RESELECT_NULL_VALUES := Option("<p>.reselect.null.values", FLAG, None, "Select null values again (true)."),
    Option("<p>.reselect.cache.*", TEXT, None, "A cache.", CONNECT, "a batch looks each row up once, with one query"),
    RESELECT_USE_EVENT_KEY := Option(
        "<p>.reselect.use.event.key", FLAG, None, "Find rows by the event's key, not the primary key (false)."
    ),
    RESELECT_ERROR_HANDLING_MODE := Option(
        "<p>.reselect.error.handling.mode",
        choice("warn", "fail"),
        None,
        "Where a row is gone: warn (the default) or fail.",
    ),
    Option("transaction.metadata.factory", optional(_FACTORY), None, "Java class.", CONNECT, "there is one"),
    Option("source.struct.version", TEXT, "v2", "Version of the source block.", CONNECT, "there is one version"),
)


VALUES = (
    DECIMAL_HANDLING_MODE := Option(
        "decimal.handling.mode", choice("precise", "double", "string"), "precise", "How NUMERIC appears."
    ),
    TIME_PRECISION_MODE := Option(
        "time.precision.mode",
        choice(
            *("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
            "structured",
        ),
        "adaptive",
        "How dates and times appear; structured (of Debezium 3.7): structs of calendar and clock parts.",
    ),
    BINARY_HANDLING_MODE := Option(
        "binary.handling.mode", choice("bytes", "base64", "base64-url-safe", "hex"), "bytes", "How binary data appears."
    ),
    *EVENTS,
)

CONVERTERS = (
    *converters(),
    TRANSFORM_NAMES := Option("transforms", NAMES, None, "Single message transforms, in order.", protects=True),
    TRANSFORMS_FAMILY := Option("transforms.*", TEXT, None, "Type, condition and settings of a transform."),
    PREDICATE_NAMES := Option("predicates", NAMES, None, "Conditions of transforms.", protects=True),
    PREDICATES_FAMILY := Option("predicates.*", TEXT, None, "Type and settings of a condition."),
)
