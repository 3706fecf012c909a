"""ToLogicalTopicRouter, formerly ByLogicalTableRouter: routes several tables into one topic.

Their keys are distinguished by one more field, which has another name in the former one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailrace.config.kinds import FLAG, PATTERN, TEXT, optional
from tailrace.config.topics import adjusted
from tailrace.errors import TransformError
from tailrace.events.records import RecordPart, Records, by_topic, struct
from tailrace.javalike.patterns import Rewrite
from tailrace.model.arrow import repeat
from tailrace.model.schema import STRING, ConnectSchema
from tailrace.transforms.settings import Given, either, setting

_FIELD_NAME = "key.field.name"
OPTIONS = (
    _TOPIC_REGEX := setting("topic.regex", PATTERN, required=True),
    _TOPIC_REPLACEMENT := setting("topic.replacement", TEXT, required=True),
    _KEY_ENFORCE_UNIQUENESS := setting("key.enforce.uniqueness", FLAG, "true"),
    _KEY_FIELD_REGEX := setting("key.field.regex", optional(PATTERN)),
    _KEY_FIELD_NAME := setting(_FIELD_NAME, TEXT, "__dbz__sourceIdentifier"),
    _KEY_FIELD_REPLACEMENT := setting("key.field.replacement", optional(TEXT)),
    _SCHEMA_NAME_ADJUSTMENT_MODE := setting(
        "schema.name.adjustment.mode", either("none", "avro", "avro_unicode"), "none"
    ),
    # How much the reference remembers; nothing depends on it here.
    *(setting(f"logical.{each}.cache.size", optional(TEXT)) for each in ("table", "destination")),
)


@dataclass(frozen=True)
class ToLogicalTopicRouter:
    """Renames the topic and with it the schemas of key, row and envelope; a topic that does not match stays."""

    topic: Rewrite
    unique: bool
    field: str
    identifier: Rewrite | None
    adjustment: str

    @staticmethod
    def by_table(given: Given) -> ToLogicalTopicRouter:
        """From the settings of ByLogicalTableRouter. Raises SettingsError."""
        return ToLogicalTopicRouter.of(
            replace(given, values={_FIELD_NAME: "__dbz__physicalTableIdentifier", **given.values})
        )

    @staticmethod
    def of(given: Given) -> ToLogicalTopicRouter:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        expression = (config[_KEY_FIELD_REGEX] or "").strip()
        replacement = config[_KEY_FIELD_REPLACEMENT] or ""
        if expression and not replacement.strip():
            message = "key.field.replacement must be non-empty if key.field.regex is set."
            raise given.problem("key.field.replacement", message)
        try:
            return ToLogicalTopicRouter(
                Rewrite.of(config[_TOPIC_REGEX], config[_TOPIC_REPLACEMENT]),
                config[_KEY_ENFORCE_UNIQUENESS],
                config[_KEY_FIELD_NAME],
                Rewrite.of(expression, replacement) if expression else None,
                config[_SCHEMA_NAME_ADJUSTMENT_MODE],
            )
        except ValueError as error:
            raise given.problem("topic.replacement", str(error)) from error

    def apply(self, records: Records) -> list[Records]:
        """The records, those of each topic by themselves."""
        out = []
        for old, group in by_topic(records):
            new = self.topic(old)
            out.append(self._routed(group, old, new) if new else group)
        return out

    def _routed(self, records: Records, old: str, new: str) -> Records:
        key = None if records.key is None else self._key(records.key, old, new)
        value = records.value
        if value is not None and value.is_envelope:
            fields = [
                (name, self._row(part, new) if name in ("before", "after") else part) for name, part in value.fields()
            ]
            value = struct(value.schema.with_(name=self._name(f"{new}.Envelope")), fields, len(records))
        return records.with_(topic=repeat(new, len(records)), key=key, value=value)

    def _key(self, key: RecordPart, old: str, new: str) -> RecordPart:
        if key.schema.type != "struct":
            raise TransformError(f"the key is {key.schema.type}, not a struct", where=f"topic {old}")
        fields, rows = key.fields(), len(key.values)
        if self.unique:
            identifier = old if self.identifier is None else self.identifier(old)
            fields.append((self.field, RecordPart(STRING, repeat(old if identifier is None else identifier, rows))))
        return struct(_renamed(key.schema, self._name(f"{new}.Key")), fields, rows)

    def _row(self, row: RecordPart, new: str) -> RecordPart:
        return RecordPart(_renamed(row.schema, self._name(f"{new}.Value")), row.values)

    def _name(self, name: str) -> str:
        return adjusted(name, self.adjustment, dots=True)


def _renamed(schema: ConnectSchema, name: str) -> ConnectSchema:
    return schema.with_(name=name, default=None)
