"""Joins change events that the server has split for their size (`$changeStreamSplitLargeEvent`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from bson import encode
from bson.raw_bson import RawBSONDocument

from tailrace.connectors.mongodb.log.batch import CursorBatch
from tailrace.connectors.mongodb.types.layout import Buffer, Values
from tailrace.connectors.mongodb.types.names import Names
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import SourceError

_SPLIT = "splitEvent"
_NAMES = Names([_SPLIT])


class Fragments:
    """Collects the fragments of an event, which may come in several answers; `is_open` while some are missing."""

    def __init__(self) -> None:
        self._fragments: list[RawBSONDocument] = []

    @property
    def is_open(self) -> bool:
        """Whether the last event is not complete."""
        return bool(self._fragments)

    def whole(self, batch: CursorBatch) -> Values:
        """The batch's events, those that this batch completes put together. Raises SourceError for a gap."""
        documents = batch.documents
        if not self._fragments and not (
            len(documents) and (_NAMES.find(documents.buffer, members(documents)) >= 0).any()
        ):
            return documents
        whole: list[bytes] = []
        for raw in batch.raw_documents():
            event = RawBSONDocument(raw)
            split = event.get(_SPLIT)
            self._expect(1 if split is None else int(split["fragment"]))
            if split is None:
                whole.append(raw)
                continue
            self._fragments.append(event)
            if split["fragment"] == split["of"]:
                whole.append(encode(_merged(self._fragments)))
                self._fragments = []
        starts = np.cumsum([0, *map(len, whole[:-1])] if whole else [], dtype=np.int64)
        return Values.documents(Buffer(whole), starts)

    def _expect(self, number: int) -> None:
        if number != len(self._fragments) + 1:
            raise SourceError(
                f"fragment {len(self._fragments) + 1} of a change event is missing, number {number} follows",
                remedy="report it with the server's version; cursor.oversize.handling.mode=skip leaves such events out",
            )


def _merged(fragments: Iterable[RawBSONDocument]) -> dict[str, Any]:
    """One event: a field is in one of the fragments. It is resumed after the last of them."""
    event: dict[str, Any] = {}
    for fragment in fragments:
        event["_id"] = fragment["_id"]
        for name, value in fragment.items():
            if name not in ("_id", _SPLIT) and event.get(name) is None:
                event[name] = value
    return event
