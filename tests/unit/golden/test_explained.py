"""Differences that a scenario names are forgiven, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.compare import Event
from tests.golden.scenario import Scenario


def event(value: object) -> Event:
    return {"topic": "t", "partition": None, "key": None, "value": {"after": value}, "headers": {}}


@pytest.mark.parametrize(("found", "left"), [(None, 0), (5, 1)])
def test_a_pattern_forgives_what_it_matches(tmp_path: Path, found: object, left: int) -> None:
    (tmp_path / "expected.jsonl").write_text(json.dumps(event(4)) + "\n", encoding="utf-8")
    settings = {"explained": {r"value\.after: expected 4, found null$": "docs/differences.md"}}
    (tmp_path / "scenario.json").write_text(json.dumps(settings), encoding="utf-8")
    assert len(Scenario(tmp_path).differences([event(found)])) == left
