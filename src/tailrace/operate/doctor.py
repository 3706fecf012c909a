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

from pyarrow import fs

from tailrace.errors import TailraceError
from tailrace.operate.fleet import files, log_of
from tailrace.operate.health import health
from tailrace.operate.status import look
from tailrace.pipeline.checkpoint import file_system
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.masked import shown, without_secrets
from tailrace.pipeline.preflight import findings
from tailrace.pipeline.runner import Pipeline
from tailrace.pipeline.session import check_java
from tailrace.version import __version__

# Of each folder of the checkpoint the newest files, and of logs the end.
_NEWEST, _LOG_BYTES = 3, 4 << 20
_WATCHED = ("metadata", "lease.json", "last_run.json", "replica.json", "catalog.json")


def write(definition: Definition, file: Path, archive: Path) -> list[str]:
    """Write the archive; the names of its files. `file` is the definition's.

    What cannot be found out is said in its place. Raises OSError.
    """
    config = definition.config()
    names = []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        archive.chmod(0o600)
        for name, text in _files(definition, file):
            written.writestr(name, without_secrets(text, definition, config))
            names.append(name)
    return names


def _files(definition: Definition, file: Path) -> Iterator[tuple[str, str]]:
    yield "versions.json", _json(_versions)
    yield "pipeline.json", _json(lambda: _pipeline(definition))
    yield "check.json", _json(lambda: [asdict(finding) for finding in findings(definition)])
    yield "status.json", _json(lambda: _status(definition))
    yield from _checkpoint(definition.checkpoint)
    log = Pipeline(definition).log
    for each in sorted(log.parent.glob(f"{log.name}*")):
        yield f"log/{each.name}", _end(fs.LocalFileSystem(), str(each))
    yield from _log_of_folder(file)


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


def _checkpoint(checkpoint: str) -> Iterator[tuple[str, str]]:
    """The files of a checkpoint that say how far it is and who runs it; or why this process cannot read it."""
    try:
        filesystem, root = file_system(checkpoint)
        paths = [name for name in _WATCHED if filesystem.get_file_info(f"{root}/{name}").type is fs.FileType.File]
        for below in ("offsets", "commits"):
            files = filesystem.get_file_info(fs.FileSelector(f"{root}/{below}", allow_not_found=True))
            numbers = sorted(int(each.base_name) for each in files if each.base_name.isdigit())
            paths += [f"{below}/{number}" for number in numbers[-_NEWEST:]]
    except (TailraceError, OSError) as error:
        yield "checkpoint/unread.txt", str(error)
        return
    for name in paths:
        yield f"checkpoint/{name}", _end(filesystem, f"{root}/{name}")


def _log_of_folder(file: Path) -> Iterator[tuple[str, str]]:
    """Spark's log of the pipelines of the file's folder, which share one, without the secrets of any of them.

    Its lines do not say of which pipeline they are.
    """
    log = log_of(file.parent)
    if not log.exists():
        return
    try:
        text = _without_all_secrets(_end(fs.LocalFileSystem(), str(log)), file.parent)
    except TailraceError as error:
        text = f"left out: it may have secrets of a pipeline that cannot be read: {error}"
    yield f"log/{log.name}", text


def _without_all_secrets(text: str, folder: Path) -> str:
    """A text without the secrets of the pipelines of a folder. Raises ConfigError if one of them cannot be read."""
    for file in files(folder):
        definition = load(file)
        text = without_secrets(text, definition, definition.config())
    return text


def _end(filesystem: fs.FileSystem, file: str) -> str:
    """The end of a file, or why it cannot be read."""
    try:
        with filesystem.open_input_file(file) as stream:
            stream.seek(max(0, stream.size() - _LOG_BYTES))
            return bytes(stream.read()).decode(errors="replace")
    except OSError as error:
        return f"cannot be read: {error}"
