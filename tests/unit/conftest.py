"""What every unit test begins with."""

from __future__ import annotations

import pytest

from tailrace.connectors import lost_values


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column has lost a value yet: what was logged of one is not logged again for ten minutes."""
    monkeypatch.setattr(lost_values, "_logged", {})
