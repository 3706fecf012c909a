"""The requests of kcctl's commands, and what kcctl reads of the answers: the records of its REST client.

Kcctl ignores fields that it does not know. Where a field is missing it has null, and fails only when it prints it, so
everything that its commands print has to be there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TEXT, NUMBER, FLAG, ANY = str, int, bool, object
MAYBE_TEXT, MAYBE_NUMBER = (str, type(None)), (int, type(None))

WORKER = {"version": TEXT, "commit": TEXT, "kafka_cluster_id": TEXT}
PLUGIN = {"class": TEXT, "type": TEXT, "version": MAYBE_TEXT}
PLUGIN_TYPES = {"source", "sink", "transformation", "converter", "header_converter", "predicate"}
KEY = {
    **dict.fromkeys(("name", "type", "importance", "documentation", "width"), TEXT),
    "required": FLAG,
    "default_value": MAYBE_TEXT,
    "group": MAYBE_TEXT,
    "dependents": [TEXT],
}
VALUE = {"name": TEXT, "value": MAYBE_TEXT, "errors": [TEXT], "visible": FLAG}
VALIDATED = {"name": TEXT, "error_count": NUMBER, "groups": [TEXT], "configs": [{"definition": KEY, "value": VALUE}]}
TASK = {"connector": TEXT, "task": NUMBER}
INFO = {"name": TEXT, "config": {"*": TEXT}, "tasks": [TASK], "type": TEXT}
STATE = {"state": TEXT, "worker_id": TEXT}
STATUS = {"name": TEXT, "connector": STATE, "type": TEXT, "tasks": [{"id": NUMBER, **STATE}]}
OFFSETS = {"offsets": [{"partition": {"*": ANY}, "offset": {"*": ANY}}]}
LEVEL = {"level": TEXT, "last_modified": MAYBE_NUMBER}
ERROR = {"error_code": NUMBER, "message": TEXT}

# Commands compare the worker's version with the one that brought what they ask for.
NEWEST_DEMAND = (3, 7)


def reads(name: str, plugin: str) -> dict[str, Any]:
    """The requests of `info`, `get ...` and `describe ...` for a connector and a plugin, with the forms of answers."""
    connector = f"/connectors/{name}"
    return {
        "/": WORKER,
        "/connectors/": [TEXT],
        "/connectors?expand=status": {"*": {"status": STATUS}},
        connector: INFO,
        f"{connector}/status": STATUS,
        f"{connector}/config": {"*": TEXT},
        f"{connector}/tasks": [{"id": TASK, "config": {"*": TEXT}}],
        f"{connector}/topics": {name: {"topics": [TEXT]}},
        f"{connector}/offsets": OFFSETS,
        "/connector-plugins?connectorsOnly=false": [PLUGIN],
        f"/connector-plugins/{plugin}/config": [KEY],
        "/admin/loggers": {"*": LEVEL},
        "/admin/loggers/root": LEVEL,
    }


def wrong(found: Any, form: Any, place: str = "") -> list[str]:
    """Where an answer lacks what kcctl reads of it."""
    if isinstance(form, list):
        if not isinstance(found, list):
            return [f"{place} is no list"]
        return [line for number, each in enumerate(found) for line in wrong(each, form[0], f"{place}[{number}]")]
    if isinstance(form, dict):
        if not isinstance(found, dict):
            return [f"{place} is no object"]
        wanted = dict.fromkeys(found, form["*"]) if "*" in form else form
        lacking = [f"{place}.{name} is not there" for name in wanted if name not in found]
        there = {name: each for name, each in wanted.items() if name in found}
        return lacking + [line for name, each in there.items() for line in wrong(found[name], each, f"{place}.{name}")]
    is_flag_for_number = isinstance(found, bool) and form in (NUMBER, MAYBE_NUMBER)
    return [] if isinstance(found, form) and not is_flag_for_number else [f"{place} is {found!r}"]


def check_reads(get: Callable[[str], Any], name: str, plugin: str) -> Mapping[str, Any]:
    """Send all requests that read; the answers by path."""
    found = {path: get(path) for path in reads(name, plugin)}
    lines = [line for path, form in reads(name, plugin).items() for line in wrong(found[path], form, path)]
    assert lines == []
    assert tuple(map(int, found["/"]["version"].split(".")[:2])) >= NEWEST_DEMAND
    assert name in found["/connectors/"]
    assert {each["type"] for each in found["/connector-plugins?connectorsOnly=false"]} <= PLUGIN_TYPES
    failed = [task for task in found[f"/connectors/{name}/status"]["tasks"] if task["state"] == "FAILED"]
    assert all(isinstance(task["trace"], str) for task in failed)
    return found
