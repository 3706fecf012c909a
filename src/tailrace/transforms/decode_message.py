"""DecodeLogicalDecodingMessageContent: converts a logical message's JSON to the row of a create event."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailrace.config.kinds import FLAG
from tailrace.errors import TransformError
from tailrace.events.payload import array
from tailrace.events.records import RecordPart, Records, struct
from tailrace.model.arrow import repeat
from tailrace.model.change import CREATE
from tailrace.model.schema import ConnectSchema
from tailrace.transforms.expand import Expander, read
from tailrace.transforms.settings import Given, setting
from tailrace.transforms.transform import require

OPTIONS = (_FIELDS_NULL_INCLUDE := setting("fields.null.include", FLAG, "false"),)

# Debezium's connectors have a package each, and name the schema of their messages alike.
_MESSAGE = re.compile(r"io\.debezium\.connector\.\w+\.MessageValue")
_WHERE = "DecodeLogicalDecodingMessageContent"


@dataclass(frozen=True)
class DecodeMessageContent:
    """Gives messages an `after` in place of `message` and takes their key. Works message by message."""

    expander: Expander

    @staticmethod
    def of(given: Given) -> DecodeMessageContent:
        """From the transform's settings. Raises SettingsError."""
        return DecodeMessageContent(Expander(given.read(OPTIONS)[_FIELDS_NULL_INCLUDE]))

    def apply(self, records: Records) -> list[Records]:
        """Messages by the schemas of their content; other records as they are."""
        value = records.value
        if value is None or not _MESSAGE.fullmatch(value.schema.name or "") or not len(records):
            return [records]
        content = require(require(value, "message", _WHERE), "content", _WHERE)
        if content.schema.type != "bytes":
            raise TransformError("The content of a logical decoding message is non-binary", where=_WHERE)
        return [self._decoded(records.take(places), after) for places, after in self._rows(content)]

    def _rows(self, content: RecordPart) -> Iterable[tuple[np.ndarray[Any, np.dtype[np.int64]], RecordPart]]:
        groups: dict[ConnectSchema, tuple[list[int], list[Any]]] = {}
        for place, data in enumerate(content.values.to_pylist()):
            text = (data or b"").decode("utf-8", "replace")
            try:
                node = read(text)
                schema = self.expander.schema(None, node)
                if schema is None or schema.type != "struct":
                    raise ValueError("the document is an array")
                row = self.expander.value(node, schema)
            except ValueError as error:
                what = f"Unable to parse logical decoding message content JSON string '{text}': {error}"
                raise TransformError(what, where=_WHERE, remedy="Leave it out by a predicate.") from error
            places, values = groups.setdefault(schema, ([], []))
            places.append(place)
            values.append(row)
        for schema, (places, values) in groups.items():
            yield np.array(places, np.int64), RecordPart(schema, array(values, schema))

    def _decoded(self, records: Records, after: RecordPart) -> Records:
        assert records.value is not None
        fields = [(name, part) for name, part in records.value.fields() if name != "message"]
        create = repeat(CREATE, len(records))
        fields = [(name, RecordPart(part.schema, create) if name == "op" else part) for name, part in fields]
        schema = ConnectSchema("struct", name=f"{records.value.schema.name}.Envelope")
        return records.with_(key=None, value=struct(schema, [*fields, ("after", after)], len(records)))
