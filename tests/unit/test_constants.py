"""Each limit, size and time that the code sets says what it rests on: a measurement, a guess or a fact."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.source_code import MODULES, SOURCE, text, tree

SETS = re.compile(
    r"SECONDS|_S\b|_MS\b|BYTES|ROWS|MOST|LONGEST|LOOK|PAUSE|TRIES|ATTEMPTS|PATIENCE|SHOWN|_PIECE|AT_ONCE|ENOUGH|FEW"
    r"|WAITING|BUCKETS|IN_MEMORY|_BLOCK\b|_LEAST\b"
)
CONSTANT = re.compile(r"_?[A-Z][A-Z_0-9]*(, _?[A-Z][A-Z_0-9]*)*(: \w+)? = ")


def is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    return isinstance(value, ast.Tuple) and all(map(is_number, value.elts))


def has_reason(lines: list[str], first: int, end: int) -> bool:
    """Whether a comment is on the line, above its group of constants, or a docstring below."""
    above = first - 1
    while above >= 0 and CONSTANT.match(lines[above]):
        above -= 1
    below = lines[end] if end < len(lines) else ""
    return "#" in lines[first] or lines[above].startswith("#") or below.startswith('"""')


def without_reason(module: Path) -> Iterator[str]:
    lines = text(module).splitlines()
    for node in tree(module).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None or not is_number(node.value):
            continue
        name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if SETS.search(name) and not has_reason(lines, node.lineno - 1, node.end_lineno or node.lineno):
            yield f"{module.relative_to(SOURCE)}:{node.lineno} {name}"


def test_a_limit_says_what_it_rests_on() -> None:
    found = [each for module in MODULES for each in without_reason(module)]
    assert not found, f"write above each what was measured, or whose number it is, or `# guessed`: {found}"
