"""Keeps up to which time of the source everything that was committed is in the sink, of a pipeline and its tables.

The source says with each progress of a query up to which time its log was read (see capture/complete.py). Spark reports
a progress once the micro-batch is committed, so what it says is in the sink. The values are stored in the checkpoint,
and for a replica in a table beside it. They never go back: a run that is killed leaves those of before.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tailrace.config import Config
from tailrace.config.filters import table_named
from tailrace.connectors.finding import Finding
from tailrace.errors import TailraceError
from tailrace.pipeline.checkpoint import SparkAloneError, file_system
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.progress import offset_of
from tailrace.pipeline.table_states import StateFile, shown
from tailrace.sinks.replica.states import COMPLETE, GONE, TableState
from tailrace.snapshot.progress import Progress

log = logging.getLogger(__name__)

FILE = "complete.json"
# The table beside a replica is written so often at most: while micro-batches are written, and in a quiet database.
_BUSY_SECONDS, _QUIET_SECONDS = 10.0, 60.0
# Clocks of servers that follow NTP differ by less, and so do their steps. Guessed.
_AHEAD_SECONDS = 60.0


@dataclass(frozen=True)
class Completeness:
    """Times in microseconds since 1970: of the pipeline (None: not known yet), and of a replica's tables.

    Every transaction whose commit had returned to its client before such a time, by the server's clock, is in the sink.
    The keys are the unique names of the tables; one that is not there was never complete.
    """

    until_us: int | None = None
    tables: Mapping[str, int] = field(default_factory=dict)

    def until(self, table: str | None = None) -> datetime | None:
        """The time of the pipeline or of a table, in UTC."""
        time_us = self.until_us if table is None else self.tables.get(table)
        return None if time_us is None else moment(time_us)

    def text(self, table: str | None = None) -> str | None:
        """The same in ISO 8601."""
        until_time = self.until(table)
        return None if until_time is None else until_time.isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Held:
    """Names of tables by what an offset says: those that are read or lack rows, and those not captured any more.

    They are as `shown` prints them.
    """

    lacking: Collection[str] = ()
    removed: Collection[str] = ()

    @staticmethod
    def of(config: Config, offset: Mapping[str, Any]) -> Held:
        """By an offset of the source."""
        progress = Progress.from_json(dict(offset["snapshots"]) if offset.get("snapshots") else None)
        read = {request.table for request in progress.queue if request.keys is None}
        removed = {str(table_named(config, name)) for name, is_captured in progress.tables if not is_captured}
        return Held(read | {each.table for each in progress.incomplete}, removed)


def moment(time_us: int) -> datetime:
    """A time in microseconds since 1970 as one of UTC."""
    return datetime.fromtimestamp(time_us // 1_000_000, timezone.utc).replace(microsecond=time_us % 1_000_000)


def following(before: Completeness, until_us: int | None, states: Mapping[str, TableState], held: Held) -> Completeness:
    """The values once everything up to a time is written; None: that is not known.

    That of a table stays where it was unless the table is complete, and that of the pipeline while any table is not.
    Where the rows of a snapshot replace those of a table there are none until all are read.
    """
    left = {name: state for name, state in states.items() if shown(name) not in held.removed and state.state != GONE}
    replaced = {name for name, state in left.items() if state.is_replaced}
    if replaced:
        before = Completeness(None, {name: each for name, each in before.tables.items() if name not in replaced})
    if until_us is None:
        return before
    complete = {name for name, state in left.items() if state.state == COMPLETE and shown(name) not in held.lacking}
    tables = {**before.tables, **{name: max(until_us, before.tables.get(name, until_us)) for name in complete}}
    is_whole = not held.lacking and len(complete) == len(left)
    return Completeness(max(until_us, before.until_us or until_us) if is_whole else before.until_us, tables)


def clock_warnings(value: Completeness, now: float) -> tuple[Finding, ...]:
    """A warning where the server's clock is, or was, ahead of this machine's, which is `now` in seconds since 1970.

    Set back, it makes the value rest, and what is committed meanwhile is not covered by it.
    """
    ahead = 0.0 if value.until_us is None else value.until_us / 1e6 - now
    if ahead < _AHEAD_SECONDS:
        return ()
    what = (
        f"the pipeline is complete up to {value.text()} by the database's clock, {ahead:,.0f} s ahead of the clock of "
        "this machine: if it is set back, that time rests until the clock has passed it"
    )
    return (Finding("clock", None, what, "have both clocks follow NTP"),)


def from_text(text: str) -> Completeness:
    """The values in the text of a file. Raises ValueError, TypeError and KeyError for another text."""
    node = json.loads(text)
    return Completeness(node["until_us"], dict(node["tables"]))


def stored(checkpoint: str) -> Completeness:
    """The values that a checkpoint (a path or URL) holds; none where Spark alone can read it. Raises TailraceError."""
    try:
        filesystem, root = file_system(checkpoint)
        with filesystem.open_input_stream(f"{root}/{FILE}") as stream:
            return from_text(stream.read().decode())
    except (FileNotFoundError, SparkAloneError):
        return Completeness()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TailraceError(
            f"up to which time the sink is complete cannot be read: {error}",
            where=f"{checkpoint}/{FILE}",
            remedy="run this as the user who runs the pipeline; delete a file that is damaged: a run writes it again",
        ) from error


def until(pipeline: Definition | str | Path, table: str | None) -> datetime | None:
    """The time up to which a table, or all of them, are complete; `tailrace.complete_until` for users."""
    definition = pipeline if isinstance(pipeline, Definition) else load(Path(pipeline))
    name = None if table is None else table_named(definition.config(), table).unique
    return stored(definition.checkpoint).until(name)


def begin(file: StateFile, publish: Callable[[Completeness], None]) -> None:
    """Under a new checkpoint withdraw what the table beside a replica says: a first snapshot will replace all rows.

    Raises SinkError.
    """
    if file.read() is None:
        publish(Completeness())


class CompleteWatch:
    """Follows the progress of a run. `publish` writes the table beside a replica, and may raise SinkError.

    Nothing is raised: the pipeline is right without the values, and what fails is logged and tried again.
    """

    def __init__(
        self,
        file: StateFile,
        config: Config,
        states: Callable[[], Mapping[str, TableState]],
        publish: Callable[[Completeness], None] | None,
    ) -> None:
        self._file, self._config, self._states, self._publish = file, config, states, publish
        self._value = self._read()
        self._published: Completeness | None = None
        self._published_at, self._published_batch = 0.0, -1
        self._told = ""

    def see(self, progress: Mapping[str, Any] | None, *, is_last: bool = False) -> None:
        """Follow the newest progress of the query; `is_last`: the run ends, so the table is not written later."""
        if progress is None:
            return
        latest = offset_of(dict(progress), "latestOffset")
        held = Held.of(self._config, offset_of(dict(progress), "endOffset"))
        value = following(self._value, latest.get("complete_us"), self._states(), held)
        try:
            if value != self._value:
                self._file.write(json.dumps({"version": 1, **asdict(value)}))
                self._value = value
            self._tell_sink(progress["batchId"], is_last=is_last)
            self._told = ""
        except TailraceError as error:
            if error.what != self._told:
                log.warning("up to which time the sink is complete cannot be stored, which is tried again: %s", error)
                self._told = error.what

    def _tell_sink(self, batch: int, *, is_last: bool) -> None:
        pause = _QUIET_SECONDS if batch == self._published_batch else _BUSY_SECONDS
        now = time.monotonic()
        is_withdrawn = self._published is not None and not {*self._published.tables} <= {*self._value.tables}
        is_due = is_last or is_withdrawn or now - self._published_at >= pause
        if self._publish is None or self._value == self._published or not is_due:
            return
        self._published_at, self._published_batch = now, batch
        self._publish(self._value)
        self._published = self._value

    def _read(self) -> Completeness:
        try:
            text = self._file.read()
            return Completeness() if text is None else from_text(text)
        except (TailraceError, ValueError, KeyError, TypeError) as error:
            log.warning("%s in the checkpoint cannot be read, and is written again: %s", FILE, error)
            return Completeness()
