"""A server that refuses whoever asks is not away, for every connector."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailrace.errors import SourceAwayError, SourceError
from tailrace.operate import status
from tailrace.operate.condition import Condition
from tailrace.operate.status import source_look, status_of
from tailrace.pipeline.run_state import RunState
from tests.unit.operate.made import CONFIGS, figures


@pytest.mark.parametrize("connector", CONFIGS)
@pytest.mark.parametrize(
    ("error", "condition"),
    [(SourceError("wrong password"), Condition.STUCK), (SourceAwayError("cannot connect"), Condition.SOURCE_AWAY)],
)
def test_who_is_refused_is_stuck_and_does_not_wait(
    connector: str, error: SourceError, condition: Condition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = figures(connector).definition.model_copy(update={"checkpoint": str(tmp_path)})

    def fail(_: object) -> None:
        raise error

    package = definition.package()
    admin = SimpleNamespace(position=lambda _: None, state=fail)
    monkeypatch.setattr(type(package), "admin", lambda self, config: admin)
    look = source_look(definition)
    found = status_of("shop", definition.config(), look, RunState("running"), 0.0, None)
    assert found.condition is condition
    assert found.problems[0].name == (status.CONNECTION if condition is Condition.SOURCE_AWAY else "access")
    assert dataclasses.replace(found, run=RunState("stopped")).condition is Condition.STUCK
