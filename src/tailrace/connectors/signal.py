"""A signal as its sender wrote it, and the mark that identifies a row of a signal table."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.model.text import json_reader as json_text

log = logging.getLogger(__name__)

# The rows that open and close the window of a chunk.
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"
# The channel of a signal that is a row of a table at the source.
SOURCE = "source"
# The longest text of a signal.
DATA_BYTES = 1 << 20
_SHOWN = 2000

# The id of a signal, and a text that tells an id that is used again from one that is still there, such as the number of
# the transaction that wrote the row; None in offsets of the first releases, which stored ids alone.
Mark = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal; `data` is its JSON text, `wrong` what keeps it from being one."""

    id: str
    type: str
    data: str | None
    wrong: str | None = None

    def to_line(self) -> str:
        """Its JSON object, for a file."""
        data = None if self.data is None else json.loads(self.data)
        return json.dumps({"id": self.id, "type": self.type, "data": data}) + "\n"

    @property
    def shown(self) -> str:
        """The beginning of its data, for the log."""
        text = self.data or ""
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"

    def content(self) -> dict[str, Any] | None:
        """Its data; None, with a warning that holds the text, when that is no JSON object."""
        why = "its data is no JSON object"
        try:
            content = json_text.read(self.data or "{}")
        except ValueError as error:
            content, why = None, f"{why} ({error})"
        if not isinstance(content, dict):
            log.warning("signal %s (%s) is ignored, %s: %s", self.id, self.type, why, self.shown)
            return None
        return content


def unhandled(marked: Iterable[tuple[Signal, Mark]], handled: Iterable[Mark]) -> tuple[list[Signal], tuple[Mark, ...]]:
    """The signals in a table whose marks are not among the `handled` ones, and the marks of all.

    A handled mark without the second part, of an offset of the first releases, counts for any signal of its id.
    """
    left, new, marks = Counter(handled), [], []
    for signal, mark in marked:
        marks.append(mark)
        stored = mark if left[mark] else (mark[0], None)
        if left[stored]:
            left[stored] -= 1
        else:
            new.append(signal)
    return new, tuple(marks)
