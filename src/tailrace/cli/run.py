"""`tailrace run`: runs a pipeline until it ends or is stopped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from tailrace.cli.run_output import LOOK_SECONDS, ProgressPrinter, WarningPrinter, checkpoint_position
from tailrace.cli.stop import StopRequest, stop_on_signals
from tailrace.cli.terminal import notes, set_about, stamp_lines
from tailrace.errors import SinkError, TailraceError
from tailrace.operate.steering import Steering
from tailrace.pipeline.log import LogFile

if TYPE_CHECKING:
    from tailrace.operate.watch import RunWatch
    from tailrace.pipeline.definition import Definition
    from tailrace.pipeline.runner import Pipeline, Run

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
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Export metrics by OpenTelemetry; its OTEL_* variables say where to.")
    ] = False,
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

        return run_folder(pipeline, http, once=once, json=json, otlp=otlp)
    definition = load(pipeline)
    if notes.is_json:
        set_about(pipeline=definition.name)
    if once:
        definition = definition.model_copy(update={"trigger": "availableNow"})
    steering = Steering()
    with watched(definition, http, pipeline, steering, otlp=otlp) as watch:
        run(Pipeline(definition), json, watch, steering)


def run(runner: Pipeline, json: bool, watch: RunWatch | None, steering: Steering) -> None:
    """Runs a pipeline until it ends or is stopped. Raises what ends it, and typer.Exit after a signal."""
    definition = runner.definition
    _check(definition)
    notes.print(f"Starting [bold]{definition.name}[/] (Spark's own log: {runner.log})")
    running: Run | None = None
    with stop_on_signals() as asked:
        try:
            with notes.status("Starting Spark"):
                # Spark outlives a run that is paused or restarted, which only who is served by HTTP can ask for.
                runner = runner if watch is None else runner.with_session()
                running = runner.start()
            asked.listen()
            warnings = WarningPrinter(LogFile(runner.log), tuple(map(str, definition.config().warnings)))
            while running is not None:
                printer = ProgressPrinter(json, lambda: checkpoint_position(definition))
                follow(running, asked, steering, warnings, printer, watch)
                if asked or watch is None or not steering.ends_run:
                    break
                stop(running)
                running = _rested(runner, asked, steering, watch)
        except TailraceError as error:
            # Java and the workers may have got the signal as well, and have ended before this process.
            if not asked.soon():
                raise
            log.info("the pipeline ended while it was stopped: %s", error)
        finally:
            if asked:
                notes.print("Stopping")
                stop(running)
            if watch is not None:
                runner.close()
    if asked.code:
        raise typer.Exit(asked.code)
    lacking = () if running is None else (*running.set_aside, *running.incomplete)
    if not asked and lacking:
        raise SinkError("all that there was has been read, but\n  " + "\n  ".join(lacking))


def _check(definition: Definition) -> None:
    """Print what a check finds before the start. Raises what keeps the pipeline from starting."""
    from tailrace.pipeline.preflight import before_start

    with notes.status("Checking database and sink"):
        findings = before_start(definition)
    for finding in findings:
        mark = "[yellow]Warning[/]" if finding.ok is None else "[red]Problem[/]"
        notes.print(f"{mark} {escape(f'{finding.name}: {finding.what}; remedy: {finding.remedy}')}")


def _rested(runner: Pipeline, asked: StopRequest, steering: Steering, watch: RunWatch) -> Run | None:
    """Wait until a pipeline that was paused, stopped or restarted is to run, and start it; None after a signal."""
    watch.ended(is_paused=steering.wanted == "paused")
    if steering.wanted != "running":
        notes.print(f"The pipeline is {steering.wanted} until it is resumed by HTTP")
    while not steering.waits(LOOK_SECONDS):
        if asked:
            return None
    notes.print("Starting")
    watch.starting()
    return runner.start()


def follow(
    running: Run,
    asked: StopRequest,
    steering: Steering,
    warnings_printer: WarningPrinter,
    printer: ProgressPrinter,
    watch: RunWatch | None = None,
) -> None:
    """Prints progress and warnings until the run ends or is to be stopped; `watch` is told the former."""
    try:
        while not asked and not steering.ends_run and not running.await_(LOOK_SECONDS):
            progress = running.progress()
            printer.show(progress)
            if watch is not None:
                watch.said(progress)
            warnings_printer.show()
        printer.show(running.progress(), last=True)
    finally:
        warnings_printer.show()


@contextmanager
def watched(
    definition: Definition, http: str | None, file: Path, steering: Steering, *, otlp: bool
) -> Iterator[RunWatch | None]:
    """Serves the figures of a pipeline where `--http`, or else its file, says so, and exports them with `--otlp`.

    None where neither is wanted.
    """
    from tailrace.cli.shown import shown
    from tailrace.operate.serving import SinglePipeline, address

    place = address(http) if http is not None else definition.http
    if place is None and not otlp:
        yield None
        return
    from tailrace.operate.watch import RunWatch

    watch = RunWatch(definition)
    watch.starting()
    try:
        with shown(SinglePipeline(watch, steering, file), place, otlp=otlp):
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
