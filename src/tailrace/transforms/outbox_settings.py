"""The settings of the outbox event router."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config.kinds import FLAG, NAMES, PATTERN, TEXT
from tailrace.javalike.patterns import Rewrite
from tailrace.transforms.settings import Given, either, setting

OPTIONS = (
    setting("table.field.event.id", TEXT, "id"),
    setting("table.field.event.key", TEXT, "aggregateid"),
    setting("table.field.event.type", TEXT, "type"),
    setting("table.field.event.timestamp", TEXT),
    setting("table.field.event.payload", TEXT, "payload"),
    setting("table.field.event.schema.version", TEXT),
    setting("table.fields.additional.placement", NAMES),
    setting("table.field.additional.missing", either("error", "ignore"), "error"),
    setting("table.op.invalid.behavior", either("warn", "error", "fatal"), "warn"),
    setting("table.expand.json.payload", FLAG, "false"),
    setting("table.json.payload.null.behavior", either("ignore", "optional_bytes"), "ignore"),
    setting("route.by.field", TEXT, "aggregatetype"),
    setting("route.topic.regex", PATTERN, "(?<routedByValue>.*)"),
    setting("route.topic.replacement", TEXT, "outbox.event.${routedByValue}"),
    setting("route.tombstone.on.empty.payload", FLAG, "false"),
    setting("field.name.adjustment.mode", either("none", "avro", "avro_unicode"), "none"),
    # Spans need OpenTelemetry; in the reference engine these have no effect without it, either.
    setting("tracing.span.context.field", TEXT),
    setting("tracing.operation.name", TEXT),
    setting("tracing.with.context.field.only", TEXT),
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
    version: str | None
    additional: tuple[Additional, ...]
    ignore_missing: bool
    invalid: str
    expand: bool
    nulls: bool
    route_by: str
    topic: Rewrite
    tombstones: bool
    adjustment: str

    @staticmethod
    def of(given: Given) -> OutboxSettings:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        try:
            topic = Rewrite.of(config.text("route.topic.regex"), config.text("route.topic.replacement"))
        except ValueError as error:
            raise given.problem("route.topic.replacement", str(error)) from error
        return OutboxSettings(
            id=config.text("table.field.event.id"),
            key=config.optional("table.field.event.key"),
            timestamp=config.optional("table.field.event.timestamp") or None,
            payload=config.text("table.field.event.payload"),
            version=config.optional("table.field.event.schema.version") or None,
            additional=tuple(_additional(given, text) for text in config.names("table.fields.additional.placement")),
            ignore_missing=config.text("table.field.additional.missing") == "ignore",
            invalid=config.text("table.op.invalid.behavior"),
            expand=config.flag("table.expand.json.payload"),
            nulls=config.text("table.json.payload.null.behavior") == "optional_bytes",
            route_by=config.text("route.by.field"),
            topic=topic,
            tombstones=config.flag("route.tombstone.on.empty.payload"),
            adjustment=config.text("field.name.adjustment.mode"),
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
