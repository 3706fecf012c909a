"""ExtractNewDocumentState: replaces the envelope by the document, as a struct with an inferred schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailrace.config.kinds import FLAG, TEXT
from tailrace.config.topics import adjusted
from tailrace.errors import TransformError
from tailrace.events.payload import array
from tailrace.events.records import ENVELOPE, Header, RecordPart, Records, struct
from tailrace.model.change import UPDATE_DESCRIPTION
from tailrace.model.schema import ConnectSchema
from tailrace.transforms import unwrap
from tailrace.transforms.mongodb.documents import Document, DocumentConverter, parse
from tailrace.transforms.settings import Given, either, setting
from tailrace.transforms.structure import Flatten
from tailrace.transforms.transform import ByValues, require
from tailrace.transforms.unwrap import DROP, REWRITE, REWRITE_WITH_TOMBSTONE

_WHERE = "ExtractNewDocumentState"
_DELETED = "__deleted"
_OWN = (
    _ARRAY_ENCODING := setting("array.encoding", either("array", "document"), "array"),
    _FLATTEN_STRUCT := setting("flatten.struct", FLAG, "false"),
    _FLATTEN_STRUCT_DELIMITER := setting("flatten.struct.delimiter", TEXT, "_"),
    _DELETE_TOMBSTONE_HANDLING_MODE_REWRITE_WITH_ID := setting(
        "delete.tombstone.handling.mode.rewrite-with-id", FLAG, "false"
    ),
    _FIELD_NAME_ADJUSTMENT_MODE := setting(
        "field.name.adjustment.mode", either("none", "avro", "avro_unicode"), "none"
    ),
)
_NAMES = frozenset(option.name for option in _OWN)


@dataclass(frozen=True)
class ExtractNewDocumentState(ByValues):
    """Debezium's `unwrap` for documents. Records are split by the schemas of their keys and documents."""

    rows: unwrap.ExtractNewRecordState
    converter: DocumentConverter
    delimiter: str | None
    with_id: bool

    @staticmethod
    def of(given: Given) -> ExtractNewDocumentState:
        """From the transform's settings. Raises SettingsError."""
        config = given.read((*unwrap.OPTIONS, *_OWN))
        others = {name: text for name, text in given.values.items() if name.lower() not in _NAMES}
        as_documents = config[_ARRAY_ENCODING] == "document"
        converter = DocumentConverter(as_documents, config[_FIELD_NAME_ADJUSTMENT_MODE])
        delimiter = config[_FLATTEN_STRUCT_DELIMITER] if config[_FLATTEN_STRUCT] else None
        with_id = config[_DELETE_TOMBSTONE_HANDLING_MODE_REWRITE_WITH_ID]
        rows = unwrap.ExtractNewRecordState.of(replace(given, values=others))
        return ExtractNewDocumentState(rows, converter, delimiter, with_id)

    def added(self, records: Records) -> tuple[Header, ...]:
        """`add.headers` of change events."""
        return self.rows.added(records)

    def apply(self, records: Records) -> list[Records]:
        """The documents; deletes and tombstones by the mode; records that are no change events pass."""
        events, nulls = records.with_value()
        out = self._keyed(nulls) if len(nulls) and self.rows.mode == REWRITE_WITH_TOMBSTONE else []
        if not len(events):
            return out
        if events.value is None or not events.value.is_envelope:
            return [*out, events]
        return [*out, *self._events(events)]

    def _keyed(self, records: Records) -> list[Records]:
        """Records without a value, by the schemas of their keys."""
        records = self.rows.as_tombstones(records)
        keys = [_key(text) for text in _ids(records)]
        groups = _groups([self.converter.struct(key, None) for key in keys])
        return [self._with_key(records, keys, schema, places).with_(value=None) for schema, places in groups]

    def _events(self, records: Records) -> list[Records]:
        assert records.value is not None
        envelope = records.value
        documents = self._documents(envelope, _ids(records))
        keys = [_key(text) for text in _ids(records)]
        name = _schema_name(envelope.schema.name or "", self.converter.adjustment)
        schemas = [
            (self.converter.struct(key, None), self._schema(document, name))
            for key, document in zip(keys, documents, strict=True)
        ]
        out = []
        for (key, schema), places in _groups(schemas):
            if schema is None and self.rows.mode == DROP:
                places = [place for place in places if documents[place] is not None]
            if not places:
                continue
            group = self._with_key(records, keys, key, places)
            if schema is None:
                out.append(group.with_(value=None))
                continue
            values = array([self.converter.value(documents[place], schema) for place in places], schema)
            out.append(self._flat(group.with_(value=self._adding(group, RecordPart(schema, values), schema))))
        return out

    def _schema(self, document: Document | None, name: str) -> ConnectSchema | None:
        """The schema of a document; None where the record has no value."""
        return None if document is None else self.converter.struct(document, name)

    def _with_key(self, records: Records, keys: list[Document], schema: ConnectSchema, places: list[int]) -> Records:
        values = [self.converter.value(keys[place], schema) for place in places]
        return records.take(np.array(places, np.int64)).with_(key=RecordPart(schema, array(values, schema)))

    def _documents(self, envelope: RecordPart, ids: list[str]) -> list[Document | None]:
        """What each event is replaced by; None for a deletion that has no value."""
        after = require(envelope, "after", _WHERE).values.to_pylist()
        before, changes = (
            envelope.field(name).values.to_pylist() if envelope.has(name) else [None] * len(after)
            for name in ("before", UPDATE_DESCRIPTION)
        )
        documents: list[Document | None] = []
        for old, text, change, id_ in zip(before, after, changes, ids, strict=True):
            if text is not None:
                document = _parsed(text)
            elif change is not None:
                document = self._partial(change, id_)
            elif self.rows.mode in (REWRITE, REWRITE_WITH_TOMBSTONE):
                document = {} if old is None else _parsed(old)
            else:
                documents.append(None)
                continue
            if self.rows.mode in (REWRITE, REWRITE_WITH_TOMBSTONE):
                document[_DELETED] = text is None and change is None
                if self.with_id and "_id" not in document:
                    document["_id"] = parse(id_)
            documents.append(document)
        return documents

    def _partial(self, change: dict[str, Any], id_: str) -> Document:
        """What an update without the whole document tells of it."""
        document = _parsed(change["updatedFields"]) if change["updatedFields"] else {}
        for name in change.get("removedFields") or ():
            document.pop(name, None)
        document.setdefault("_id", parse(id_))
        if self.delimiter is not None:
            return {name.replace(".", self.delimiter): value for name, value in document.items()}
        return document

    def _adding(self, records: Records, part: RecordPart, schema: ConnectSchema) -> RecordPart:
        """The document with `add.fields`."""
        assert records.value is not None
        fields = part.fields()
        for each in self.rows.fields:
            added = each.of_envelope(records.value)
            if added is not None:
                fields.append((each.name, added))
        return struct(schema, fields, len(records))

    def _flat(self, records: Records) -> Records:
        if self.delimiter is None or records.value is None:
            return records
        flatten = Flatten(Given("", {"delimiter": self.delimiter}), key=False)
        return records.with_(value=flatten.of_part(records.value, records))


def _groups(schemas: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """The places of equal schemas."""
    groups: dict[Any, list[int]] = {}
    for place, schema in enumerate(schemas):
        groups.setdefault(schema, []).append(place)
    return list(groups.items())


def _ids(records: Records) -> list[str]:
    """The texts of the keys."""
    if records.key is None:
        raise TransformError("a record has no key", where=_WHERE)
    return [str(text) for text in require(records.key, "id", _WHERE).values.to_pylist()]


def _key(text: str) -> Document:
    return {"id": parse(text)}


def _parsed(text: str) -> Document:
    document: Document = parse(text)
    return document


def _schema_name(envelope: str, adjustment: str) -> str:
    """The name of the document's schema; each part of it is adjusted by itself."""
    name = re.sub(f"{re.escape(ENVELOPE)}$", "", envelope)
    return ".".join(adjusted(part, adjustment, dots=True) for part in name.split("."))
