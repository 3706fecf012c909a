"""Finds which names of properties the code of a connector reads: texts in functions that it can reach by their names.

A function is reached from the connector's package and from all that is above connectors, by calls that have its name.
That is more than what is called, so a property that is not found here is read by nobody. Declarations, messages and
checks of a value do not count.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import tailrace
from tailrace.connectors.registry import BUILT_IN

SOURCE = Path(tailrace.__file__).parent
ABOVE = ("sinks", "pipeline", "cli", "snapshot", "capture", "spark", "transforms", "events")
# Calls whose arguments name a property without reading it.
DECLARATIONS = {"Option", "Alias", "setting", "Problem", "Finding"}
SHORTEST = 6


@dataclass
class Piece:
    """What a function has, those in it included, or a module outside of functions: texts, patterns, and names."""

    texts: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def unread(connector: str, options: Iterable[str]) -> list[str]:
    """Those of the names that no code reads which the connector can reach; a family's name has a placeholder."""
    pieces = list(_reached(connector))
    texts = set().union(*(piece.texts for piece in pieces))
    # Families may be read by an expression.
    plain = {text.replace("\\", "") for text in texts}
    patterns = [re.compile(each) for piece in pieces for each in piece.patterns]

    def is_read(name: str) -> bool:
        start = re.split(r"[*<]", name)[0]
        if start != name:
            return any(text.startswith(start) for text in plain) or start.rstrip(".") in texts
        begins = any(text.endswith(".") and name.startswith(text) for text in texts)
        return name in texts or begins or any(pattern.fullmatch(name) for pattern in patterns)

    return [name for name in options if not is_read(name)]


def _reached(connector: str) -> Iterator[Piece]:
    """The pieces of code that a connector reaches."""
    own = f"tailrace.connectors.{connector}."
    above = tuple(f"tailrace.{room}." for room in ABOVE)
    package = BUILT_IN[connector].package.partition(":")[0]
    modules = _closure([package, *(name for name in _modules() if name.startswith(above))])
    others = tuple(f"tailrace.connectors.{name}." for name in BUILT_IN if name != connector)
    modules = {name for name in modules if not name.startswith(others)}
    by_name: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for module in modules:
        for name in _pieces(module):
            by_name[name].append((module, name))
    waiting = [
        (module, name)
        for module in modules
        for name in _pieces(module)
        if module.startswith((own, *above)) or name.startswith("__")
    ]
    seen = set(waiting)
    while waiting:
        module, name = waiting.pop()
        piece = _pieces(module)[name]
        if not (module.startswith("tailrace.config.") and "check" in name):
            yield piece
        found = {(module, ""), *(place for each in piece.names for place in by_name.get(each, ()))} - seen
        seen |= found
        waiting += found


@cache
def _modules() -> dict[str, ast.Module]:
    """The modules of the package by their names."""
    named = {file.relative_to(SOURCE.parent).with_suffix(""): file for file in SOURCE.rglob("*.py")}
    return {
        ".".join(path.parts).removesuffix(".__init__"): ast.parse(file.read_text(encoding="utf-8"))
        for path, file in named.items()
    }


def _closure(modules: Iterable[str]) -> set[str]:
    """The modules and all that they import, at once or when they are used."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in _modules() and name not in seen:
            seen.add(name)
            waiting += _imports(_modules()[name])
    return seen


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


@cache
def _pieces(module: str) -> dict[str, Piece]:
    """The pieces of a module by the names of their functions; '' is what is outside of them."""
    tree = _modules()[module]
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, Piece] = defaultdict(Piece)

    def look(node: ast.AST, name: str) -> None:
        if isinstance(node, ast.FunctionDef):
            name = name or node.name
        _note(node, found[name], constants)
        for child in _meant(node):
            look(child, name)

    look(tree, "")
    return dict(found)


def _meant(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that may read a property: no docstrings, and no declarations."""
    for child in ast.iter_child_nodes(node):
        is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if is_docstring or (isinstance(node, ast.Call) and _called(node) in DECLARATIONS and child is not node.func):
            continue
        yield child


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _note(node: ast.AST, piece: Piece, constants: dict[str, str]) -> None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) >= SHORTEST - 2:
        piece.texts.add(node.value)
    elif isinstance(node, ast.Name):
        piece.names.add(node.id)
        if node.id in constants:
            piece.texts.add(constants[node.id])
    elif isinstance(node, ast.Attribute):
        piece.names.add(node.attr)
    elif isinstance(node, ast.JoinedStr):
        parts = [_part(each, constants) for each in node.values]
        if sum(len(part) for part, is_text in parts if is_text) >= SHORTEST:
            piece.patterns.add("".join(re.escape(part) if is_text else r"[\w.]+" for part, is_text in parts))


def _part(value: ast.expr, constants: dict[str, str]) -> tuple[str, bool]:
    """A part of an f-string, and whether its text is known."""
    if isinstance(value, ast.Constant):
        return str(value.value), True
    inner = value.value if isinstance(value, ast.FormattedValue) else value
    known = constants.get(inner.id) if isinstance(inner, ast.Name) else None
    return ("", False) if known is None else (known, True)
