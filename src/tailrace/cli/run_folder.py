"""`tailrace run FOLDER`: runs the pipelines of a folder in one process."""

from __future__ import annotations

import time
from pathlib import Path

import typer
from rich.markup import escape

from tailrace.cli.run_output import ProgressPrinter, WarningPrinter, checkpoint_position
from tailrace.cli.shown import shown
from tailrace.cli.stop import StopRequest, stop_on_signals
from tailrace.cli.terminal import notes, print_error, set_about
from tailrace.connectors.finding import Finding
from tailrace.errors import ConfigError, TailraceError
from tailrace.operate.fleet import Fleet, files, log_of, settings
from tailrace.operate.member import Listener
from tailrace.operate.serving import address
from tailrace.override import override
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.log import LogFile
from tailrace.pipeline.progress import RunProgress
from tailrace.pipeline.shared_session import SharedSession

# How often the files are looked at, and the log.
_LOOK_SECONDS = 2.0
_STEP_SECONDS = 0.2


def run_folder(folder: Path, http: str | None, *, once: bool, json: bool, otlp: bool) -> None:
    """Runs all pipelines of a folder until a signal, or with `once` until all have ended. Raises TailraceError."""
    definitions = _readable(folder)
    if once and not definitions:
        raise ConfigError("holds no pipeline file (*.yaml) that can be read", where=str(folder))
    shared = settings(definitions)
    log = log_of(folder)
    notes.print(f"Starting the pipelines of [bold]{escape(str(folder))}[/] (Spark's own log: {escape(str(log))})")
    with stop_on_signals() as asked:
        with notes.status("Starting Spark"):
            in_java = any(definition.rows_in_java for definition in definitions) or not definitions
            session = SharedSession(folder.resolve().name or "tailrace", log, shared, rows_in_java=in_java)
        asked.listen()
        fleet = Fleet(folder, session, shared, lambda definition: Printer(definition, json), _refused, once=once)
        try:
            with shown(fleet, None if http is None else address(http), otlp=otlp):
                _follow(fleet, session, asked, WarningPrinter(LogFile(log)), once=once)
            if asked:
                notes.print("Stopping")
        finally:
            fleet.close()
            session.stop()
    if asked.code:
        raise typer.Exit(asked.code)
    if once and fleet.errors:
        raise typer.Exit(1)


def _readable(folder: Path) -> list[Definition]:
    """The definitions of a folder; what is wrong with the others is reported when they are started."""
    return [definition for file in files(folder) if (definition := _definition(file)) is not None]


def _definition(file: Path) -> Definition | None:
    try:
        return load(file)
    except TailraceError:
        return None


def _follow(fleet: Fleet, session: SharedSession, asked: StopRequest, log: WarningPrinter, *, once: bool) -> None:
    """Follows files and log until a signal, or until all pipelines have ended. Raises TailraceError without Java."""
    fleet.look()
    looked = time.monotonic()
    while not asked and not (once and fleet.is_over):
        time.sleep(_STEP_SECONDS)
        if not once and time.monotonic() - looked >= _LOOK_SECONDS:
            looked = time.monotonic()
            fleet.look()
            log.show()
            _demand_java(session, asked)
    log.show()


def _demand_java(session: SharedSession, asked: StopRequest) -> None:
    if session.has_ended and not asked.soon():
        raise TailraceError(
            "the Java process of Spark has ended, and all pipelines of this process with it",
            remedy="start again: each pipeline resumes from its checkpoint; if it comes again, see Spark's log, and "
            "whether the machine is short of memory",
        )


def _refused(file: Path, error: TailraceError) -> None:
    notes.print(f"[red]Problem[/] {escape(str(error))}", fields={"file": file.name})


class Printer(Listener):
    """Prints what happens to one pipeline."""

    def __init__(self, definition: Definition, json: bool) -> None:
        self._definition, self._json = definition, json
        self._printer: ProgressPrinter
        self._last: RunProgress | None = None

    @override
    def begins(self) -> None:
        name = self._definition.name
        set_about(pipeline=name)
        self._printer = ProgressPrinter(self._json, lambda: checkpoint_position(self._definition), name)

    @override
    def checked(self, findings: list[Finding]) -> None:
        for finding in findings:
            mark = "[yellow]Warning[/]" if finding.ok is None else "[red]Problem[/]"
            notes.print(f"{mark} {escape(f'{finding.name}: {finding.what}; remedy: {finding.remedy}')}")
        notes.print("Starting")

    @override
    def goes_on(self, progress: RunProgress, *, last: bool = False) -> None:
        self._printer.show(progress, last=last)
        self._last = progress

    @override
    def failed(self, error: TailraceError, seconds: float | None) -> None:
        print_error(error)
        if seconds is not None:
            notes.print(f"The pipeline is started again in {seconds:.0f} s; the others go on")

    @override
    def ends(self, why: str) -> None:
        place = None if self._last is None else self._last.position
        at = f", at {place}" if place else ""
        notes.print(f"Ended: {why}{at}", fields={"position": place})
