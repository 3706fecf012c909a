"""The rules that keep the whole small: who may import whom, how long things may be, what the rooms are called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace

SOURCE = Path(tailrace.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Each room may import only itself and rooms further left.
ORDER = ["model", "config", "events", "transforms", "snapshot", "connectors", "spark", "sinks", "pipeline", "cli"]
# What is outside the order: everybody may import these, and `testing` serves the CLI's demo and the tests.
FOUNDATION = {"errors", "version"}
# The package's own face stands before all rooms: what users call, imported when it is called.
FACE = "__init__.py"
TESTING_MAY_BE_IMPORTED_BY = {"cli", "testing"}

# Packages that only these places may import.
CONFINED = {
    "pyspark": ("spark", "sinks", "pipeline", "testing"),
    "psycopg": ("connectors/postgres", "testing"),
    "adbc_driver_postgresql": ("connectors/postgres",),
    # Signals come by Kafka as well, whatever the sink.
    "confluent_kafka": ("sinks", "snapshot", "testing"),
    "deltalake": ("sinks", "testing"),
}

# Modules that a reader finds in every connector, each a file or a folder.
CONNECTOR_ROOMS = {"config", "catalog", "types", "position", "log", "snapshot", "admin", "connector"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "misc"}
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 50


def where(module: Path) -> str:
    """The module's path as `room/.../file.py`."""
    return module.relative_to(SOURCE).as_posix()


def imports(module: Path) -> Iterator[tuple[int, str]]:
    """(line, full name) of all that a module imports, in functions and for type checking alike."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "tailrace":
            yield from ((node.lineno, f"tailrace.{name.name}") for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""


def test_imports_follow_the_order() -> None:
    wrong = []
    for module in MODULES:
        room = where(module).split("/")[0]
        for line, name in imports(module):
            parts = name.split(".")
            target = parts[1] if parts[0] == "tailrace" and len(parts) > 1 else None
            if target is None or target in FOUNDATION or target == room or room == "testing":
                continue
            if target == "testing" and room in TESTING_MAY_BE_IMPORTED_BY:
                continue
            if room == FACE:
                continue
            if room in ORDER and target in ORDER and ORDER.index(target) < ORDER.index(room):
                continue
            wrong.append(
                f"{where(module)}:{line} imports {name}: move what it needs from {target}/ to {room}/ or to a room "
                f"left of both, or pass it in as an argument"
            )
    assert not wrong, "\n".join([f"The order is {' < '.join(ORDER)}; imports go left only.", *wrong])


def test_relative_imports_are_not_used() -> None:
    wrong = [
        f"{where(module)}:{node.lineno}: write the full name, so that the import order can be read"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", CONFINED)
def test_outside_packages_stay_in_their_places(package: str) -> None:
    places = CONFINED[package]
    wrong = [
        f"{where(module)}:{line} imports {name}: move that code to {' or '.join(f'{place}/' for place in places)}"
        for module in MODULES
        if not where(module).startswith(tuple(f"{place}/" for place in places))
        for line, name in imports(module)
        if name.split(".")[0] == package
    ]
    assert not wrong, "\n".join(wrong)


def test_every_connector_has_the_same_rooms() -> None:
    folders = [folder for folder in (SOURCE / "connectors").iterdir() if (folder / "__init__.py").exists()]
    rooms = {folder.name: {entry.stem for entry in folder.iterdir()} for folder in folders}
    # A folder with none of them belongs to no database: all connectors share it.
    missing = {name: sorted(CONNECTOR_ROOMS - found) for name, found in rooms.items() if CONNECTOR_ROOMS & found}
    assert missing
    assert not any(missing.values()), f"modules that each connector has, missing here: {missing}"


def test_files_are_short() -> None:
    lengths = {where(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    long = [f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE]
    assert not long, "\n".join([f"Split these where two subjects meet (at most {MOST_LINES_OF_A_FILE}):", *long])


def test_functions_are_short() -> None:
    long = []
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{where(module)}:{node.lineno} {node.name}: {lines} lines")
    assert not long, "\n".join([f"Take a step out of these (at most {MOST_LINES_OF_A_FUNCTION} lines):", *long])


def test_names_say_what_is_inside() -> None:
    vague = [where(module) for module in MODULES if VAGUE_NAMES & {*module.with_suffix("").parts[len(SOURCE.parts) :]}]
    assert not vague, f"name these after what they do: {vague}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        where(module)
        for module in MODULES
        if not (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").strip()
    ]
    assert not silent, f"begin these with a sentence: {silent}"


def test_public_names() -> None:
    """What users import from `tailrace` is a promise: take nothing away, add with care."""
    assert tailrace.__all__ == ["TailraceError", "__version__", "signal"]
    assert all(hasattr(tailrace, name) for name in tailrace.__all__)
