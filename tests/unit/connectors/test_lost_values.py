"""Values that become null are logged with their column, and at most every ten minutes for each."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from tailrace.connectors import lost_values
from tailrace.connectors.lost_values import at, became_null
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.value_type import converted


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("tailrace.connectors.lost_values.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(lost_values, "_logged", {})
    return now


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("name", "values", "properties"),
    [("numeric", ["NaN"], {}), ("timestamp", ["2300-01-01 00:00:00"], {"time.precision.mode": "nanoseconds"})],
)
def test_the_warning_names_table_and_column(
    name: str, values: list[str], properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    required = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    kind = value_type(PgType(name, name), -1, resolve({**required, **properties}))
    assert kind is not None
    assert converted(pa.array(values), kind, "public.t.c, batch from LSN 0/1").to_pylist() == [None]
    assert "public.t.c, batch from LSN 0/1: 1 " in caplog.text


def test_the_same_is_logged_again_after_ten_minutes_with_what_came_meanwhile(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    def lost(place: str, count: int, seconds: float = 0.0) -> list[str]:
        caplog.clear()
        clock[0] += seconds
        with at(place):
            became_null(count, "arrays")
        return caplog.messages

    assert lost("public.t.c, batch from LSN 0/1", 3) == ["public.t.c, batch from LSN 0/1: 3 arrays become null"]
    assert lost("public.t.d, batch from LSN 0/1", 3) == ["public.t.d, batch from LSN 0/1: 3 arrays become null"]
    assert lost("public.t.c, batch from LSN 0/2", 4, 300) == []
    assert lost("public.t.c, batch from LSN 0/3", 5, 299) == []
    assert lost("public.t.c, batch from LSN 0/4", 1, 1) == [
        "public.t.c, batch from LSN 0/4: 1 arrays become null, as 9 did since this was logged last"
    ]
