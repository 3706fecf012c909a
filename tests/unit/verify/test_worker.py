"""The process that asks the probes, and the one that has started it."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys

from tailrace.connectors import registry
from tailrace.verify.runner import Job
from tailrace.verify.worker import Task

# A probe that waits for minutes, as for a capture program that does not run.
WAITING = (
    "import sys, time; from tailrace.verify import worker; "
    "worker.ask_all = lambda *_: (print('asked', file=sys.stderr, flush=True), time.sleep(600)); worker.main()"
)


def test_a_worker_ends_with_the_process_that_started_it() -> None:
    given = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    config = registry.named("postgres").load().resolve(given)
    task = pickle.dumps(Task("postgres", config, "s", Job(), logging.INFO))
    worker = subprocess.Popen([sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert worker.stdin is not None
    assert worker.stderr is not None
    worker.stdin.write(task)
    worker.stdin.flush()
    assert worker.stderr.readline() == b"asked\n"
    worker.stdin.close()
    assert worker.wait(timeout=30) == 1
    worker.stderr.close()
