"""Written scenarios: a file each in `tests/compare/<database>/cases`, for what chance does not make.

A file of SQL begins with what it shows. Lines `-- @property NAME=VALUE` are the connector's properties beyond those of
the connection, a line `-- @compare {...}` is `scenario.json`, and `-- @run` separates setup and workload. `explained`
of `scenario.json` has patterns of differences, each with the page that explains it. With a line `-- @as NAME` all but
the properties is taken from another file. A
file of Python has `PROPERTIES`, perhaps `COMPARE`, and the functions of a workload (tests/golden/databases/mongodb.py).
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.compare.generator import Generator

_PROPERTY = re.compile(r"^-- @property ([^=\s]+)=(.*)$", re.MULTILINE)
_COMPARE = re.compile(r"^-- @compare (.*)$", re.MULTILINE)
_AS = re.compile(r"^-- @as (\S+)$", re.MULTILINE)
_RUN = "-- @run\n"
_WAITS = ("-- @wait", "-- @stop")
MARKER = "all-read-"


def cases(database: str) -> dict[str, Path]:
    """The files of a database's written scenarios by name."""
    return {file.stem: file for file in sorted((Path(__file__).parent / database / "cases").glob("*.*"))}


def write_case(file: Path, generator: Generator, folder: Path) -> None:
    """Write a scenario into the empty folder, as Generator.write does."""
    text = file.read_text(encoding="utf-8")
    if other := _AS.search(text):
        text += _PROPERTY.sub("", file.with_stem(other[1]).read_text(encoding="utf-8"))
    if file.suffix == ".py":
        module = _load(file)
        properties, settings = module.PROPERTIES, getattr(module, "COMPARE", {})
        (folder / "workload.py").write_text(text, encoding="utf-8")
    else:
        setup, _, workload = text.partition(_RUN)
        properties = dict(_PROPERTY.findall(setup))
        settings = {name: value for found in _COMPARE.findall(setup) for name, value in json.loads(found).items()}
        (folder / "setup.sql").write_text(setup, encoding="utf-8")
        if generator.MARK:
            settings = {"marker": MARKER, **settings}
            workload = "\n".join(marked(workload.splitlines(), f"{generator.MARK};")) + "\n"
        (folder / "workload.sql").write_text(workload, encoding="utf-8")
    write_settings(folder, {**generator.CONNECTION, **properties}, settings)


def marked(workload: Iterable[str], statement: str) -> list[str]:
    """The lines with a marker before each wait, and at the end; the statement has `{}` for its text."""
    lines, number = [], 0
    for line in (*workload, _WAITS[0]):
        if line in _WAITS:
            number += 1
            lines.append(statement.format(f"{MARKER}{number}"))
        lines.append(line)
    return lines[:-1]


def write_settings(folder: Path, properties: Mapping[str, str], settings: Mapping[str, object]) -> None:
    """Write `connector.json` and `scenario.json`."""
    (folder / "scenario.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")
    document = {"name": "compare", "config": properties}
    (folder / "connector.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
