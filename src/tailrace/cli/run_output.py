"""Prints progress of running pipelines, what they wait for, and the warnings of their log."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from tailrace.cli.terminal import clock, notes, print_json
from tailrace.errors import TailraceError
from tailrace.model.quantity import size
from tailrace.pipeline.activity import ASKS, RESTARTS, WRITES
from tailrace.pipeline.log import LogFile, Warned

if TYPE_CHECKING:
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.progress import RunProgress

QUIET_SECONDS, WAITING_SECONDS, REMINDER_SECONDS = 10.0, 60.0, 600.0  # guessed
LOOK_SECONDS = 0.5  # guessed
# Spark reports an idle query every 10 seconds; until then its questions to the source look like one.
_LONG_SECONDS = 15.0

log = logging.getLogger(__name__)


class WarningPrinter:
    """Prints what our own processes warn of in the log; the same again only after ten minutes, as what is `known`.

    The same is what differs in numbers alone, which may be counts, seconds or tries. Digits of a name are no numbers.
    """

    def __init__(self, log: LogFile, printed: tuple[str, ...] = ()) -> None:
        self._log = log
        self._printed = {_without_numbers(Warned("WARNING", text)): time.monotonic() for text in printed}
        self._repeats = Counter[Warned]()

    def show(self) -> None:
        """Prints what is new."""
        for warned in self._log.news():
            now, same = time.monotonic(), _without_numbers(warned)
            if now - self._printed.get(same, -REMINDER_SECONDS) < REMINDER_SECONDS:
                self._repeats[same] += 1
                continue
            self._printed[same] = now
            mark = "[yellow]Warning[/]" if warned.level == "WARNING" else "[red]Problem[/]"
            repeats = self._repeats.pop(same, 0)
            often = f" (and {repeats:,} more like it since it was printed last)" if repeats else ""
            notes.print(f"{mark} {escape(warned.text + often)}")


# Alone, and no part of a name, an address or a position of a log.
_NUMBER = re.compile(r"(?<![\w.:/-])\d[\d,.]*(?!\w)")


def _without_numbers(warned: Warned) -> Warned:
    return Warned(warned.level, _NUMBER.sub("#", warned.text))


class ProgressPrinter:
    """Prints progress: a JSON line a batch, or for people a line when something happened, every few seconds at most.

    A first snapshot, which is one long batch, is shown every few seconds. While nothing happens, a line says what the
    pipeline waits for, and before the first batch the `position` of the checkpoint. Incomplete tables and warnings are
    shown when they change, and again every ten minutes. `pipeline` is named in the JSON of one of several.
    """

    def __init__(self, as_json: bool, position: Callable[[], str] = str, pipeline: str | None = None) -> None:
        self._as_json, self._position = as_json, position
        self._about = {} if pipeline is None else {"pipeline": pipeline}
        self._batch: int | None = None
        self._events = 0
        self._begun = self._since = time.monotonic()
        self._next = 0.0
        self._waiting = self._begun + QUIET_SECONDS
        self._warned: tuple[str, ...] = ()
        self._reminder = 0.0

    def show(self, progress: RunProgress, *, last: bool = False) -> None:
        """Prints `progress` if it says something new and it is time."""
        now = time.monotonic()
        is_new, is_due = progress.batch != self._batch, now >= self._next
        reads = progress.snapshot is not None and is_due and now >= self._begun + QUIET_SECONDS
        if self._as_json:
            if is_new or (reads and progress.batch is None):
                shown = asdict(replace(progress, rows={}, topics=()))
                del shown["rows"], shown["topics"]
                speed = {"events_per_second": self._speed(progress, now)}
                print_json({"time": clock(), **self._about, **shown, **speed})
        elif (is_new and (last or (progress.events != self._events and is_due))) or reads:
            notes.print(line(progress, self._speed(progress, now)), fields=_fields(progress))
        elif now >= self._waiting and not last:
            notes.print(escape(waiting(progress, self._position)))
            self._waiting = now + WAITING_SECONDS
        sink = () if progress.sink_problem is None else (progress.sink_problem,)
        tables = (*progress.set_aside, *progress.incomplete)
        self._warn((*warnings(progress.offset), *tables, *sink, *progress.catalog), now, {*tables})

    def _warn(self, texts: tuple[str, ...], now: float, tables: set[str]) -> None:
        for warning in self._warned:
            if warning not in texts:
                notes.print(f"[green]Over[/] {escape(warning)}")
        is_due = now >= self._reminder
        if is_due or not self._warned:
            self._reminder = now + REMINDER_SECONDS
        for warning in texts:
            if is_due or warning not in self._warned:
                # The line of a table begins with its name.
                table = warning.partition(" is ")[0] if warning in tables else None
                notes.print(f"[yellow]Warning[/] {escape(warning)}", fields={"table": table})
        self._warned = texts

    def _speed(self, progress: RunProgress, now: float) -> float:
        """Remember what a line says; the events a second since the last line."""
        rate = (progress.events - self._events) / max(now - self._since, LOOK_SECONDS)
        self._batch, self._events, self._since = progress.batch, progress.events, now
        self._next = self._waiting = now + QUIET_SECONDS
        return rate


def warnings(offset: dict[str, Any]) -> tuple[str, ...]:
    """Warnings in a pipeline's offset: tables whose snapshots were given up, changes that the source does not send."""
    from tailrace.snapshot.progress import Progress as Snapshots

    state = Snapshots.from_json(offset.get("snapshots"))
    return (*map(str, state.incomplete), *state.warnings)


def _fields(progress: RunProgress) -> dict[str, Any]:
    """What a line of progress has in JSON besides its text."""
    return {"position": progress.position, "batch": progress.batch, "events": progress.events}


def line(progress: RunProgress, events_per_second: float) -> str:
    """Progress for people."""
    if progress.batch is None:
        return str(progress.snapshot)
    snapshot = f"; {progress.snapshot}" if progress.snapshot else ""
    rate = f"{events_per_second:,.{int(events_per_second < 10)}f}"
    return f"{progress.events:,} events, {rate}/s, at {_place(progress)}{snapshot}"


def waiting(progress: RunProgress, position: Callable[[], str]) -> str:
    """What a pipeline does while it reports nothing new. Before its first micro-batch a run may be far into the log."""
    activity, seconds = progress.activity, progress.activity_seconds
    if activity == RESTARTS:
        why = f", as it failed: {progress.error}" if progress.error else ""
        return f"the query is started again in {seconds:,.0f} s{why}; {progress.events:,} events so far"
    if progress.batch is None:
        begun = "no micro-batch of this run is finished yet"
        if activity == WRITES:
            begun += f"; one is being read and written, for {seconds:,.0f} s"
        return "; ".join([begun, *filter(None, [position()])])
    place = f"at {_place(progress)}"
    if activity == WRITES:
        written = f"micro-batch {progress.batch + 1} is being read and written, for {seconds:,.0f} s"
        return f"{written}; {progress.events:,} events before it, {place}"
    if activity == ASKS and seconds >= _LONG_SECONDS:
        return f"waiting for the source's answer, for {seconds:,.0f} s; {progress.events:,} events so far, {place}"
    return f"waiting for changes; {progress.events:,} events so far, {place}"


def checkpoint_position(definition: Definition) -> str:
    """The position of a checkpoint, in words; empty if this process cannot read it."""
    from tailrace.pipeline.checkpoint import position

    try:
        done = position(definition.checkpoint).committed
        reached = None if done is None else definition.admin().position(done.offset)
    except TailraceError as error:
        log.info("the position of the checkpoint cannot be read: %s", error)
        return ""
    if done is None:
        return "the checkpoint has none yet"
    place = done.offset.get("phase") if reached is None else reached.to_text()
    return f"the checkpoint is at micro-batch {done.number}" + (f", {place}" if place else "")


def _place(progress: RunProgress) -> str:
    """The position, and how much of the log is behind it."""
    place = progress.position or progress.offset.get("phase") or "the beginning"
    behind = progress.latest.get("lag_bytes")
    return f"{place}, {size(behind)} of log behind" if behind else str(place)
