"""Shows the figures of pipelines to others while they run: by HTTP, and by OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tailrace.cli.terminal import notes
from tailrace.operate.otlp import exporting
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.serving import serving
from tailrace.pipeline.definition import HttpSection


@contextmanager
def shown(pipelines: Pipelines, place: HttpSection | None, *, otlp: bool) -> Iterator[None]:
    """Serves figures at a place, if there is one, and exports them, if that is wanted."""
    with ExitStack() as stack:
        if place is not None:
            notes.print(f"Metrics, health and console: {stack.enter_context(serving(pipelines, place))}")
        if otlp:
            stack.enter_context(exporting(pipelines))
        yield
