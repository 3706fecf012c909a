"""ExtractNewRecordState: replaces the envelope by the row, with configurable deletes and metadata."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.kinds import FLAG, NAMES, TEXT, optional
from tailrace.config.option import Option
from tailrace.errors import TransformError
from tailrace.events.records import Header, RecordPart, Records, struct
from tailrace.model.arrow import flags, literal, repeat
from tailrace.model.schema import OPTIONAL_STRING, STRING
from tailrace.transforms.fields import excluding, with_default
from tailrace.transforms.settings import Given, either, setting
from tailrace.transforms.transform import require, texts

DROP, TOMBSTONE, REWRITE = "drop", "tombstone", "rewrite"
REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE = "rewrite-with-tombstone", "delete-to-tombstone"

OPTIONS = (
    _DELETE_TOMBSTONE_HANDLING_MODE := setting(
        "delete.tombstone.handling.mode",
        either(DROP, TOMBSTONE, REWRITE, REWRITE_WITH_TOMBSTONE, DELETE_TO_TOMBSTONE),
        TOMBSTONE,
    ),
    _ROUTE_BY_FIELD := setting("route.by.field", TEXT, ""),
    _ADD_FIELDS_PREFIX := setting("add.fields.prefix", TEXT, "__"),
    _ADD_FIELDS := setting("add.fields", NAMES),
    _ADD_HEADERS_PREFIX := setting("add.headers.prefix", TEXT, "__"),
    _ADD_HEADERS := setting("add.headers", NAMES),
    _REPLACE_NULL_WITH_DEFAULT := setting("replace.null.with.default", FLAG, "true"),
    _DROP_FIELDS_HEADER_NAME := setting("drop.fields.header.name", optional(TEXT)),
    _DROP_FIELDS_FROM_KEY := setting("drop.fields.from.key", FLAG, "false"),
    _DROP_FIELDS_KEEP_SCHEMA_COMPATIBLE := setting("drop.fields.keep.schema.compatible", FLAG, "true"),
    # Of versions before 3.0; the mode above wins.
    _DROP_TOMBSTONES := setting("drop.tombstones", optional(FLAG)),
    _DELETE_HANDLING_MODE := setting("delete.handling.mode", optional(either("drop", "rewrite", "none"))),
)
# What `delete.handling.mode` and `drop.tombstones` meant together.
_OLD = {
    ("drop", True): DROP,
    ("drop", False): DELETE_TO_TOMBSTONE,
    ("rewrite", True): REWRITE,
    ("rewrite", False): REWRITE_WITH_TOMBSTONE,
    ("none", True): TOMBSTONE,
}
_OF_TRANSACTION = ("id", "data_collection_order", "total_order")
_OF_EVENT = ("op", "ts_ms", "ts_us", "ts_ns")


@dataclass(frozen=True)
class Reference:
    """A field of the envelope, of `struct` or of the envelope itself, and the name under which it is added.

    With `lacks_fields` the schema of a struct has no fields, as in the reference, which then takes only null.
    """

    struct: str | None
    field: str
    name: str
    lacks_fields: bool = False

    @staticmethod
    def of(text: str, prefix: str) -> Reference:
        """From `field`, `struct.field`, each with `:new name` or without. Raises ValueError."""
        path, *renamed = text.split(":")
        if len(renamed) > 1:
            raise ValueError(f"Unexpected field name: {text}")
        first, *rest = path.split(".")
        if rest:
            return Reference(first, rest[0], prefix + (renamed[0] if renamed else f"{first}_{rest[0]}"))
        owner = "transaction" if first in _OF_TRANSACTION else None if first in _OF_EVENT else "source"
        if first == "updateDescription":
            owner = first
        return Reference(owner, first, prefix + (renamed[0] if renamed else first))

    def of_envelope(self, envelope: RecordPart) -> RecordPart | None:
        """The optional field that is added; None where the events have no such field."""
        if self.struct is not None and not envelope.has(self.struct):
            raise TransformError(f"events have no {self.struct!r}", where=f"{self.struct}.{self.field}")
        owner = envelope if self.struct is None else envelope.field(self.struct)
        if owner.schema.type != "struct" or not owner.has(self.field):
            owner = envelope
        if not owner.has(self.field):
            return None
        part = owner.field(self.field)
        schema = part.schema.with_(optional=True, default=None)
        if self.lacks_fields and schema.type == "struct" and part.values.null_count == len(part.values):
            return RecordPart(schema.with_(fields=()), pa.nulls(len(part.values), pa.struct([])))
        return RecordPart(schema, part.values)


@dataclass(frozen=True)
class ExtractNewRecordState:
    """Debezium's `unwrap`. Columns are moved, not values."""

    mode: str
    fields: tuple[Reference, ...] = ()
    headers: tuple[Reference, ...] = ()
    route_by: str | None = None
    _: KW_ONLY
    fill: bool = True
    drop_header: str | None = None
    drop_from_key: bool = False
    keep_compatible: bool = True

    @staticmethod
    def of(given: Given) -> ExtractNewRecordState:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        fields = _references(given, config, _ADD_FIELDS, _ADD_FIELDS_PREFIX)
        if len({each.name for each in fields}) < len(fields):
            raise given.problem("add.fields", "two fields get one name", "give one of them another: field:name")
        return ExtractNewRecordState(
            _mode(given, config),
            fields,
            _references(given, config, _ADD_HEADERS, _ADD_HEADERS_PREFIX),
            route_by=config[_ROUTE_BY_FIELD] or None,
            fill=config[_REPLACE_NULL_WITH_DEFAULT],
            drop_header=config[_DROP_FIELDS_HEADER_NAME] or None,
            drop_from_key=config[_DROP_FIELDS_FROM_KEY],
            keep_compatible=config[_DROP_FIELDS_KEEP_SCHEMA_COMPATIBLE],
        )

    def added(self, records: Records) -> tuple[Header, ...]:
        """`add.headers` of change events."""
        if records.value is None or not records.value.is_envelope:
            return ()
        envelope = records.value
        parts = [(each.name, each.of_envelope(envelope)) for each in self.headers]
        return tuple(Header(name, part) for name, part in parts if part is not None)

    def apply(self, records: Records) -> list[Records]:
        """Rows of creates, updates and reads; deletes and tombstones by the mode; no truncates; others as they are."""
        events, nulls = records.with_value()
        return [*self._tombstones(nulls), *(self._events(events) if len(events) else [])]

    def _tombstones(self, records: Records) -> list[Records]:
        if not len(records) or self.mode != REWRITE_WITH_TOMBSTONE:
            return []
        return [self.as_tombstones(records)]

    def as_tombstones(self, records: Records) -> Records:
        """Tombstones with the header of their operation, if configured."""
        return records.adding(*(Header.of(each.name, STRING, "d") for each in self.headers if each.field == "op"))

    def _events(self, records: Records) -> list[Records]:
        if records.value is None or not records.value.is_envelope:
            return [records]
        after = require(records.value, "after", "ExtractNewRecordState").values
        before = records.value.field("before").values if records.value.has("before") else pa.nulls(len(records))
        new = flags(after.is_valid())
        gone = flags(before.is_valid()) & ~new
        changed, _ = records.split(new)
        deleted, _ = records.split(gone)
        out = [self._changed(changed)] if len(changed) else []
        if len(deleted) and self.mode != DROP:
            out.append(self._deleted(deleted))
        return [each for group in out for each in self._without_dropped(group)]

    def _changed(self, records: Records) -> Records:
        assert records.value is not None
        row = records.value.field("after")
        return records.with_(value=self._row(records.value, row, "false"), topic=self._topic(records, row))

    def _deleted(self, records: Records) -> Records:
        assert records.value is not None
        envelope = records.value
        topic = self._topic(records, envelope.field("before")) if self.route_by else records.topic
        if self.mode == TOMBSTONE:
            return records.with_(value=envelope.field("after"), topic=topic)
        if self.mode == DELETE_TO_TOMBSTONE:
            return records.with_(value=None, topic=topic)
        return records.with_(value=self._row(envelope, envelope.field("before"), "true"), topic=topic)

    def _row(self, envelope: RecordPart, row: RecordPart, deleted: str) -> RecordPart:
        fields = row.fields()
        if self.mode in (REWRITE, REWRITE_WITH_TOMBSTONE):
            fields = [(name, with_default(part) if self.fill else part) for name, part in fields]
            fields.append(("__deleted", RecordPart(OPTIONAL_STRING, repeat(deleted, len(row.values)))))
        for each in self.fields:
            part = each.of_envelope(envelope)
            if part is not None:
                fields.append((each.name, part))
        return struct(row.schema.with_(optional=False, default=None), fields, len(row.values))

    def _topic(self, records: Records, row: RecordPart) -> pa.Array:
        if self.route_by is None:
            return records.topic
        values = texts(require(row, self.route_by, "route.by.field"), "route.by.field")
        blank = flags(pc.equal(pc.utf8_trim_whitespace(values), literal("")).fill_null(True))
        return pc.if_else(pa.array(blank, pa.bool_()), records.topic, values)

    def _without_dropped(self, records: Records) -> list[Records]:
        """The records without the fields that the header of each names."""
        header = None if self.drop_header is None else records.header(self.drop_header)
        if header is None:
            return [records]
        part, present = header.on(len(records)), header.where(len(records))
        names = [
            tuple(each or ()) if is_present else ()
            for each, is_present in zip(part.values.to_pylist(), present, strict=True)
        ]
        kinds = {each: index for index, each in enumerate(dict.fromkeys(names))}
        codes = np.array([kinds[each] for each in names], np.int64)
        return [self._dropping(records.take(np.flatnonzero(codes == code)), each) for each, code in kinds.items()]

    def _dropping(self, records: Records, names: tuple[str, ...]) -> Records:
        if not names:
            return records
        key = self._without(records.key, names) if self.drop_from_key else records.key
        return records.with_(key=key, value=self._without(records.value, names))

    def _without(self, part: RecordPart | None, names: tuple[str, ...]) -> RecordPart | None:
        if part is None:
            return None
        dropped = {
            name for name in names if not self.keep_compatible or (part.has(name) and part.field(name).schema.optional)
        }
        return excluding(part, dropped) if dropped else part


def _references(
    given: Given, config: Config, added: Option[tuple[str, ...]], prefix: Option[str]
) -> tuple[Reference, ...]:
    try:
        references = [Reference.of(text, config[prefix]) for text in config[added]]
        lacks_fields = Fault.EMPTY_STRUCTS in given.faults
        return tuple(replace(each, lacks_fields=lacks_fields) for each in references)
    except ValueError as error:
        raise given.problem(added.name, str(error), "write field, struct.field or struct.field:name") from error


def _mode(given: Given, config: Config) -> str:
    """The mode, also from the two settings it replaced."""
    deletes, drops = config[_DELETE_HANDLING_MODE], config[_DROP_TOMBSTONES]
    named = any(name.lower() == _DELETE_TOMBSTONE_HANDLING_MODE.name for name in given.values)
    if named or (deletes is None and drops is None):
        return config[_DELETE_TOMBSTONE_HANDLING_MODE]
    old = (deletes or "drop", drops is not False)
    if old not in _OLD:
        raise given.problem(
            "delete.handling.mode",
            "none with drop.tombstones=false has no equal",
            "set delete.tombstone.handling.mode instead",
        )
    return _OLD[old]
