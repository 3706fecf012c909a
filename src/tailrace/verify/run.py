"""Runs `verify`: workers ask the probes, this process drops what they have made, whatever becomes of them."""

from __future__ import annotations

import logging
import pickle
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tailrace.connectors.probe import Answer, Bench, Probe
from tailrace.connectors.registry import ConnectorEntry
from tailrace.errors import ConfigError
from tailrace.verify.clean_up import clean_up
from tailrace.verify.runner import DIFFERS, ERROR, PREPARE, READ_ONLY, UNPREPARED, Asked, Job, Result, failed
from tailrace.verify.worker import COMMAND, Begun, Message, Task, WorkerEnded, read

log = logging.getLogger(__name__)
# A probe waits several times for the server, each time as long as the bench says.
_WAITS = 5
_BEFORE_FIRST = Asked("drivers.load", "Can the driver be used?", "It can.", {})


@dataclass
class VerifyRun:
    """All results; `left` are commands for what could not be dropped."""

    results: list[Result] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def is_as_expected(self) -> bool:
        """Whether nothing differs, fails or is left on the server, and all was asked."""
        return not (self.left or self.is_interrupted or any(each.outcome in (DIFFERS, ERROR) for each in self.results))


def run(entry: ConnectorEntry, bench: Bench, *, read_only: bool, tell: Callable[[Result], None]) -> VerifyRun:
    """Ask all probes, and drop what they have made; `tell` is given each result as it comes.

    Raises SourceError if the server cannot be reached, ConfigError if there is a schema of the command's name.
    """
    done = VerifyRun()

    def told(result: Result) -> None:
        done.results.append(result)
        tell(result)

    with bench.failures.translated("the server cannot be asked"):
        bench.connect(bench.config)
        job = _job(bench, told, read_only=read_only)
        bench.close()
    try:
        _ask(entry, bench, job, told)
    except KeyboardInterrupt:
        done.is_interrupted = True
    finally:
        done.left = [] if job.skips else clean_up(bench)
    return done


def _job(bench: Bench, told: Callable[[Result], None], *, read_only: bool) -> Job:
    """What may be asked."""
    if read_only:
        return Job(skips=READ_ONLY)
    if bench.exists():
        remedy = (
            "if an earlier run was killed, run the same command with --drop, which drops what that run made; otherwise "
            "name another one by --schema"
        )
        raise ConfigError("exists already", where=f"the schema {bench.schema}", remedy=remedy)
    obstacle = bench.obstacle()
    if obstacle is None:
        return Job()
    asked = Asked.of(Probe(PREPARE, "Can the command make captured tables?", "", Answer))
    means = f"Nothing that writes can be tried: {obstacle.what}. Remedy: {obstacle.remedy}"
    told(Result(asked, ERROR, {"obstacle": obstacle.name}, means=(means,)))
    return Job(skips=UNPREPARED)


def _ask(entry: ConnectorEntry, bench: Bench, job: Job, told: Callable[[Result], None]) -> None:
    """Have workers ask the probes, another one where one has ended before its time."""
    level = logging.getLogger("tailrace").getEffectiveLevel()
    following: Job | None = job
    while following is not None:
        task = Task(entry.name, bench.config, bench.schema, following, level)
        following = _ask_some(task, bench.deadline_s * _WAITS, told)


def _ask_some(task: Task, patience: float, told: Callable[[Result], None]) -> Job | None:
    """Have one worker ask; what is left to ask if it ends before its time."""
    current, begin, refused = _BEFORE_FIRST, time.monotonic(), task.job.refused
    done = set(task.job.done)
    with _messages(task, patience) as messages:
        for message in messages:
            if isinstance(message, Begun):
                current, refused, begin = message.asked, message.refused, time.monotonic()
            elif isinstance(message, Result):
                told(message)
                done.add(message.asked.name)
            elif isinstance(message, _Broken):
                told(failed(current, {"error": str(message)}, round((time.monotonic() - begin) * 1000)))
                if current is _BEFORE_FIRST:
                    return None
                skips = UNPREPARED if current.name == PREPARE else task.job.skips
                return Job(skips, frozenset({*done, current.name}), refused)
    return None


class _Broken(str):
    """Why a worker has ended before its time."""


@contextmanager
def _messages(task: Task, patience: float) -> Iterator[Iterator[Message | _Broken]]:
    """What a worker says, until it has ended. Signals of the terminal are for this process alone.

    Its standard input stays open as long as this process lives, which a worker must not outlive.
    """
    worker = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    arrived: queue.Queue[Message | None] = queue.Queue()
    source = worker.stdout

    def listen() -> None:
        try:
            while (message := read(source)) is not None:
                arrived.put(message)
        finally:
            arrived.put(None)

    listener = threading.Thread(target=listen, name="tailrace-verify", daemon=True)
    try:
        with suppress(BrokenPipeError):
            pickle.dump(task, worker.stdin)
            worker.stdin.flush()
        listener.start()
        yield _until_end(arrived, worker, patience)
    finally:
        worker.kill()
        worker.wait()
        if listener.ident is not None:
            listener.join()
        source.close()
        with suppress(BrokenPipeError):
            worker.stdin.close()


def _until_end(
    arrived: queue.Queue[Message | None], worker: subprocess.Popen[bytes], patience: float
) -> Iterator[Message | _Broken]:
    while True:
        try:
            message = arrived.get(timeout=patience)
        except queue.Empty:
            yield _Broken("no answer")
            return
        if message is None:
            code = worker.wait()
            yield _Broken(f"the process ended by signal {-code}" if code < 0 else f"the process ended with {code}")
            return
        yield message
        if isinstance(message, WorkerEnded):
            return
