"""Answers requests of Kafka Connect's REST interface for the pipelines of this process, as kcctl and dashboards ask.

A pipeline is a source connector of its name with one task, 0. Files decide which pipelines are there and how they are
configured, so no connector is created, changed or deleted here; what Connect would answer to that is refused with the
way to do it. Paths and forms are those of Connect 4, and its version is what clients ask for, to know what they may do.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any

from tailrace.config.kinds import TEXT
from tailrace.config.option import HIDDEN, Option
from tailrace.connectors import registry
from tailrace.errors import ConfigError
from tailrace.operate import offsets
from tailrace.operate.health import health
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.server import HttpRequest, Refusal, Response
from tailrace.operate.watch import Figures
from tailrace.pipeline.masked import is_secret_name, shown
from tailrace.transforms.classes import PREDICATES, TRANSFORMS
from tailrace.version import __version__

_CONNECT_VERSION = "4.0.0"
_BY_FILES = "pipelines are files: add, change or remove the file in the folder of `tailrace run FOLDER`"
_LEVELS = {"TRACE": "DEBUG", "DEBUG": "DEBUG", "INFO": "INFO", "WARN": "WARNING", "ERROR": "ERROR", "FATAL": "CRITICAL"}


class ConnectApi:
    """The interface over some pipelines."""

    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines
        self._worker = f"{socket.gethostname()}:tailrace"

    def answer(self, request: HttpRequest) -> Response | None:
        """The answer, None for another path. Raises Refusal."""
        parts = [part for part in request.path.split("/") if part]
        method = "GET" if request.method == "HEAD" else request.method
        if not parts:
            return Response(self._root()) if method == "GET" else None
        if parts[0] == "connectors":
            return self._connectors(request, method, parts[1:])
        if parts[0] == "connector-plugins":
            return _plugins(request, method, parts[1:])
        if parts[:2] == ["admin", "loggers"]:
            return _loggers(request, method, parts[2:])
        return None

    def _root(self) -> dict[str, str]:
        return {"version": _CONNECT_VERSION, "commit": f"tailrace-{__version__}", "kafka_cluster_id": "tailrace"}

    def _connectors(self, request: HttpRequest, method: str, parts: list[str]) -> Response:
        if not parts:
            if method != "GET":
                raise Refusal(405, _BY_FILES)
            return Response(self._all(request.query.get("expand", "")))
        figures = self._figures(parts[0])
        below = "/".join(parts[1:])
        if method == "GET":
            return Response(self._read(figures, below))
        return self._act(request, method, figures, below)

    def _all(self, expand: str) -> Any:
        all_figures = self._pipelines.figures()
        wanted = [form for form in ("info", "status") if form in expand.split(",")]
        if not wanted:
            return [each.definition.name for each in all_figures]
        forms: Mapping[str, Callable[[Figures], Any]] = {"info": _info, "status": self._status}
        return {each.definition.name: {form: forms[form](each) for form in wanted} for each in all_figures}

    def _figures(self, name: str) -> Figures:
        for each in self._pipelines.figures():
            if each.definition.name == name:
                return each
        raise Refusal(404, f"Connector {name} not found")

    def _read(self, figures: Figures, below: str) -> Any:
        name = figures.definition.name
        if below == "tasks/0/status":
            return self._status(figures)["tasks"][0]
        reads: Mapping[str, Callable[[], Any]] = {
            "": lambda: _info(figures),
            "config": lambda: shown(figures.definition, figures.config),
            "status": lambda: self._status(figures),
            "tasks": lambda: [
                {"id": {"connector": name, "task": 0}, "config": shown(figures.definition, figures.config)}
            ],
            "tasks-config": lambda: {f"{name}-0": shown(figures.definition, figures.config)},
            "topics": lambda: {name: {"topics": sorted(figures.totals.topics)}},
            "offsets": lambda: offsets.stored(figures),
        }
        if below not in reads:
            raise Refusal(404, f"there is nothing at /connectors/{name}/{below}")
        return reads[below]()

    def _status(self, figures: Figures, *, restarts: bool = False) -> dict[str, Any]:
        """`restarts`: this request has asked for a new start, which may not have begun."""
        state_of_health = health(figures.status)
        name = "RESTARTING" if restarts else state_of_health.condition.connect_state
        state: dict[str, Any] = {"state": name, "worker_id": self._worker, "version": __version__}
        if state["state"] == "FAILED":
            state["trace"] = f"{state_of_health.what}\n{state_of_health.todo}"
        tasks = [] if state["state"] == "STOPPED" else [{"id": 0, **state}]
        return {"name": figures.definition.name, "connector": state, "tasks": tasks, "type": "source"}

    def _act(self, request: HttpRequest, method: str, figures: Figures, below: str) -> Response:
        name = figures.definition.name
        if below == "offsets":
            return offsets.changed(method, figures, request.json())
        parts = below.split("/")
        if parts[0] == "tasks" and parts[1:2] != ["0"]:
            raise Refusal(404, f"Unknown task: {name}-{below.split('/')[1]}")
        if (method, below) == ("PUT", "pause"):
            self._pipelines.steering(name).want("paused")
            return Response(status=202)
        if (method, below) == ("PUT", "resume"):
            self._pipelines.steering(name).want("running")
            return Response(status=202)
        if (method, below) == ("PUT", "stop"):
            self._pipelines.steering(name).want("stopped")
            return Response(status=204)
        if (method, below) in (("POST", "restart"), ("POST", "tasks/0/restart")):
            is_failed = figures.status.condition.connect_state == "FAILED"
            restarts = request.query.get("onlyFailed", "").lower() != "true" or is_failed
            if restarts:
                self._pipelines.steering(name).restart()
            if request.query.get("includeTasks", "").lower() == "true":
                return Response(self._status(figures, restarts=restarts), 202)
            return Response(status=204)
        raise Refusal(405, _BY_FILES)


def _info(figures: Figures) -> dict[str, Any]:
    name = figures.definition.name
    tasks = [{"connector": name, "task": 0}]
    return {"name": name, "config": shown(figures.definition, figures.config), "tasks": tasks, "type": "source"}


def _entry(name: str) -> registry.ConnectorEntry:
    for entry in registry.BUILT_IN.values():
        if name in (*entry.classes, *(each.rpartition(".")[2] for each in entry.classes)):
            return entry
    raise Refusal(404, f"there is no connector plugin {name}")


def _plugins(request: HttpRequest, method: str, parts: list[str]) -> Response:
    if not parts and method == "GET":
        connectors = [entry.classes[0] for entry in registry.BUILT_IN.values() if entry.classes]
        types = dict.fromkeys(connectors, "source")
        if request.query.get("connectorsOnly", "").lower() == "false":
            types |= {name: "transformation" for name in TRANSFORMS if "*" not in name}
            types |= dict.fromkeys(PREDICATES, "predicate")
        return Response([{"class": name, "type": type_, "version": __version__} for name, type_ in types.items()])
    if len(parts) == 2 and parts[1] == "config" and method == "GET":
        return Response([_definition(option) for option in _table(_entry(parts[0])) if not option.is_family])
    if len(parts) == 3 and parts[1:] == ["config", "validate"] and method == "PUT":
        return Response(_validated(_entry(parts[0]), request.json()))
    raise Refusal(404, f"there is nothing at {request.path}")


def _table(entry: registry.ConnectorEntry) -> list[Option[object]]:
    return list(registry.imported(str(entry.options)))


def _definition(option: Option[object]) -> dict[str, Any]:
    kind = "PASSWORD" if option.secret else {"integer": "INT", "boolean": "BOOLEAN"}.get(option.kind.label, "STRING")
    return {
        "name": option.name,
        "type": kind,
        "required": option.required,
        "default_value": option.default,
        "importance": "HIGH" if option.required else "MEDIUM",
        "documentation": option.help,
        "group": "",
        "order_in_group": -1,
        "width": "NONE",
        "display_name": option.name,
        "dependents": [],
    }


def _validated(entry: registry.ConnectorEntry, given: Any) -> dict[str, Any]:
    """What is wrong with properties, by their names; what concerns several of them stands with connector.class."""
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Refusal(400, "the body should be a JSON object of texts")
    lines = list[str]()
    try:
        entry.load().resolve(given)
    except ConfigError as error:
        lines = [
            line.strip() for line in str(error).splitlines() if line.strip() and not line.strip().endswith("wrong:")
        ]
    options = [option for option in _table(entry) if not option.is_family]
    errors: dict[str, list[str]] = {name: [] for name in ("connector.class", *(option.name for option in options))}
    for line in lines:
        name, colon, rest = line.partition(": ")
        errors[name if colon and name in errors else "connector.class"].append(rest if name in errors else line)
    configs = [
        {"definition": _definition(option), "value": _value(option.name, given, errors, option.secret)}
        for option in options
    ]
    if not any(option.name == "connector.class" for option in options):
        definition = _definition(Option("connector.class", TEXT, required=True, help="The connector's class."))
        configs.insert(0, {"definition": definition, "value": _value("connector.class", given, errors, False)})
    count = sum(bool(each["value"]["errors"]) for each in configs)
    return {"name": entry.classes[0], "error_count": count, "groups": [], "configs": configs}


def _value(name: str, given: Mapping[str, str], errors: Mapping[str, list[str]], is_secret: bool) -> dict[str, Any]:
    value = given.get(name)
    if value is not None and (is_secret or is_secret_name(name)):
        value = HIDDEN
    return {"name": name, "value": value, "recommended_values": [], "errors": errors[name], "visible": True}


def _loggers(request: HttpRequest, method: str, parts: list[str]) -> Response:
    """The levels of this process; those of Spark's Python processes and of Java are Spark's."""
    if not parts and method == "GET":
        names = ["root", *sorted(name for name in logging.root.manager.loggerDict if name.startswith("tailrace"))]
        return Response({name: _level(name) for name in names})
    if len(parts) != 1:
        raise Refusal(404, f"there is nothing at {request.path}")
    if method == "GET":
        return Response(_level(parts[0]))
    given = request.json()
    level = given.get("level") if isinstance(given, dict) else None
    if method != "PUT" or str(level).upper() not in _LEVELS:
        raise Refusal(404, f"Invalid log level {level}: one of {', '.join(_LEVELS)}")
    if parts[0] != "root" and not parts[0].startswith("tailrace"):
        raise Refusal(404, f"Logger {parts[0]} not found: take root, or tailrace and what is below it")
    logging.getLogger(None if parts[0] == "root" else parts[0]).setLevel(_LEVELS[str(level).upper()])
    # Of a cluster Connect answers nothing; this process is all of it.
    return Response(status=204) if request.query.get("scope", "").lower() == "cluster" else Response([parts[0]])


def _level(logger: str) -> dict[str, Any]:
    level = logging.getLogger(None if logger == "root" else logger).getEffectiveLevel()
    names = {"WARNING": "WARN", "CRITICAL": "FATAL"}
    name = logging.getLevelName(level)
    return {"level": names.get(name, name), "last_modified": None}
