"""The syntax trees of the package's modules, which several rules look at: each is parsed once in a process."""

from __future__ import annotations

import ast
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


@cache
def nodes(module: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax tree."""
    return tuple(ast.walk(tree(module)))
