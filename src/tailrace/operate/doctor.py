"""Gathers what a maintainer needs to know of a pipeline into one archive, without secrets and without rows."""

from __future__ import annotations

import json
import platform
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from tailrace.errors import TailraceError
from tailrace.operate.health import health
from tailrace.operate.status import look
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.masked import shown, without_secrets
from tailrace.pipeline.preflight import findings
from tailrace.pipeline.runner import Pipeline
from tailrace.pipeline.session import check_java
from tailrace.version import __version__

# Of each folder of the checkpoint the newest files, and of logs the end.
_NEWEST, _LOG_BYTES = 3, 4 << 20
_WATCHED = ("metadata", "lease.json", "last_run.json", "replica.json", "catalog.json")


def write(definition: Definition, archive: Path) -> list[str]:
    """Write the archive; the names of its files. What cannot be found out is said in its place. Raises OSError."""
    config = definition.config()
    names = []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        archive.chmod(0o600)
        for name, text in _files(definition):
            file.writestr(name, without_secrets(text, definition, config))
            names.append(name)
    return names


def _files(definition: Definition) -> Iterator[tuple[str, str]]:
    yield "versions.json", _json(_versions)
    yield "pipeline.json", _json(lambda: _pipeline(definition))
    yield "check.json", _json(lambda: [asdict(finding) for finding in findings(definition)])
    yield "status.json", _json(lambda: _status(definition))
    if "://" not in definition.checkpoint:
        yield from _checkpoint(Path(definition.checkpoint))
    log = Pipeline(definition).log
    for each in sorted(log.parent.glob(f"{log.name}*")):
        yield f"log/{each.name}", _end(each)


def _json(look_at: Callable[[], Any]) -> str:
    try:
        return json.dumps(look_at(), indent=1, default=str)
    except TailraceError as error:
        return json.dumps({"error": str(error)}, indent=1)


def _versions() -> dict[str, Any]:
    packages = {each.metadata["Name"]: each.version for each in distributions() if each.metadata["Name"]}
    try:
        java = check_java()[1].partition("\n")[0]
    except TailraceError as error:
        java = str(error)
    system = platform.platform()
    return {"tailrace": __version__, "python": sys.version, "system": system, "java": java, "packages": packages}


def _pipeline(definition: Definition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "config": shown(definition, definition.config()),
        "steps": definition.steps,
        "sink": {"kind": definition.sink.kind, "path": definition.sink.path},
        "checkpoint": definition.checkpoint,
        "trigger": definition.trigger,
        "spark": sorted(definition.spark),
    }


def _status(definition: Definition) -> dict[str, Any]:
    status = look(definition)
    return {"health": str(health(status)), **status.to_json(), "offset": status.offset}


def _checkpoint(folder: Path) -> Iterator[tuple[str, str]]:
    for name in _WATCHED:
        if (folder / name).is_file():
            yield f"checkpoint/{name}", _end(folder / name)
    for below in ("offsets", "commits"):
        numbers = [each for each in folder.glob(f"{below}/*") if each.name.isdigit()]
        for each in sorted(numbers, key=lambda file: int(file.name))[-_NEWEST:]:
            yield f"checkpoint/{below}/{each.name}", _end(each)


def _end(file: Path) -> str:
    """The end of a file, or why it cannot be read."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - _LOG_BYTES))
            return stream.read().decode(errors="replace")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
