"""The demo's screen: what is equal, what is not, and the view of a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tailrace.cli import demo_screen
from tailrace.cli.demo_screen import EVENTS_SHOWN, Screen
from tailrace.cli.demo_shop import by_key
from tailrace.operate.status import Status
from tailrace.sinks.console import ConsoleEvent


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(demo_screen, "results", Console(file=text, width=100, force_terminal=False))
    return text


def test_equal_tables(output: io.StringIO) -> None:
    rows = {(1,): {"id": 1, "name": "a"}, (2,): {"id": 2, "name": "b"}}
    assert Screen().compared("customers", rows, dict(reversed(rows.items())))
    assert "equal" in output.getvalue()
    assert "2 rows" in output.getvalue()


@pytest.mark.parametrize(
    "replica", [{}, {(1,): {"id": 1, "name": "b"}}, {(1,): {"id": 1, "name": "a"}, (2,): {"id": 2, "name": "x"}}]
)
def test_a_missing_a_different_and_an_extra_row_differ(
    output: io.StringIO, replica: dict[tuple[int], dict[str, object]]
) -> None:
    assert not Screen().compared("customers", {(1,): {"id": 1, "name": "a"}}, replica)
    assert "differs" in output.getvalue()


def test_two_rows_of_one_key_do_not_hide_each_other() -> None:
    assert len(by_key("customers", [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}])) == 2


def test_the_view_has_the_newest_events_and_the_status(output: io.StringIO) -> None:
    screen = Screen()
    for number in range(EVENTS_SHOWN + 3):
        screen.event(ConsoleEvent(None, "c", "shop.t", {"id": number}, {}, {"id": number}))
    screen.show(
        Status("demo", "stream", 4, "0/10", current="0/20", lag_bytes=16, lag_seconds=0.5, tables={"public.t": 1234})
    )
    demo_screen.results.print(screen.view())  # type: ignore[attr-defined]
    shown = output.getvalue()
    assert f"id={EVENTS_SHOWN + 2} " in shown
    assert "id=2 " not in shown
    assert "1,234 rows" in shown
    assert "16 B, 0.5 s" in shown
