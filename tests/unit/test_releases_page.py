"""The table of docs/running.md is that of what `make spark-versions` has found, and nothing in it has failed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tailrace.spark.versions import TRIED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/spark_versions.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("spark_versions", ROOT / "tools" / "spark_versions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(tool: ModuleType) -> dict[str, Any]:
    """What was found."""
    found: dict[str, Any] = json.loads(tool.RESULTS.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_results(tool: ModuleType, results: dict[str, Any]) -> None:
    text = tool.PAGE.read_text(encoding="utf-8")
    assert tool.page(text, results) == text, "run: python tools/spark_versions.py --page"


def test_only_supported_releases_are_shown_and_nothing_has_failed(tool: ModuleType, results: dict[str, Any]) -> None:
    assert {*results} <= {tool.MOVED, *(".".join(map(str, each)) for each in TRIED)}
    assert '"failed"' not in json.dumps(results)


def test_a_row_says_with_which_databases_it_was_tried(tool: ModuleType) -> None:
    assert tool.cell(dict.fromkeys(tool.DATABASES, "passed")) == "all four databases"
    assert tool.cell({"postgres": "passed", "mongodb": "failed"}) == "PostgreSQL; **failed: MongoDB**"
    assert tool.cell({}) == "not tried"


def test_rows_name_tests_that_exist(tool: ModuleType) -> None:
    places = {**{test: "tests/conformance" for tests in tool.CONFORMANCE.values() for test in tests}}
    places |= {test: "tests" for tests in (*tool.OWN.values(), [tool.MOVES]) for test in tests}
    for test, folder in places.items():
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / folder / file).read_text(encoding="utf-8"), test
