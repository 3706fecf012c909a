"""The signal collection: its commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bson import json_util

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.signal import CLOSE, DATA_BYTES, OPEN, Signal
from tailrace.connectors.signal_source import SignalTable, Stored
from tailrace.model.table import TableId
from tailrace.override import override

_TOO_LARGE = f"its document is larger than {DATA_BYTES:,} bytes"


@dataclass(frozen=True)
class MongoSignals(SignalTable):
    """Implements SignalTable."""

    table: TableId

    @staticmethod
    def of(config: Config) -> dict[str, SignalTable]:
        """The collection that `signal.data.collection` names, by its database."""
        table = table_of_signals(config)
        return {} if table is None else {table.database: MongoSignals(table)}

    @property
    @override
    def name(self) -> str:
        return str(self.table)

    @override
    def read(self, client: Client, limit: int) -> list[Stored]:
        """Of a large document the server sends the identity alone."""
        is_short = {"$lte": [{"$bsonSize": {"id": "$_id"}}, DATA_BYTES]}
        large = {"_id": {"$cond": [is_short, "$_id", "of a large _id"]}, "large": True}
        stages: list[Mapping[str, Any]] = [
            {"$match": {"type": {"$nin": [OPEN, CLOSE]}}},
            {"$limit": limit},
            {"$replaceWith": {"$cond": [{"$lte": [{"$bsonSize": "$$ROOT"}, DATA_BYTES]}, "$$ROOT", large]}},
        ]
        return [(_signal(document), None) for document in self._collection(client).aggregate(stages)]

    @override
    def insert(self, client: Client, id_: str, kind: str, data: str) -> None:
        """With the fields that the reference engine writes."""
        self._collection(client).insert_one({"_id": id_, "type": kind, "payload": ""})

    @override
    def delete(self, client: Client, id_: str) -> None:
        self._collection(client).delete_one({"_id": id_})

    def _collection(self, client: Client) -> Any:
        return client[self.table.database][self.table.table]


def _signal(document: dict[str, Any]) -> Signal:
    """The signal of a document of exactly three fields, where the last one is a document or its JSON text."""
    id_, kind = str(document.get("_id")), str(document.get("type", ""))
    if document.get("large") is True and len(document) == 2:
        return Signal(id_, kind, None, _TOO_LARGE)
    if len(document) != 3 or [*document][1] != "type":
        return Signal(id_, kind, None, "its document needs the fields _id, type and one for the data, in this order")
    data = [*document.values()][2]
    try:
        text = data if isinstance(data, str) else json_util.dumps(data, json_options=json_util.RELAXED_JSON_OPTIONS)
    except (ValueError, TypeError, RecursionError) as error:
        return Signal(id_, kind, None, f"its data cannot be written as JSON: {error}")
    return Signal(id_, kind, text)
