"""A repair that cannot be done says so, and the other tables are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline import repair as module
from tailrace.pipeline.reconcile import ComparedTable, ReconcileReport
from tailrace.pipeline.repair import repair


def test_a_table_that_is_dropped_while_it_is_repaired_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def tables(names: Any) -> Any:
        raise ConfigError("the pipeline does not capture this table", where=names[0], remedy="look")

    monkeypatch.setattr(module, "_sent", lambda *_, **__: None)
    monkeypatch.setattr(module, "_done", lambda *_: True)
    found = ComparedTable(ReconcileReport("public.t", "different"), SimpleNamespace(layout=None))  # type: ignore[arg-type]
    report = repair(SimpleNamespace(tables=tables, compare=None), found).report  # type: ignore[arg-type]
    assert (report.outcome, report.repaired) == ("different", 0)
    assert report.reason == "it was not repaired: the pipeline does not capture this table; remedy: look"
