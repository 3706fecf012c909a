"""Answers `/metrics`, `/health`, `/ready`, `/status` and `/log`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tailrace.errors import ConfigError
from tailrace.operate import recent
from tailrace.operate.condition import Condition
from tailrace.operate.health import Health, health
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.server import HttpRequest, Response
from tailrace.operate.watch import Figures


def demand_metrics() -> None:
    """Raises ConfigError without the package that writes metrics."""
    try:
        import prometheus_client  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(
            "the package prometheus-client is not installed", where="http", remedy="pip install 'tailrace[operate]'"
        ) from error


def answer(request: HttpRequest, pipelines: Pipelines) -> Response | None:
    """The answer, None for another path. Raises Refusal."""
    if request.method not in ("GET", "HEAD"):
        return None
    if request.path == "/metrics":
        from tailrace.operate.metrics import CONTENT_TYPE, exposition

        return Response(exposition(pipelines.figures(), pipelines.broken()), type=CONTENT_TYPE)
    if request.path in ("/health", "/ready"):
        wrong = [
            Health(file, Condition.FAILED, str(error).partition("\n  Remedy: ")[0], error.remedy or "")
            for file, error in pipelines.broken().items()
        ]
        return _probe(request, [*(health(figures.status) for figures in pipelines.figures()), *wrong])
    if request.path == "/log":
        return Response(recent.newest_first())
    if request.path == "/status":
        return Response([shown(figures) for figures in pipelines.figures()])
    return None


def _probe(request: HttpRequest, pipelines: Sequence[Health]) -> Response:
    """200 if all pipelines are alive, or ready; else 503. A process without pipelines is alive, and not ready."""
    if request.path == "/health":
        is_well = all(each.condition.is_alive for each in pipelines)
    else:
        is_well = bool(pipelines) and all(each.condition.is_ready for each in pipelines)
    body: dict[str, Any] = {"status": "UP" if is_well else "DOWN"}
    if request.is_trusted:
        body["pipelines"] = [said(each) for each in pipelines]
    return Response(body, 200 if is_well else 503)


def said(state: Health) -> dict[str, str]:
    """The health of a pipeline as JSON."""
    return {"name": state.name, "condition": state.condition.value, "what": state.what, "todo": state.todo}


def shown(figures: Figures) -> dict[str, Any]:
    """All figures of a pipeline as JSON, for the console and for scripts."""
    status = figures.status.to_json()
    progress = figures.progress
    return {
        **status,
        **said(health(figures.status)),
        "events": figures.totals.events,
        "batches": figures.totals.batches,
        "restarts": figures.totals.restarts,
        "starts": figures.starts,
        "rows": dict(figures.totals.rows),
        "read_bytes": figures.read_bytes,
        "read_seconds": figures.read_seconds,
        "at": figures.at,
        "newest": [] if progress is None else list(reversed(progress.batches.newest)),
        "stages": {} if progress is None else dict(progress.batches.last),
        "snapshot_text": None if figures.status.snapshot is None else str(figures.status.snapshot),
        "details": [asdict(each) for each in figures.status.details],
    }
