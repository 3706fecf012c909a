"""The syntax trees of the package's modules, which several rules look at: each is parsed once in a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import tailrace

SOURCE = Path(tailrace.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def text(module: Path) -> str:
    """What is written in a module."""
    return module.read_text(encoding="utf-8")


@cache
def tree(module: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(text(module))


def nodes(module: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax tree, but those that say whether a name is read or set."""
    return _of_package()[module] if module in _of_package() else _nodes(module)


@cache
def _of_package() -> dict[Path, tuple[ast.AST, ...]]:
    """A million objects that stay: the garbage collector is not to look at them again and again (2 s of 9 s)."""
    gc.disable()
    all_nodes = {module: _nodes(module) for module in MODULES}
    gc.freeze()
    gc.enable()
    return all_nodes


def _nodes(module: Path) -> tuple[ast.AST, ...]:
    all_nodes: list[ast.AST] = [tree(module)]
    for node in all_nodes:
        all_nodes += children(node)
    return tuple(all_nodes)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes in a node. ast.iter_child_nodes takes three times as long: it looks up each field by its name."""
    inside: list[ast.AST] = []
    for value in vars(node).values():
        if isinstance(value, list):
            inside += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            inside.append(value)
    return inside
