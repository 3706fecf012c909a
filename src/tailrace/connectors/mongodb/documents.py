"""Converts documents to rows: one column of JSON text, or declared columns with the rest as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.masks import OutOfRange
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.mongodb.declared import OPTION, declaration, declared_fields, parse_declarations
from tailrace.connectors.mongodb.fields import CollectionFields, parse_rules, rules_for
from tailrace.connectors.mongodb.options import (
    DOCUMENT_COLUMNS,
    FIELD_EXCLUDE_LIST,
    FIELD_RENAMES,
    JSON_SERIALIZATION_MODE,
    KEY_JSON_MODE,
)
from tailrace.connectors.mongodb.position import JSON
from tailrace.connectors.mongodb.types.columns import lost, takes_text
from tailrace.connectors.mongodb.types.json import EXTENDED, RELAXED, SPACED, STRICT, json_text
from tailrace.connectors.mongodb.types.layout import ABSENT, Flags, Values
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.strings import raw_values
from tailrace.connectors.mongodb.types.table import REST, document_rows, inferred_fields
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import ConfigError
from tailrace.model.arrow import flags, mask
from tailrace.model.schema import STRING
from tailrace.model.table import TEXT, Column, TableId, TableSchema

DOCUMENT, KEY = "document", "id"
# The key beside declared columns: a document may have a field of the other name.
ROW_KEY = "_key"
_TEXTS = {"legacy": STRICT, "strict": STRICT, "relaxed": RELAXED, "extended": EXTENDED}
_CHANGED = {**_TEXTS, "legacy": SPACED}
# What relaxed JSON does not tell.
_INTEGERS = "the difference between ints and longs"
_PLACES = "the places of its fields among those of other columns"
_ID = Names(["_id"])
_ID_NAME = int.from_bytes(b"_id\0", "little")


class Documents:
    """Documents and keys of any collection as rows, by the configuration."""

    def __init__(self, config: Config) -> None:
        mode = config[JSON_SERIALIZATION_MODE]
        self._texts, self._changed = _TEXTS[mode], _CHANGED[mode]
        self.key = STRICT if config[KEY_JSON_MODE] == "strict" else RELAXED
        self._is_upward = Fault.RULES_OF_OUTER_FIELDS in config[COMPAT_FAULTS]
        self._rules = parse_rules(config[FIELD_EXCLUDE_LIST], config[FIELD_RENAMES])
        self._declared = parse_declarations(config[DOCUMENT_COLUMNS])
        self._out_of_range = OutOfRange.from_config(config)
        self._of: dict[TableId, _Rules] = {}

    def schema(self, table: TableId) -> TableSchema:
        """The table of a collection; its key is the text of `_id`."""
        rules, parts = self._rules_of(table), [_INTEGERS] if self._texts is RELAXED else []
        if rules.fields.excluded:
            parts.append(f"the excluded fields {', '.join(rules.fields.excluded)}")
        return table_of(table, rules.columns, f"compared without {' and '.join(parts)}" if parts else None)

    def fields(self, table: TableId) -> CollectionFields:
        """The rules for fields of a collection."""
        return self._rules_of(table).fields

    def form(self, table: TableId) -> str:
        """By which rules the documents of a collection become rows, as text; two forms have rows that differ."""
        rules = self._rules_of(table)
        parts = (
            self._texts.mode.value,
            self.key.mode.value,
            rules.fields,
            [f"{each.name} {each.type}" for each in rules.columns],
        )
        return "; ".join(map(str, parts))

    def keys(self, documents: Values) -> pa.Array:
        """The texts of the documents' `_id`."""
        return json_text(_ids(documents), self.key)

    def keys_now(self, documents: Values, ids: Values, keys: pa.Array) -> pa.Array:
        """The texts of the documents' own `_id`, where `ids`, whose texts are `keys`, may be older ones.

        The server lets a document be replaced by one whose `_id` is equal and of another type: 1.0 by 1.
        """
        own = _ids(documents)
        is_other = flags(pc.fill_null(pc.not_equal(raw_values(own), raw_values(ids)), False))
        differ = own.present & ids.present & ((own.kinds != ids.kinds) | is_other)
        if not differ.any():
            return keys
        return pc.if_else(mask(differ), json_text(chosen(own, differ), self.key), keys)

    def images(self, schema: TableSchema, documents: Values, keys: pa.Array) -> pa.StructArray:
        """Row images of documents with these keys; null where there is no key."""
        rules = self._rules_of(schema.id)
        values = rules.fields.documents(documents) if rules.fields else documents
        if rules.columns:
            columns = document_rows(values, rules.columns, held="_id", texts=rules.texts).flatten()
        else:
            columns = [json_text(values, self._texts)]
        absent = keys.is_null() if keys.null_count else None
        return pa.StructArray.from_arrays([*columns, keys], fields=list(schema.row_type), mask=absent)

    def unchanged(self, schema: TableSchema, rows: Flags) -> pa.StructArray:
        """The marks of rows whose values stay; their keys are told."""
        names = [column.name for column in schema.columns[:-1]]
        return pa.StructArray.from_arrays([mask(rows)] * len(names), names=names)

    def of_keys(self, schema: TableSchema, keys: pa.Array) -> pa.StructArray:
        """Row images that have a key and nothing else."""
        nothing = [pa.nulls(len(keys), column.arrow) for column in schema.columns[:-1]]
        return pa.StructArray.from_arrays([*nothing, keys], fields=list(schema.row_type))

    def text(self, schema: TableSchema, documents: Values) -> pa.Array:
        """The JSON texts of documents."""
        rules = self.fields(schema.id)
        return json_text(rules.documents(documents) if rules else documents, self._texts)

    def changed(self, schema: TableSchema, values: Values) -> pa.Array:
        """The JSON texts of updated fields."""
        rules = self.fields(schema.id)
        return json_text(rules.changes(values) if rules else values, self._changed)

    def typed(self, table: TableId, fields: Sequence[pa.Field]) -> tuple[list[pa.Field], frozenset[str]]:
        """Columns under `column.out.of.range.text`, and the names of those that are texts because of it."""
        texts = frozenset(
            field.name
            for field in fields
            if takes_text(field.type) and self._out_of_range.of(table, field.name, is_key=False) == TEXT
        )
        return [field.with_type(pa.string()) if field.name in texts else field for field in fields], texts

    def _rules_of(self, table: TableId) -> _Rules:
        if table not in self._of:
            fields = rules_for(self._rules, table.database, table.table, is_upward=self._is_upward)
            declared = declared_fields(self._declared, f"{table.database}.{table.table}")
            self._of[table] = _Rules(fields, *self.typed(table, declared))
        return self._of[table]


def _ids(documents: Values) -> Values:
    """The `_id` of each document. A server stores it as the first field, and stores no second one."""
    buffer, places, present = documents.buffer, documents.starts + 4, documents.present
    if (buffer.uint32[places[present] + 1] == _ID_NAME).all():
        return Values(buffer, np.where(present, buffer.uint8[places], ABSENT).astype(np.uint8), places + 5)
    (ids,) = _ID.columns(documents, members(documents))
    return ids


@dataclass(frozen=True)
class _Rules:
    """What holds for one collection: its fields, its declared columns, and which of these are texts."""

    fields: CollectionFields
    columns: Sequence[pa.Field]
    texts: frozenset[str]


def sampled(config: Config, table: TableId, documents: Values) -> TableSchema:
    """The table of a collection with the columns that a sample of its documents shows. Raises ConfigError for none."""
    rows = Documents(config)
    rules = rows.fields(table)
    fields, _ = rows.typed(table, inferred_fields(rules.documents(documents) if rules else documents))
    if not fields:
        raise ConfigError(
            "no document shows which columns the rows have",
            where=str(table),
            remedy=f"declare them in {OPTION}, or start when the collection has documents",
        )
    return table_of(table, fields)


def declared(row: pa.StructType) -> dict[str, str]:
    """The property that declares the columns of such images for every collection."""
    fields = [field for field in row if field.name not in (REST, ROW_KEY)]
    return {OPTION: declaration(".*", fields)}


def table_of(table: TableId, fields: Sequence[pa.Field], configured: str | None = None) -> TableSchema:
    """The table of a collection with these columns, or with whole documents if there are none."""
    if not fields:
        document = Column(DOCUMENT, JSON, pa.string(), configured=configured)
        return TableSchema(table, (document, Column(KEY, STRING, pa.string(), in_value=False)), (KEY,), (KEY,))
    typed = tuple(
        Column(each.name, STRING, each.type, configured=f"compared without {lost(each.type)}") for each in fields
    )
    rest = Column(REST, JSON, pa.string(), configured=f"compared without {_PLACES} and {_INTEGERS}")
    ends = (rest, Column(ROW_KEY, STRING, pa.string(), in_value=False))
    return TableSchema(table, (*typed, *ends), (ROW_KEY,), (ROW_KEY,))


def chosen(values: Values, rows: Flags) -> Values:
    """The values of these rows, and none elsewhere."""
    return Values(values.buffer, np.where(rows, values.kinds, ABSENT).astype(np.uint8), values.starts)
