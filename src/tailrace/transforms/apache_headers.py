"""Kafka Connect's own transforms that write headers: InsertHeader and HeaderFrom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailrace.config.kinds import FLAG, NAMES, TEXT, optional
from tailrace.events.records import Header, Records
from tailrace.model.arrow import flags
from tailrace.transforms.fields import rebuilt, with_default
from tailrace.transforms.literals import literal_part
from tailrace.transforms.settings import Given, either, setting
from tailrace.transforms.transform import require

_FIELDS = setting("fields", NAMES, required=True)
_HEADERS = setting("headers", NAMES, required=True)
_OPERATION = setting("operation", either("move", "copy"), required=True)
_REPLACE_NULL_WITH_DEFAULT = setting("replace.null.with.default", FLAG, "true")
_HEADER = setting("header", TEXT, required=True)
_VALUE_LITERAL = setting("value.literal", optional(TEXT))


@dataclass(frozen=True)
class InsertHeader:
    """Adds a header with a constant value to every record."""

    header: Header

    @staticmethod
    def of(given: Given) -> InsertHeader:
        """From the transform's settings. Raises SettingsError."""
        config = given.read((_HEADER, _VALUE_LITERAL))
        if not any(name.lower() == "value.literal" for name in given.values):
            raise given.problem("value.literal", "A value is required")
        return InsertHeader(Header(config[_HEADER], literal_part(config[_VALUE_LITERAL] or ""), constant=True))

    def apply(self, records: Records) -> list[Records]:
        """The records with the header behind those they have."""
        return [records.with_(headers=(*records.headers, self.header))]


@dataclass(frozen=True)
class HeaderFrom:
    """Copies or moves fields of the key or of the value into headers; records without that side stay."""

    key: bool
    fields: tuple[str, ...]
    headers: tuple[str, ...]
    moves: bool
    fill: bool

    @staticmethod
    def of(given: Given, key: bool) -> HeaderFrom:
        """From the transform's settings. Raises SettingsError."""
        options = (
            _FIELDS,
            _HEADERS,
            _OPERATION,
            _REPLACE_NULL_WITH_DEFAULT,
        )
        config = given.read(options)
        fields, headers = config[_FIELDS], config[_HEADERS]
        if len(fields) != len(headers):
            raise given.problem("fields", "'fields' config must have the same number of elements as 'headers' config.")
        moves = config[_OPERATION] == "move"
        return HeaderFrom(key, fields, headers, moves, config[_REPLACE_NULL_WITH_DEFAULT])

    def apply(self, records: Records) -> list[Records]:
        """The records with their headers."""
        side = records.key if self.key else records.value
        if side is None:
            return [records]
        is_present = flags(side.values.is_valid())
        present, absent = (
            records.split(is_present) if not is_present.all() else (records, records.take(np.empty(0, np.int64)))
        )
        side = present.key if self.key else present.value
        if not len(present) or side is None:
            return [records]
        parts = [require(side, name, "HeaderFrom") for name in self.fields]
        added = [
            Header(name, with_default(part) if self.fill else part)
            for name, part in zip(self.headers, parts, strict=True)
        ]
        made = present.with_(headers=(*present.headers, *added))
        if self.moves:
            left = rebuilt(side, [(name, field) for name, field in side.fields() if name not in self.fields])
            made = made.with_(key=left) if self.key else made.with_(value=left)
        return [made, absent] if len(absent) else [made]
