"""Holds our answers beside those of a worker of Kafka Connect, see record_connect.py: statuses, forms and states."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tailrace.operate.connect_api import ConnectApi
from tailrace.operate.pipelines import SinglePipeline
from tailrace.operate.server import HttpRequest, Refusal
from tailrace.operate.steering import Steering
from tailrace.operate.watch import Figures
from tailrace.override import override
from tests.unit.operate.made import figures
from tests.unit.operate.record_connect import FILE, PLUGIN, REQUESTS

OURS = "io.debezium.connector.postgresql.PostgresConnector"
EXCHANGE: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
# What is another thing here than there: the properties of a file's connector, and the names of a file's position.
OWN = {"config", "partition", "offset", "groups"}
# Offsets are dropped on the server, of which there is none.
RESET = ("DELETE", "/connectors/shop/offsets")
# Our loggers have the names of Python's modules.
LOGGERS = {"/admin/loggers/org.apache.kafka.connect": "/admin/loggers/tailrace"}


class Followed(SinglePipeline):
    """A pipeline that is at once what is wanted of it."""

    def __init__(self, found: Figures) -> None:
        self.followed, self.found = Steering(), found

    @override
    def figures(self) -> list[Figures]:
        wanted = self.followed.wanted
        run = replace(self.found.status.run, state="running" if wanted == "running" else "stopped")  # type: ignore[type-var]
        live = replace(self.found.status.live, is_paused=wanted == "paused")  # type: ignore[type-var]
        return [replace(self.found, status=replace(self.found.status, run=run, live=live))]

    @override
    def steering(self, name: str) -> Steering:
        return self.followed


def answered(api: ConnectApi, each: Mapping[str, Any]) -> tuple[int, Any]:
    path, _, query = LOGGERS.get(each["path"], each["path"]).replace(PLUGIN, OURS).partition("?")
    found = dict(parse_qsl(query))
    if "expand" in found:
        found["expand"] = "info,status"
    sent = None if each["sent"] is None else json.dumps(each["sent"]).replace(PLUGIN, OURS).encode()
    try:
        response = api.answer(HttpRequest(each["method"], path, found, body=sent or b""))
    except Refusal as refusal:
        response = refusal.response
    assert response is not None
    return response.status, json.loads(response.content or b"null")


def lacking(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Where our answer has not the form of theirs; what it has besides is left to who reads it."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return [
            line
            for name, value in theirs.items()
            for line in ([f"{place}.{name} is not there"] if name not in ours else [])
            + ([] if name in OWN or name not in ours else lacking(ours[name], value, f"{place}.{name}"))
        ]
    if isinstance(theirs, list) and isinstance(ours, list):
        return (
            [f"{place} is empty"]
            if theirs and not ours
            else lacking(ours[0], theirs[0], f"{place}[0]")
            if theirs
            else []
        )
    is_alike = type(ours) is type(theirs) or None in (ours, theirs)
    return [] if is_alike else [f"{place} is {ours!r}, there {theirs!r}"]


@pytest.fixture(scope="module")
def both() -> Iterator[list[tuple[dict[str, Any], int, Any]]]:
    """Each request with our answer, in order."""
    api, logger = ConnectApi(Followed(figures())), logging.getLogger("tailrace")
    level, asked = logger.level, [each for each in EXCHANGE if (each["method"], each["path"]) != RESET]
    yield [(each, *answered(api, each)) for each in asked]
    logger.setLevel(level)


def test_the_recording_is_that_of_the_requests() -> None:
    assert [(each["method"], each["path"]) for each in EXCHANGE] == [
        (method, path.partition(" ")[0]) for method, path, _ in REQUESTS
    ]


def test_statuses_and_forms_are_those_of_a_worker(both: list[tuple[dict[str, Any], int, Any]]) -> None:
    for each, status, found in both:
        asked = f"{each['method']} {each['path']}"
        assert status == each["status"], (asked, found)
        if not each["path"].endswith("/shop/config"):
            assert lacking(found, each["answer"], asked) == []


def test_states_are_those_of_a_worker_also_where_a_paused_or_stopped_connector_is_restarted(
    both: list[tuple[dict[str, Any], int, Any]],
) -> None:
    states = [(each, found) for each, _, found in both if "connector" in (each["answer"] or ())]
    assert len(states) > 5
    for each, found in states:
        assert found["connector"]["state"] == each["answer"]["connector"]["state"], each["path"]
        assert [task["state"] for task in found["tasks"]] == [task["state"] for task in each["answer"]["tasks"]]
