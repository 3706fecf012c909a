"""Prints events for people: a line an event, aligned, coloured by operation, of an update only what changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STYLES = {"c": "green", "r": "cyan", "u": "yellow", "d": "red", "t": "magenta"}
WORDS = {"c": "create", "r": "read", "u": "update", "d": "delete", "t": "truncate"}


@dataclass
class ConsoleSink:
    """The terminal, or whatever `console` prints to. The driver prints, row by row as they come from the executors."""

    console: Console = field(default_factory=Console)
    written: dict[int, int] = field(default_factory=dict)
    shape = "event"
    _width: int = 0

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that prints each micro-batch of `frame`."""
        return frame.writeStream.foreachBatch(self._print)

    def _print(self, frame: DataFrame, batch_id: int) -> None:
        columns = frame.select("ts", "op", "topic", "key", "before", "after")
        count = 0
        for row in columns.toLocalIterator():
            self._width = min(max(self._width, len(row["topic"])), 48)
            self.console.print(line(row.asDict(), self._width), no_wrap=True, overflow="ellipsis", crop=True)
            count += 1
        self.written[batch_id] = count


def line(event: dict[str, Any], width: int = 0) -> Text:
    """An event, a row of the `event` shape as a dict, as one line of text. `width` is that of the topic's column."""
    op = event["op"]
    ts: datetime | None = event["ts"]
    text = Text().append(f"{ts:%H:%M:%S}.{ts.microsecond // 1000:03d} " if ts else " " * 13, style="dim")
    text.append(f"{WORDS.get(op, op):<8} ", style=STYLES.get(op, ""))
    text.append(f"{event['topic']:<{width}}  ", style="bold")
    text.append(_pairs(_object(event["key"])), style="cyan")
    details = _details(_object(event["before"]), _object(event["after"]), set(_object(event["key"])))
    return text.append(f"  {details}" if details else "")


def _details(before: dict[str, Any], after: dict[str, Any], key: set[str]) -> str:
    """Of an update with an old image the changed columns, else the new row's; the key stands in its own place."""
    if before and after:
        changed = [name for name in after if before.get(name) != after[name]]
        return ", ".join(f"{name}: {_value(before.get(name))} → {_value(after[name])}" for name in changed)
    return _pairs({name: value for name, value in after.items() if name not in key})


def _pairs(columns: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in columns.items())


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object(text: str | None) -> dict[str, Any]:
    return json.loads(text) if text else {}
