"""The settings of the outbox event router."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from tailrace.config.kinds import FLAG, NAMES, PATTERN, TEXT, optional
from tailrace.javalike.patterns import Rewrite
from tailrace.transforms.settings import Given, either, setting

OPTIONS = (
    _TABLE_FIELD_EVENT_ID := setting("table.field.event.id", TEXT, "id"),
    _TABLE_FIELD_EVENT_KEY := setting("table.field.event.key", TEXT, "aggregateid"),
    _TABLE_FIELD_EVENT_TYPE := setting("table.field.event.type", TEXT, "type"),
    _TABLE_FIELD_EVENT_TIMESTAMP := setting("table.field.event.timestamp", optional(TEXT)),
    _TABLE_FIELD_EVENT_PAYLOAD := setting("table.field.event.payload", TEXT, "payload"),
    _TABLE_FIELD_EVENT_SCHEMA_VERSION := setting("table.field.event.schema.version", optional(TEXT)),
    _TABLE_FIELDS_ADDITIONAL_PLACEMENT := setting("table.fields.additional.placement", NAMES),
    _TABLE_FIELD_ADDITIONAL_MISSING := setting("table.field.additional.missing", either("error", "ignore"), "error"),
    _TABLE_OP_INVALID_BEHAVIOR := setting("table.op.invalid.behavior", either("warn", "error", "fatal"), "warn"),
    _TABLE_EXPAND_JSON_PAYLOAD := setting("table.expand.json.payload", FLAG, "false"),
    _TABLE_JSON_PAYLOAD_NULL_BEHAVIOR := setting(
        "table.json.payload.null.behavior", either("ignore", "optional_bytes"), "ignore"
    ),
    _TABLE_JSON_PAYLOAD_EMPTY_ARRAY_BEHAVIOR := setting(
        "table.json.payload.empty.array.behavior", either("ignore", "optional_string"), "ignore"
    ),
    _ROUTE_BY_FIELD := setting("route.by.field", TEXT, "aggregatetype"),
    _ROUTE_TOPIC_REGEX := setting("route.topic.regex", PATTERN, "(?<routedByValue>.*)"),
    _ROUTE_TOPIC_REPLACEMENT := setting("route.topic.replacement", TEXT, "outbox.event.${routedByValue}"),
    _ROUTE_TOMBSTONE_ON_EMPTY_PAYLOAD := setting("route.tombstone.on.empty.payload", FLAG, "false"),
    _FIELD_NAME_ADJUSTMENT_MODE := setting(
        "field.name.adjustment.mode", either("none", "avro", "avro_unicode"), "none"
    ),
    # Spans need OpenTelemetry; in the reference engine these have no effect without it, either.
    _TRACING_SPAN_CONTEXT_FIELD := setting("tracing.span.context.field", optional(TEXT)),
    _TRACING_OPERATION_NAME := setting("tracing.operation.name", optional(TEXT)),
    _TRACING_WITH_CONTEXT_FIELD_ONLY := setting("tracing.with.context.field.only", optional(TEXT)),
)
PLACES = ("header", "envelope", "partition")


@dataclass(frozen=True)
class Additional:
    """A further column of the outbox table: where it goes, and under which name."""

    field: str
    place: str
    name: str


@dataclass(frozen=True)
class OutboxSettings:
    """The router's settings; names are columns of the outbox table."""

    id: str
    key: str | None
    timestamp: str | None
    payload: str
    _: KW_ONLY
    version: str | None
    additional: tuple[Additional, ...]
    ignore_missing: bool
    invalid: str
    expand: bool
    nulls: bool
    empty: bool
    route_by: str
    topic: Rewrite
    tombstones: bool
    adjustment: str

    @staticmethod
    def of(given: Given) -> OutboxSettings:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        try:
            topic = Rewrite.of(config[_ROUTE_TOPIC_REGEX], config[_ROUTE_TOPIC_REPLACEMENT])
        except ValueError as error:
            raise given.problem("route.topic.replacement", str(error)) from error
        return OutboxSettings(
            id=config[_TABLE_FIELD_EVENT_ID],
            key=config[_TABLE_FIELD_EVENT_KEY],
            timestamp=config[_TABLE_FIELD_EVENT_TIMESTAMP] or None,
            payload=config[_TABLE_FIELD_EVENT_PAYLOAD],
            version=config[_TABLE_FIELD_EVENT_SCHEMA_VERSION] or None,
            additional=tuple(_additional(given, text) for text in config[_TABLE_FIELDS_ADDITIONAL_PLACEMENT]),
            ignore_missing=config[_TABLE_FIELD_ADDITIONAL_MISSING] == "ignore",
            invalid=config[_TABLE_OP_INVALID_BEHAVIOR],
            expand=config[_TABLE_EXPAND_JSON_PAYLOAD],
            nulls=config[_TABLE_JSON_PAYLOAD_NULL_BEHAVIOR] == "optional_bytes",
            empty=config[_TABLE_JSON_PAYLOAD_EMPTY_ARRAY_BEHAVIOR] == "optional_string",
            route_by=config[_ROUTE_BY_FIELD],
            topic=topic,
            tombstones=config[_ROUTE_TOMBSTONE_ON_EMPTY_PAYLOAD],
            adjustment=config[_FIELD_NAME_ADJUSTMENT_MODE],
        )


def _additional(given: Given, text: str) -> Additional:
    parts = [part.strip() for part in text.split(":")]
    name = "table.fields.additional.placement"
    if len(parts) not in (2, 3):
        message = f"A comma-separated list of valid String pairs or trios is expected but got: {text}"
        raise given.problem(name, message, "write column:header or column:envelope:name")
    if parts[1].lower() not in PLACES:
        raise given.problem(name, f"unknown placement {parts[1]!r}", f"it is one of {', '.join(PLACES)}")
    return Additional(parts[0], parts[1].lower(), parts[2] if len(parts) == 3 else parts[0])
