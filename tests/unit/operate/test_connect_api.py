"""Kafka Connect's REST interface: the forms of its answers, and that no secret is in any."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tailrace.connectors import registry
from tailrace.operate.connect_api import ConnectApi
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.server import HttpRequest, Refusal
from tailrace.operate.steering import Steering, Wanted
from tailrace.operate.watch import Figures
from tailrace.pipeline.run_state import Ended, RunState, State
from tests.unit.operate import kcctl
from tests.unit.operate.made import CONFIGS, figures

CLASS = "io.debezium.connector.postgresql.PostgresConnector"


class Some(Pipelines):
    def __init__(self, *found: Figures) -> None:
        self.found, self.done = found, list[str]()

    def figures(self) -> Sequence[Figures]:
        return self.found

    def steering(self, name: str) -> Steering:
        return Noted(name, self.done)


class Noted(Steering):
    """Notes what is asked for."""

    def __init__(self, name: str, done: list[str]) -> None:
        super().__init__()
        self.name, self.done = name, done

    def want(self, wanted: Wanted) -> None:
        self.done.append(f"{wanted} {self.name}")

    def restart(self) -> None:
        self.done.append(f"restart {self.name}")


def asked(pipelines: Pipelines, path: str, method: str = "GET", body: Any = None, **query: str) -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    response = ConnectApi(pipelines).answer(HttpRequest(method, path, query, body=content))
    assert response is not None
    return response.body


def status_of(pipelines: Pipelines, path: str, method: str, body: Any = None, **query: str) -> int:
    content = b"" if body is None else json.dumps(body).encode()
    try:
        response = ConnectApi(pipelines).answer(HttpRequest(method, path, query, body=content))
    except Refusal as refusal:
        return refusal.status
    assert response is not None
    return response.status


def by_path(pipelines: Pipelines, path: str) -> Any:
    """The answer to a request as it is sent."""
    place, _, query = path.partition("?")
    return json.loads(json.dumps(asked(pipelines, place, **dict(parse_qsl(query)))))


@pytest.mark.parametrize("connector", CONFIGS)
@pytest.mark.parametrize("state", ["running", "failed", "stopped", "never started", "killed"])
def test_kcctl_reads_all_that_it_prints(connector: str, state: State) -> None:
    found = figures(connector)
    last = Ended("noon", "the log is gone") if state == "failed" else None
    status = replace(found.status, run=RunState(state, None, last), live=None)
    status = replace(status, offset=None) if state == "never started" else status
    pipelines = Some(replace(found, status=status))
    (plugin,) = (entry.classes[0] for entry in registry.BUILT_IN.values() if entry.name == connector)
    for name in (plugin, plugin.rpartition(".")[2]):
        kcctl.check_reads(lambda path: by_path(pipelines, path), "shop", name)
    validated = asked(pipelines, f"/connector-plugins/{plugin}/config/validate", "PUT", {"name": "dummy-name"})
    assert kcctl.wrong(validated, kcctl.VALIDATED) == []
    assert validated["error_count"] > 0
    restarted = asked(pipelines, "/connectors/shop/restart", "POST", includeTasks="true", onlyFailed="false")
    assert kcctl.wrong(restarted, kcctl.STATUS) == []
    assert [task["state"] for task in restarted["tasks"]] == ["RESTARTING"], "kcctl counts them"


def test_what_is_refused_has_the_form_that_kcctl_reads() -> None:
    for method, path in (("POST", "/connectors"), ("PUT", "/connectors/shop/config"), ("GET", "/connectors/none")):
        with pytest.raises(Refusal) as refused:
            ConnectApi(Some(figures())).answer(HttpRequest(method, path, {}))
        assert kcctl.wrong(refused.value.response.body, kcctl.ERROR) == []
        # On this word, or on 409, kcctl asks again for 30 seconds.
        assert "rebalance" not in str(refused.value)
        assert refused.value.status != 409


def test_the_requests_of_kcctl() -> None:
    pipelines = Some(figures(), figures(name="other"))
    assert set(asked(pipelines, "/")) == {"version", "commit", "kafka_cluster_id"}
    assert asked(pipelines, "/connectors") == ["shop", "other"]
    found = asked(pipelines, "/connectors", expand="info,status")
    assert set(found) == {"shop", "other"}
    assert set(found["shop"]["info"]) == {"name", "config", "tasks", "type"}
    assert found["shop"]["info"]["config"]["connector.class"] == CLASS
    assert found["shop"]["info"]["config"]["topic.prefix"] == "shop.prefix"
    status = found["shop"]["status"]
    assert (status["connector"]["state"], [task["id"] for task in status["tasks"]]) == ("RUNNING", [0])
    assert asked(pipelines, "/connectors/shop") == found["shop"]["info"]
    assert asked(pipelines, "/connectors/shop/config") == found["shop"]["info"]["config"]
    assert asked(pipelines, "/connectors/shop/tasks")[0]["id"] == {"connector": "shop", "task": 0}
    assert asked(pipelines, "/connectors/shop/tasks/0/status")["state"] == "RUNNING"
    assert asked(pipelines, "/connectors/shop/topics") == {"shop": {"topics": ["shop.prefix.public.orders"]}}
    (offset,) = asked(pipelines, "/connectors/shop/offsets")["offsets"]
    assert offset == {"partition": {"server": "shop.prefix"}, "offset": {"phase": "stream", "position": "0/180"}}
    assert CLASS in [each["class"] for each in asked(pipelines, "/connector-plugins")]
    for name in (CLASS, "PostgresConnector"):
        names = [each["name"] for each in asked(pipelines, f"/connector-plugins/{name}/config")]
        assert "database.hostname" in names


def test_what_is_done_to_connectors() -> None:
    pipelines = Some(figures())
    for method, path, status, query in (
        ("PUT", "pause", 202, {}),
        ("PUT", "resume", 202, {}),
        ("PUT", "stop", 204, {}),
        ("POST", "restart", 204, {}),
        ("POST", "restart", 202, {"includeTasks": "true"}),
        ("POST", "tasks/0/restart", 204, {}),
        ("POST", "restart", 204, {"onlyFailed": "true"}),
    ):
        assert status_of(pipelines, f"/connectors/shop/{path}", method, **query) == status
    assert pipelines.done == [f"{each} shop" for each in ("paused", "running", "stopped", *["restart"] * 3)]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/connectors", 405),
        ("PUT", "/connectors/shop/config", 405),
        ("DELETE", "/connectors/shop", 405),
        ("PATCH", "/connectors/shop/offsets", 400),
        ("DELETE", "/connectors/shop/offsets", 400),
        ("POST", "/connectors/shop/offsets", 405),
        ("DELETE", "/connectors/none/offsets", 404),
        ("POST", "/connectors/shop/tasks/1/restart", 404),
        ("GET", "/connectors/none", 404),
        ("GET", "/connectors/shop/none", 404),
        ("PUT", "/connectors/none/pause", 404),
        ("GET", "/connectors/../shop", 404),
        ("GET", "/connector-plugins/none/config", 404),
        ("PUT", f"/connector-plugins/{CLASS}/config/validate", 400),
    ],
)
def test_what_is_refused(method: str, path: str, status: int) -> None:
    assert status_of(Some(figures()), path, method) == status


def test_a_failure_is_told() -> None:
    found = figures()
    run = RunState("failed", None, Ended("noon", "the slot is gone", "drop the checkpoint"))
    failed = replace(found, status=replace(found.status, run=run, live=None))
    status = asked(Some(failed), "/connectors/shop/status")
    assert (status["connector"]["state"], status["tasks"][0]["state"]) == ("FAILED", "FAILED")
    assert status["tasks"][0]["trace"] == "the slot is gone (at noon)\ndrop the checkpoint"


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    config = {
        "database.password": "hidden",
        "database.sslpassword": "${env:SECRET}",
        "signal.consumer.sasl.jaas.config": 'x required password="hidden";',
        "notification.sink.topic.name": "${env:SECRET}",
        "column.mask.hash.SHA-256.with.salt.hidden": "public.t.c",
    }
    replica = {"replica": {"path": "lake", "storage_options": {"AWS_SECRET_ACCESS_KEY": "hidden"}}}
    kafka = {"kafka": {"bootstrap.servers": "k:9", "properties": {"sasl.password": "hidden"}}}
    many = Some(
        figures(name="a", sink=replica, **config),
        figures(name="b", sink=kafka, **config),
        figures("mongodb", name="c", **{"mongodb.password": "hidden"}),
    )
    found = [asked(many, "/connectors", expand="info,status")]
    for name in "abc":
        found += [asked(many, f"/connectors/{name}/{below}") for below in ("", "config", "status", "tasks", "offsets")]
    assert "hidden" not in json.dumps(found)
    shown = asked(many, "/connectors/a/config")
    assert shown["database.password"] == "********"
    assert shown["notification.sink.topic.name"] == "${env:SECRET}"
    assert "mongodb://" not in json.dumps(found)


def test_a_config_is_validated() -> None:
    path = f"/connector-plugins/{CLASS}/config/validate"
    good = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    said = asked(Some(), path, "PUT", {"connector.class": CLASS, **good, "database.password": "hidden"})
    assert (said["name"], said["error_count"]) == (CLASS, 0)
    assert "hidden" not in json.dumps(said)
    said = asked(Some(), path, "PUT", {**good, "snapshot.mode": "sometimes"})
    errors = {each["value"]["name"]: each["value"]["errors"] for each in said["configs"] if each["value"]["errors"]}
    assert list(errors) == ["snapshot.mode"]
    assert said["error_count"] == 1


def test_what_plugins_there_are() -> None:
    assert {each["type"] for each in asked(Some(), "/connector-plugins", connectorsOnly="true")} == {"source"}
    found = {each["class"]: each["type"] for each in asked(Some(), "/connector-plugins", connectorsOnly="false")}
    assert found["io.debezium.transforms.ExtractNewRecordState"] == "transformation"
    assert found["org.apache.kafka.connect.transforms.predicates.HasHeaderKey"] == "predicate"


def test_levels_of_loggers() -> None:
    logger = logging.getLogger("tailrace.operate.tried")
    assert "root" in asked(Some(), "/admin/loggers")
    assert asked(Some(), f"/admin/loggers/{logger.name}", "PUT", {"level": "debug"}) == [logger.name]
    assert asked(Some(), f"/admin/loggers/{logger.name}")["level"] == "DEBUG"
    cluster = {"scope": "cluster"}
    assert status_of(Some(), f"/admin/loggers/{logger.name}", "PUT", {"level": "info"}, **cluster) == 204
    for body in ({"level": "loud"}, ["level"], None):
        assert status_of(Some(), f"/admin/loggers/{logger.name}", "PUT", body) == 404
    assert status_of(Some(), "/admin/loggers/py4j", "PUT", {"level": "debug"}) == 404
