"""`tailrace run`: runs a pipeline until it ends or is stopped."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from tailrace.cli.stop import StopRequest, stop_on_signals
from tailrace.cli.terminal import clock, notes, print_json, set_about, stamp_lines
from tailrace.errors import SinkError, TailraceError
from tailrace.model.quantity import size
from tailrace.pipeline.activity import ASKS, RESTARTS, WRITES
from tailrace.pipeline.log import LogFile, Warned

if TYPE_CHECKING:
    from tailrace.operate.watch import RunWatch
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.progress import Progress
    from tailrace.pipeline.runner import Pipeline, Run

QUIET_SECONDS, WAITING_SECONDS, REMINDER_SECONDS = 10.0, 60.0, 600.0
_LOOK_SECONDS = 0.5
# Spark reports an idle query every 10 seconds; until then its questions to the source look like one.
_LONG_SECONDS = 15.0

log = logging.getLogger(__name__)


class LogFormat(Enum):
    """How the lines on stderr look."""

    TEXT = "text"
    JSON = "json"


def command(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file (YAML), or a folder with such files.")],
    once: Annotated[
        bool, typer.Option("--once", help="Stop when everything that exists at the start has been read.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print progress as JSON lines.")] = False,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="[HOST:]PORT", help="Serve metrics, health checks and the console there."),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How the lines on stderr look.")] = (
        LogFormat.TEXT
    ),
) -> None:
    """Run a pipeline, or all of a folder. Ctrl-C stops it; the next start resumes from the checkpoint."""
    from tailrace.pipeline.definition import load
    from tailrace.pipeline.runner import Pipeline

    stamp_lines(as_json=log_format is LogFormat.JSON)
    if pipeline.is_dir():
        from tailrace.cli.run_folder import run_folder

        return run_folder(pipeline, http, once=once, json=json)
    definition = load(pipeline)
    if notes.is_json:
        set_about(pipeline=definition.name)
    if once:
        definition = definition.model_copy(update={"trigger": "availableNow"})
    with watched(definition, http) as watch:
        run(Pipeline(definition), json, watch)


def run(runner: Pipeline, json: bool, watch: RunWatch | None) -> None:
    """Runs a pipeline until it ends or is stopped. Raises what ends it, and typer.Exit after a signal."""
    from tailrace.pipeline.preflight import before_start

    definition = runner.definition
    with notes.status("Checking database and sink"):
        found = before_start(definition)
    for finding in found:
        mark = "[yellow]Warning[/]" if finding.ok is None else "[red]Problem[/]"
        notes.print(f"{mark} {escape(f'{finding.name}: {finding.what}; remedy: {finding.remedy}')}")
    notes.print(f"Starting [bold]{definition.name}[/] (Spark's own log: {runner.log})")
    running: Run | None = None
    with stop_on_signals() as asked:
        try:
            with notes.status("Starting Spark"):
                running = runner.start()
            asked.listen()
            known = tuple(map(str, definition.config().warnings))
            printer = ProgressPrinter(json, lambda: checkpoint_position(definition))
            follow(running, asked, WarningPrinter(LogFile(runner.log), known), printer, watch)
        except TailraceError as error:
            # Java and the workers may have got the signal as well, and have ended before this process.
            if not asked.soon():
                raise
            log.info("the pipeline ended while it was stopped: %s", error)
        if asked:
            notes.print("Stopping")
            stop(running)
    if asked.code:
        raise typer.Exit(asked.code)
    lacking = () if running is None else (*running.set_aside, *running.incomplete)
    if not asked and lacking:
        raise SinkError("all that there was has been read, but\n  " + "\n  ".join(lacking))


def follow(
    running: Run,
    asked: StopRequest,
    warnings_printer: WarningPrinter,
    printer: ProgressPrinter,
    watch: RunWatch | None = None,
) -> None:
    """Prints progress and warnings until the pipeline ends or a signal requests a stop; `watch` is told the former."""
    try:
        while not asked and not running.await_(_LOOK_SECONDS):
            progress = running.progress()
            printer.show(progress)
            if watch is not None:
                watch.said(progress)
            warnings_printer.show()
        printer.show(running.progress(), last=True)
    finally:
        warnings_printer.show()


@contextmanager
def watched(definition: Definition, http: str | None) -> Iterator[RunWatch | None]:
    """Serves the figures of a pipeline where `--http`, or else its file, says so; None where neither does."""
    from tailrace.operate.serving import Single, address, serving

    place = address(http) if http is not None else definition.http
    if place is None:
        yield None
        return
    from tailrace.operate.watch import RunWatch

    watch = RunWatch(definition)
    watch.starting()
    try:
        with serving(Single(watch), place) as url:
            notes.print(f"Metrics, health and console: {url}")
            yield watch
    finally:
        watch.close()


def stop(running: Run | None) -> None:
    """Stops a pipeline that was started. A failure is no error: Java may have got the signal as well."""
    try:
        if running is not None:
            running.stop()
    except TailraceError as error:
        log.info("the pipeline ended while it was stopped: %s", error)


class WarningPrinter:
    """Prints what our own processes warn of in the log; the same again only after ten minutes, as what is `known`.

    The same is what differs in numbers alone, which may be counts, seconds or tries. Digits of a name are no numbers.
    """

    def __init__(self, log: LogFile, known: tuple[str, ...] = ()) -> None:
        self._log = log
        self._printed = {_without_numbers(Warned("WARNING", text)): time.monotonic() for text in known}
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

    def show(self, progress: Progress, *, last: bool = False) -> None:
        """Prints `progress` if it says something new and it is time."""
        now = time.monotonic()
        is_new, is_due = progress.batch != self._batch, now >= self._next
        reads = progress.snapshot is not None and is_due and now >= self._begun + QUIET_SECONDS
        if self._as_json:
            if is_new or (reads and progress.batch is None):
                shown = asdict(replace(progress, rows={}))
                del shown["rows"]
                speed = {"events_per_second": self._speed(progress, now)}
                print_json({"time": clock(), **self._about, **shown, **speed})
        elif (is_new and (last or (progress.events != self._events and is_due))) or reads:
            notes.print(line(progress, self._speed(progress, now)), fields=_fields(progress))
        elif now >= self._waiting and not last:
            notes.print(escape(waiting(progress, self._position)))
            self._waiting = now + WAITING_SECONDS
        sink = () if progress.sink_problem is None else (progress.sink_problem,)
        tables = (*progress.set_aside, *progress.incomplete)
        self._warn((*warnings(progress.offset), *tables, *sink), now, {*tables})

    def _warn(self, found: tuple[str, ...], now: float, tables: set[str]) -> None:
        for warning in self._warned:
            if warning not in found:
                notes.print(f"[green]Over[/] {escape(warning)}")
        is_due = now >= self._reminder
        if is_due or not self._warned:
            self._reminder = now + REMINDER_SECONDS
        for warning in found:
            if is_due or warning not in self._warned:
                # The line of a table begins with its name.
                table = warning.partition(" is ")[0] if warning in tables else None
                notes.print(f"[yellow]Warning[/] {escape(warning)}", fields={"table": table})
        self._warned = found

    def _speed(self, progress: Progress, now: float) -> float:
        """Remember what a line says; the events a second since the last line."""
        rate = (progress.events - self._events) / max(now - self._since, _LOOK_SECONDS)
        self._batch, self._events, self._since = progress.batch, progress.events, now
        self._next = self._waiting = now + QUIET_SECONDS
        return rate


def warnings(offset: dict[str, Any]) -> tuple[str, ...]:
    """Warnings in a pipeline's offset: tables whose snapshots were given up, changes that the source does not send."""
    from tailrace.snapshot.progress import Progress as Snapshots

    state = Snapshots.from_json(offset.get("snapshots"))
    return (*map(str, state.incomplete), *state.warnings)


def _fields(progress: Progress) -> dict[str, Any]:
    """What a line of progress has in JSON besides its text."""
    return {"position": progress.position, "batch": progress.batch, "events": progress.events}


def line(progress: Progress, events_per_second: float) -> str:
    """Progress for people."""
    if progress.batch is None:
        return str(progress.snapshot)
    snapshot = f"; {progress.snapshot}" if progress.snapshot else ""
    rate = f"{events_per_second:,.{int(events_per_second < 10)}f}"
    return f"{progress.events:,} events, {rate}/s, at {_place(progress)}{snapshot}"


def waiting(progress: Progress, position: Callable[[], str]) -> str:
    """What a pipeline does while it reports nothing new. Before its first micro-batch a run may be far into the log."""
    activity, seconds = progress.activity, progress.activity_seconds
    if activity == RESTARTS:
        return f"the query is started again in {seconds:,.0f} s; {progress.events:,} events so far"
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
        here = None if done is None else definition.admin().position(done.offset)
    except TailraceError as error:
        log.info("the position of the checkpoint cannot be read: %s", error)
        return ""
    if done is None:
        return "the checkpoint has none yet"
    place = done.offset.get("phase") if here is None else here.to_text()
    return f"the checkpoint is at micro-batch {done.number}" + (f", {place}" if place else "")


def _place(progress: Progress) -> str:
    """The position, and how much of the log is behind it."""
    place = progress.position or progress.offset.get("phase") or "the beginning"
    behind = progress.latest.get("lag_bytes")
    return f"{place}, {size(behind)} of log behind" if behind else str(place)
