"""What every unit test begins with."""

from __future__ import annotations

import pytest

from tailrace.connectors import lost_values

SERVERS = {"spark", "session", "postgres18", "postgres16", "database", "kafka", "mongodb", "sqlserver", "db2"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """`make quick` leaves out what starts a server, Spark among them, or a process of Java."""
    if SERVERS & {*getattr(item, "fixturenames", ())}:
        item.add_marker(pytest.mark.server)


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column has lost a value yet: what was logged of one is not logged again for ten minutes."""
    monkeypatch.setattr(lost_values, "_logged", {})
