"""The process that asks the probes: what ends it, such as a fault of a driver, ends no more than one of them.

It gets its task by its standard input and tells what it does by its standard output, pickled. Its secrets are in no
command line and in no environment.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from tailrace.config import Config
from tailrace.connectors import registry
from tailrace.verify.runner import Asked, Job, Result, ask_all

# As a module of its own name, by which its classes are found again.
COMMAND = (sys.executable, "-c", "from tailrace.verify.worker import main; main()")


@dataclass(frozen=True)
class Task:
    """What a worker is started for; `level` is that of its log."""

    connector: str
    config: Config
    schema: str
    job: Job
    level: int


@dataclass(frozen=True)
class Begun:
    """A probe is being asked. `refused` is Bench.refused."""

    asked: Asked
    refused: Mapping[str, str]


@dataclass(frozen=True)
class WorkerEnded:
    """Nothing is left to ask."""


Message = Begun | Result | WorkerEnded


def read(source: IO[bytes]) -> Message | None:
    """The next message, None at the end."""
    try:
        message: Message = pickle.load(source)
    except (EOFError, pickle.UnpicklingError):
        return None
    return message


def _redirect(target: int | None) -> None:
    """Have what is printed go to a file descriptor, None for nowhere."""
    opened = os.open(os.devnull, os.O_WRONLY) if target is None else target
    for number in (1, 2):
        os.dup2(opened, number)


def _end_with(source: int) -> None:
    """End when the process at the other end has: it may have been killed, and a probe may wait for minutes."""
    # Not through Python's buffer, whose lock the interpreter wants when it ends.
    while os.read(source, 1):
        pass
    os._exit(1)


def main() -> None:
    """Ask the probes of the task."""
    task: Task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), name="tailrace-verify", daemon=True).start()
    out = os.fdopen(os.dup(1), "wb")
    logging.basicConfig(level=task.level, stream=os.fdopen(os.dup(2), "w"))
    # What a library prints must not come among the messages, nor what processes tell that the connector starts.
    _redirect(sys.stderr.fileno() if task.level < logging.WARNING else None)

    def send(message: Any) -> None:
        pickle.dump(message, out)
        out.flush()

    package = registry.named(task.connector).load()
    bench = package.bench(task.config, task.schema)
    ask_all(bench, package, task.job, lambda asked: send(Begun(asked, dict(bench.refused))), send)
    bench.close()
    send(WorkerEnded())
