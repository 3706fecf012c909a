"""The outbox event router: converts rows of an outbox table to messages on their own topics."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.faults import Fault
from tailrace.errors import TransformError
from tailrace.events.payload import array
from tailrace.events.records import Bools, Header, RecordPart, Records, by_topic, struct
from tailrace.model.arrow import flags, literal
from tailrace.model.change import DELETE, UPDATE
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.expand import Expander, read
from tailrace.transforms.fields import with_default
from tailrace.transforms.outbox_settings import OutboxSettings
from tailrace.transforms.route import renamed
from tailrace.transforms.settings import Given
from tailrace.transforms.transform import ByValues, require, texts

log = logging.getLogger(__name__)

_WHERE = "outbox EventRouter"
_TO_MILLIS = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}
_LATEST = (2**63 - 1) // 1000  # milliseconds that are microseconds in 64 bits
_JAVAS_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
_SKIPPED = {DELETE, UPDATE}


@dataclass(frozen=True)
class EventRouter(ByValues):
    """Inserted rows become messages; deletes and tombstones are dropped, as are updates, with a word in the log.

    Works on columns, but expands JSON document by document and splits records by the schema of their payload.
    `keeps_names`: a schema of values is named by the first event whose payload had it, or its version, as the reference
    remembers it (EventRouterDelegate.getValueSchema); those names are kept in `names`.
    """

    settings: OutboxSettings
    keeps_names: bool = False
    names: dict[Hashable, str] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(given: Given) -> EventRouter:
        """From the transform's settings. Raises SettingsError."""
        return EventRouter(OutboxSettings.of(given), Fault.FIRST_PAYLOAD_NAMES in given.faults)

    def apply(self, records: Records) -> list[Records]:
        """The messages; records that are no change events pass."""
        events, _ = records.with_value()
        if not len(events):
            return []
        if events.value is None or not events.value.is_envelope:
            return [events]
        op = texts(require(events.value, "op", _WHERE), "op")
        self._tell(op)
        events, _ = events.split(~flags(pc.is_in(op, pa.array(sorted(_SKIPPED), pa.string()))))
        if not len(events):
            return []
        assert events.value is not None
        if events.value.field("after").values.null_count:
            raise TransformError("an event without a row, such as a truncate", where=_WHERE)
        groups = [pair for group in self._routed(events) for pair in self._expanded(group)]
        groups.sort(key=lambda pair: int(pair[0].order[0]))
        return [message for each, payload in groups for message in self._messages(each, payload)]

    def _tell(self, op: pa.Array) -> None:
        if not flags(pc.equal(op, literal(UPDATE))).any():
            return
        what = "an update of the outbox table, which takes inserts and deletes only"
        if self.settings.invalid == "fatal":
            remedy = "Insert rows only, or set table.op.invalid.behavior to warn."
            raise TransformError(what, where=_WHERE, remedy=remedy)
        log.log(logging.WARNING if self.settings.invalid == "warn" else logging.ERROR, "%s: ignored", what)

    def _routed(self, records: Records) -> list[Records]:
        """The records with the value of `route.by.field` as their topic; those of one value under one schema."""
        topics = texts(_column(_row(records), self.settings.route_by), self.settings.route_by)
        if topics.null_count:
            raise TransformError("there is a row without a value", where=f"{_WHERE}: {self.settings.route_by}")
        groups = [group for _, group in by_topic(records.with_(topic=topics))]
        return [each for group in groups for each in self._by_version(group)]

    def _by_version(self, records: Records) -> list[Records]:
        if self.settings.version is None or self._bare:
            return [records]
        versions = _column(_row(records), self.settings.version).values.to_pylist()
        distinct = list(dict.fromkeys(versions))
        codes = np.array([distinct.index(each) for each in versions], np.int64)
        return [records.take(np.flatnonzero(codes == code)) for code in range(len(distinct))]

    @property
    def _bare(self) -> bool:
        """Whether the payload is the whole value."""
        return all(each.place != "envelope" for each in self.settings.additional)

    def _expanded(self, records: Records) -> Iterable[tuple[Records, RecordPart]]:
        """The records by the schemas of their payloads, with the payloads."""
        payload = _column(_row(records), self.settings.payload)
        if not self.settings.expand or payload.schema.type != "string":
            yield records, payload
            return
        expander = Expander(self.settings.nulls, self.settings.adjustment, self.settings.empty)
        groups: dict[ConnectSchema, tuple[list[int], list[Any]]] = {}
        for place, text in enumerate(payload.values.to_pylist()):
            schema, value = _expand(text, payload.schema, self.settings.payload, expander)
            places, values = groups.setdefault(schema, ([], []))
            places.append(place)
            values.append(value)
        for schema, (places, values) in groups.items():
            yield records.take(np.array(places, np.int64)), RecordPart(schema, array(values, schema))

    def _messages(self, records: Records, payload: RecordPart) -> list[Records]:
        """The messages; those with an empty payload are tombstones if configured."""
        message = self._message(records, payload)
        if not self.settings.tombstones:
            return [message]
        empty, others = message.split(_empty(payload))
        return [empty.with_(value=None), others]

    def _message(self, records: Records, payload: RecordPart) -> Records:
        row, settings = _row(records), self.settings
        envelope = [(each.name, each.field) for each in settings.additional if each.place == "envelope"]
        value: RecordPart | None = payload
        if not self._bare:
            fields = [("payload", payload)]
            fields += [(name, _column(row, field)) for name, field in envelope if self._has_field(row, field)]
            version = self._version(row)
            name = self._name(row, records, payload.schema if version is None else version)
            value = struct(ConnectSchema("struct", name=name, version=version), fields, len(records))
        partition = pa.nulls(len(records), pa.int32())
        headers = [Header("id", _column(row, settings.id))]
        for each in settings.additional:
            if each.place == "envelope" or not self._has_field(row, each.field):
                continue
            part = _column(row, each.field)
            if each.place == "header":
                headers.append(Header(each.name, part))
            else:
                partition = part.values.cast(pa.int32())
        return records.with_(
            topic=renamed(records.topic, lambda topic: settings.topic(topic) or topic),
            partition=partition,
            timestamp=self._timestamps(records, row),
            timed=True,
            key=None if settings.key is None else _column(row, settings.key),
            value=value,
            headers=records.headers + tuple(headers),
        )

    def _name(self, row: RecordPart, records: Records, like: Hashable) -> str:
        own = _schema_name(row.schema.name, records.topic[0].as_py())
        return self.names.setdefault(like, own) if self.keeps_names else own

    def _has_field(self, row: RecordPart, field: str) -> bool:
        return row.has(field) or not self.settings.ignore_missing

    def _version(self, row: RecordPart) -> int | None:
        if self.settings.version is None:
            return None
        version = _column(row, self.settings.version).values[0].as_py()
        return None if version is None else int(version)

    def _timestamps(self, records: Records, row: RecordPart) -> pa.Array:
        """Whole milliseconds, cut towards zero; null where the time is beyond what a record's can be."""
        assert records.value is not None
        millis = require(records.value, "ts_ms", _WHERE).values
        if self.settings.timestamp is not None:
            part = require(row, self.settings.timestamp, _WHERE)
            if part.schema.name not in _TO_MILLIS:
                raise TransformError(
                    f"Unsupported field type {part.schema.name or part.schema.type} for event timestamp",
                    where=f"{_WHERE}: {self.settings.timestamp}",
                )
            millis = pc.coalesce(pc.divide(part.values, pa.scalar(_TO_MILLIS[part.schema.name], pa.int64())), millis)
        fits = pc.and_(pc.less_equal(millis, _LATEST), pc.greater_equal(millis, -_LATEST))
        if not flags(fits).all():
            log.warning("%s: %s: times beyond year 294247 are left out", _WHERE, self.settings.timestamp)
        in_range = pc.if_else(fits, millis, pa.scalar(None, pa.int64()))
        return pc.multiply(in_range, pa.scalar(1000, pa.int64())).cast(records.timestamp.type)


def _row(records: Records) -> RecordPart:
    assert records.value is not None
    return records.value.field("after")


def _column(row: RecordPart, name: str) -> RecordPart:
    return with_default(require(row, name, _WHERE))


def _expand(text: str | None, schema: ConnectSchema, name: str, expander: Expander) -> tuple[ConnectSchema, Any]:
    """The schema and value of a document; those it came with where it is none."""
    if text is None:
        return schema, None
    try:
        node = read(text)
        inferred = expander.schema(name, node)
        if inferred is None or inferred.type != "struct":
            raise ValueError("the document is an array")
        return inferred, expander.value(node, inferred)
    except ValueError as error:
        log.warning("JSON expansion failed: %s", error)
        return schema, text


def _empty(payload: RecordPart) -> Bools:
    """Which payloads are null, or blank for Java's `trim`: it knows no blanks beyond ASCII."""
    if payload.schema.type != "string":
        return flags(payload.values.is_null())
    return flags(pc.equal(pc.utf8_trim(payload.values, _JAVAS_BLANKS), literal("")).fill_null(True))


def _schema_name(row: str | None, topic: str) -> str:
    """The row schema's name with the routed value before its last part."""
    if row is None:
        return topic
    head, dot, last = row.rpartition(".")
    return f"{head}{dot}{topic}.{last}"
