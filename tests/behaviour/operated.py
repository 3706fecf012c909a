"""A pipeline whose figures are served, and what is asked of it."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tailrace.errors import TailraceError
from tailrace.operate.serving import SinglePipeline, serving
from tailrace.operate.steering import Steering
from tailrace.operate.watch import RunWatch
from tailrace.pipeline.definition import Definition, HttpSection
from tailrace.pipeline.runner import Pipeline, Run

# How long a busy machine may take to come to what is waited for.
PATIENCE = 120.0


@dataclass
class Asked:
    """The server of a pipeline, as a client sees it."""

    url: str

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Status and body of an answer."""
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path: str) -> Any:
        """An answer as JSON."""
        return json.loads(self.get(path)[1])

    def health(self, path: str = "/ready") -> tuple[int, str, str, str]:
        """The HTTP status, and the condition of the one pipeline, what is the matter, and what to do."""
        status, body = self.get(path)
        (found,) = json.loads(body)["pipelines"]
        return status, found["condition"], found["what"], found["todo"]

    def metric(self, name: str, /, **labels: str) -> float | None:
        """The value of a metric that has at least these labels."""
        for line in self.get("/metrics")[1].decode().splitlines():
            match = re.fullmatch(r"([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)", line)
            if match is None or match[1] != name:
                continue
            given = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            if labels.items() <= given.items():
                return float(match[3])
        return None

    def until(self, condition: str, seconds: float = PATIENCE) -> tuple[int, str, str, str]:
        """Wait until the pipeline is in a condition; what is said then."""
        self.eventually(lambda: self.health()[1] == condition, seconds, self.health)
        return self.health()

    def eventually(self, is_so: Callable[[], bool], seconds: float, shown: Callable[[], object] = str) -> None:
        """Wait until it is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, shown()
            time.sleep(0.2)


@dataclass
class Operated(Asked):
    """The same with the pipeline's run."""

    run: Run


@contextmanager
def operated(definition: Definition, spark: SparkSession) -> Iterator[Operated]:
    """Runs a pipeline and serves its figures, as `tailrace run --http` does."""
    watch, over = RunWatch(definition), threading.Event()
    watch.starting()
    run = Pipeline(definition, spark).start()

    def follow() -> None:
        try:
            while not over.is_set() and not run.await_(0.5):
                watch.said(run.progress())
            watch.ended()
        except TailraceError as error:
            watch.ended(error)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        with serving(SinglePipeline(watch, Steering()), HttpSection(port=0)) as url:
            yield Operated(url, run)
    finally:
        over.set()
        thread.join()
        run.stop()
        watch.close()
