"""Serves the pipelines of this process by HTTP: which path is answered by whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.errors import ConfigError
from tailrace.operate import console, probes
from tailrace.operate.actions import Actions
from tailrace.operate.connect_api import ConnectApi
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.pipelines import SinglePipeline as SinglePipeline
from tailrace.operate.server import DEFAULT_HOST, Answer, HttpRequest, Refusal, Response, Server
from tailrace.pipeline.definition import HttpSection


def address(text: str) -> HttpSection:
    """The place that `--http` names, `PORT` or `HOST:PORT`. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ConfigError(
            f"{text} is no port", where="--http", remedy="write a port, or a host and a port: 9404, ::1:9404"
        )
    return HttpSection(port=int(port), host=host.strip("[]") or DEFAULT_HOST)


@contextmanager
def serving(pipelines: Pipelines, place: HttpSection) -> Iterator[str]:
    """Serves the pipelines meanwhile, at the address that it gives. Raises ConfigError."""
    probes.demand_metrics()
    server = Server(answers(pipelines), place.port, place.host)
    try:
        yield server.url
    finally:
        server.close()


def answers(pipelines: Pipelines) -> Answer:
    """What answers a request."""
    connect, actions = ConnectApi(pipelines), Actions(pipelines)

    def answer(request: HttpRequest) -> Response:
        for part in (console.answer, lambda asked: probes.answer(asked, pipelines), actions.answer, connect.answer):
            response = part(request)
            if response is not None:
                return response
        raise Refusal(404, f"there is nothing at {request.path}")

    return answer
