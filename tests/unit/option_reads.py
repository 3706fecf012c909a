"""Finds which properties the code of a connector reads: the objects that declare them, in functions that it can reach.

A function is reached from the connector's package and from all that is above connectors, by calls that have its name.
That is more than what is called, so a property that is not found here is read by nobody. Declarations and checks of a
value do not count.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

from tailrace.config.option import Option
from tailrace.connectors.registry import BUILT_IN
from tests.unit.source_code import MODULES, SOURCE, children, nodes, tree

ABOVE = ("sinks", "pipeline", "cli", "snapshot", "capture", "spark", "transforms", "events")


@dataclass
class Piece:
    """What a function has, those in it included, or a module outside of functions: imported names, and all names.

    An imported name is (module, name), as the import statement has it.
    """

    imported: set[tuple[str, str]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def unread(connector: str, options: Iterable[Option[object]]) -> list[str]:
    """Those of the options whose objects no code reads that the connector can reach.

    A connector that declares a property with words of its own shares the object with the others that have it.
    """
    found = set[str]().union(*(_names_of(place) for piece in _reached(connector) for place in piece.imported))
    # What belongs to a part, as the settings of a converter do, is declared without the part's name.
    endings = {option.name for option in _parts()} & found
    return [
        option.name
        for option in options
        if option.name not in found and not any(option.name.endswith(f".{each}") for each in endings)
    ]


def _parts() -> Iterator[Option[object]]:
    """The settings of converters, which are declared without the converter's name."""
    for name in ("converters", "cloud_events", "apicurio", "registry_clients"):
        for value in vars(import_module(f"tailrace.config.options.{name}")).values():
            yield from _options_in(value)


@cache
def _names_of(place: tuple[str, str]) -> frozenset[str]:
    """The names of the properties that an imported object declares; none for any other object."""
    module, name = place
    if not (module.startswith("tailrace.config.options.") or module.endswith(".options")):
        return frozenset()
    return frozenset(option.name for option in _options_in(getattr(import_module(module), name)))


def _options_in(value: object) -> Iterator[Option[object]]:
    """An option, or those of a pair of lists or of a part; the tables of a page are no reads."""
    if isinstance(value, Option):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, Option))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from (each for each in value if isinstance(each, Option))


def _reached(connector: str) -> Iterator[Piece]:
    """The pieces of code that a connector reaches."""
    own = f"tailrace.connectors.{connector}."
    above = tuple(f"tailrace.{room}." for room in ABOVE)
    package = BUILT_IN[connector].package.partition(":")[0]
    # A package names its parts as texts.
    modules = _closure([package, *(name for name in _modules() if name.startswith((own, *above)))])
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
        is_declaring = module.startswith("tailrace.config.options.") or module.endswith(".options")
        if not is_declaring and not (module.startswith("tailrace.config.") and "check" in name):
            yield piece
        found = {(module, ""), *(place for each in piece.names for place in by_name.get(each, ()))} - seen
        seen |= found
        waiting += found


@cache
def _modules() -> dict[str, Path]:
    """The modules of the package by their names."""
    named = {file.relative_to(SOURCE.parent).with_suffix(""): file for file in MODULES}
    return {".".join(path.parts).removesuffix(".__init__"): file for path, file in named.items()}


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


@cache
def _imports(module: Path) -> tuple[str, ...]:
    return tuple(
        name
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    )


@cache
def _pieces(module: str) -> dict[str, Piece]:
    """The pieces of a module by the names of their functions; '' is what is outside of them."""
    file = _modules()[module]
    sources = {
        each.asname or each.name: (node.module, each.name)
        for node in nodes(file)
        if isinstance(node, ast.ImportFrom) and node.module
        for each in node.names
    }
    found: dict[str, Piece] = defaultdict(Piece)

    def look(node: ast.AST, name: str) -> None:
        if isinstance(node, ast.FunctionDef):
            name = name or node.name
        _note(node, found[name], sources)
        for child in children(node):
            look(child, name)

    look(tree(file), "")
    return dict(found)


def _note(node: ast.AST, piece: Piece, sources: Mapping[str, tuple[str, str]]) -> None:
    if isinstance(node, ast.Name):
        piece.names.add(node.id)
        if node.id in sources:
            piece.imported.add(sources[node.id])
    elif isinstance(node, ast.Attribute):
        piece.names.add(node.attr)
