"""MongoEventRouter: the outbox event router for documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailrace.config.kinds import FLAG, TEXT, optional
from tailrace.events.payload import array
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.change import DELETE, UPDATE
from tailrace.model.schema import ConnectSchema, Field
from tailrace.transforms.mongodb.documents import DocumentConverter, parse
from tailrace.transforms.mongodb.indented import indented
from tailrace.transforms.outbox import EventRouter
from tailrace.transforms.outbox_settings import OPTIONS
from tailrace.transforms.settings import Given, setting
from tailrace.transforms.transform import ByValues

# The router's own names for settings that begin with `collection.` here; others have the same name.
_NAMES: Mapping[str, str] = {
    "collection.field.event.id": "table.field.event.id",
    "collection.field.event.key": "table.field.event.key",
    "collection.field.event.type": "table.field.event.type",
    "collection.field.event.timestamp": "table.field.event.timestamp",
    "collection.field.event.payload": "table.field.event.payload",
    "collection.field.event.schema.version": "table.field.event.schema.version",
    "collection.fields.additional.placement": "table.fields.additional.placement",
    "collection.field.additional.missing": "table.field.additional.missing",
    "collection.op.invalid.behavior": "table.op.invalid.behavior",
}
_OWN = (
    _COLLECTION_EXPAND_JSON_PAYLOAD := setting("collection.expand.json.payload", FLAG, "false"),
    _COLLECTION_FIELD_EVENT_PAYLOAD := setting("collection.field.event.payload", TEXT, "payload"),
    _COLLECTION_FIELD_EVENT_TIMESTAMP := setting("collection.field.event.timestamp", optional(TEXT)),
)
_TIMESTAMP = ConnectSchema("int64", name="io.debezium.time.Timestamp", version=1)
_PRIVATE = ("collection.expand.json.payload",)
_ALL = (
    *_OWN,
    *(setting(name, optional(TEXT)) for name in _NAMES if name not in {each.name for each in _OWN}),
    *(each for each in OPTIONS if each.name not in _NAMES.values()),
)


@dataclass(frozen=True)
class MongoEventRouter(ByValues):
    """Inserted documents become messages. Their `after` becomes a struct, then the router of tables does the rest."""

    router: EventRouter
    payload: str
    timestamp: str | None
    expand: bool

    @staticmethod
    def of(given: Given) -> MongoEventRouter:
        """From the transform's settings. Raises SettingsError."""
        low = {name.lower(): text for name, text in given.values.items()}
        own = Given(given.prefix, {name: text for name, text in low.items() if name not in _NAMES.values()}).read(_ALL)
        values = {_NAMES.get(name, name): text for name, text in low.items() if name not in _PRIVATE}
        router = EventRouter.of(Given(given.prefix, {"table.field.event.id": "_id", **values}, given.faults))
        return MongoEventRouter(
            router,
            own[_COLLECTION_FIELD_EVENT_PAYLOAD],
            own[_COLLECTION_FIELD_EVENT_TIMESTAMP] or None,
            own[_COLLECTION_EXPAND_JSON_PAYLOAD],
        )

    def apply(self, records: Records) -> list[Records]:
        """The messages."""
        events, others = records.with_value()
        if not len(events) or events.value is None or not events.value.is_envelope:
            return self.router.apply(records)
        out = self.router.apply(others) if len(others) else []
        for group in self._expanded(events):
            out += self.router.apply(group)
        return out

    def _expanded(self, records: Records) -> list[Records]:
        """The records with `after` as a struct, by its schema; deletions have none, and are dropped by the router."""
        assert records.value is not None
        ops = records.value.field("op").values.to_pylist()
        texts = records.value.field("after").values.to_pylist()
        name = records.value.field("after").schema.name
        groups: dict[ConnectSchema, tuple[list[int], list[Any]]] = {}
        unchanged = []
        for place, (op, text) in enumerate(zip(ops, texts, strict=True)):
            if text is None or op in (DELETE, UPDATE):
                unchanged.append(place)
                continue
            schema, value = self._document(text, name)
            places, values = groups.setdefault(schema, ([], []))
            places.append(place)
            values.append(value)
        out = [records.take(np.array(unchanged, np.int64))] if unchanged else []
        for schema, (places, values) in groups.items():
            group = records.take(np.array(places, np.int64))
            assert group.value is not None
            fields = [(each, part) for each, part in group.value.fields() if each != "after"]
            after = RecordPart(schema, array(values, schema))
            value = struct(group.value.schema, [*fields, ("after", after)], len(group))
            out.append(group.with_(value=value))
        return out

    def _document(self, text: str, name: str | None) -> tuple[ConnectSchema, Any]:
        converter, document = DocumentConverter(), parse(text)
        payload = None if self.expand else indented(text, self.payload)
        if payload is not None:
            document = {**document, self.payload: payload}
        schema = converter.struct(document, name)
        if self.timestamp is not None:
            fields = tuple(Field(f.name, _TIMESTAMP) if f.name == self.timestamp else f for f in schema.fields)
            schema = schema.with_(fields=fields)
        return schema, converter.value(document, schema)
