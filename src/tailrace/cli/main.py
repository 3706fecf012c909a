"""The entry point of the command line: collects the commands, and turns errors into messages and exit codes.

Exit codes: 0 done; 1 an error, named with its remedy; 2 wrong usage; 3 warnings only; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from tailrace.cli import (
    add,
    check,
    demo,
    doctor,
    drop,
    init,
    offset,
    reconcile,
    remove,
    retry,
    run,
    signal,
    status,
    verify,
)
from tailrace.cli.terminal import LOG_FORMAT, print_error
from tailrace.errors import TailraceError
from tailrace.version import __version__

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
for module in (run, check, verify, init, status, reconcile, retry, signal, add, remove, drop, offset, doctor, demo):
    app.command(module.__name__.rpartition(".")[2])(module.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tailrace {__version__}")
        raise typer.Exit


@app.callback()
def tailrace(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks (anywhere on the line).")] = False,
) -> None:
    """Change data capture with Debezium's events and properties, on Spark."""


def _run() -> None:
    try:
        app()
    except ModuleNotFoundError as error:
        if error.name == "pyspark":
            import tailrace.spark  # noqa: F401  # says what is missing, and how to install it
        raise


def main() -> None:
    """Runs the command line of this process."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format=LOG_FORMAT)
    # It prints the traceback of a failed batch, but the user gets a message.
    logging.getLogger("py4j").setLevel(logging.INFO if debug else logging.CRITICAL)
    try:
        _run()
    except TailraceError as error:
        if debug:
            raise
        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
