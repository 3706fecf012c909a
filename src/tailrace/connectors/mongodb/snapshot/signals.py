"""The signal collection: reads new documents, and writes the documents that open and close a window."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from bson import json_util

from tailrace.config import Config
from tailrace.config.filters import table_of_signals
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.signal import CLOSE, OPEN, SOURCE, Mark, Signal, unhandled
from tailrace.errors import SourceError

log = logging.getLogger(__name__)

# The offset has a mark of each document, so that none is carried out twice.
MOST_DOCUMENTS = 1000


class SignalCollection:
    """The collection that `signal.data.collection` names; without one there are no signals and no windows."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.table = table_of_signals(config)
        self._is_read = SOURCE in config.names("signal.enabled.channels")

    def new(self, client: Client, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals that are not handled yet, in the order they came, and the marks of all. Raises SourceError."""
        return unhandled([(signal, (signal.id, None)) for signal in self._documents(client)], handled)

    def _documents(self, client: Client) -> list[Signal]:
        if self.table is None or not self._is_read:
            return []
        collection = client[self.table.database][self.table.table]
        found = list(collection.find({"type": {"$nin": [OPEN, CLOSE]}}).limit(MOST_DOCUMENTS + 1))
        if len(found) > MOST_DOCUMENTS:
            what = f"{self.table} holds more than {MOST_DOCUMENTS:,} signals"
            remedy = "delete the documents of signals that were carried out; to do so regularly is safe"
            raise SourceError(what, where="signal.data.collection", remedy=remedy)
        return [signal for signal in map(_signal, found) if signal is not None]

    def open_window(self, client: Client) -> str | None:
        """Write the document that opens a window, if there is a collection for it; returns the window's id."""
        if self.table is None or self._config.flag("read.only"):
            return None
        window = str(uuid.uuid4())
        self._insert(client, f"{window}-open", OPEN)
        return window

    def close_window(self, client: Client, window: str | None) -> None:
        """Write what closes a window: another document, or the removal of the first one."""
        if window is None or self.table is None:
            return
        if self._config.text("incremental.snapshot.watermarking.strategy") == "insert_delete":
            client[self.table.database][self.table.table].delete_one({"_id": f"{window}-open"})
        else:
            self._insert(client, f"{window}-close", CLOSE)

    def _insert(self, client: Client, id_: str, kind: str) -> None:
        assert self.table is not None
        client[self.table.database][self.table.table].insert_one({"_id": id_, "type": kind, "payload": ""})


def _signal(document: dict[str, Any]) -> Signal | None:
    """The signal of a document of exactly three fields, where the last one is a document or its JSON text."""
    if len(document) != 3 or [*document][1] != "type":
        log.warning("signal.data.collection: %r is no signal: fields _id, type, data are expected", document.get("_id"))
        return None
    id_, kind, data = document.values()
    text = data if isinstance(data, str) else json_util.dumps(data, json_options=json_util.RELAXED_JSON_OPTIONS)
    return Signal(id_ if isinstance(id_, str) else str(id_), str(kind), text)
