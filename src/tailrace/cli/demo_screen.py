"""The demo's output: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from tailrace.cli.status import table
from tailrace.cli.terminal import results
from tailrace.model.quantity import size
from tailrace.operate.status import Status

EVENTS_SHOWN = 12  # guessed
PLAIN_SECONDS = 2.0  # guessed

if TYPE_CHECKING:
    from tailrace.sinks.console import ConsoleEvent

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]


class Screen:
    """What the demo prints. Events arrive on another thread than the rest."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._events: deque[Text] = deque(maxlen=EVENTS_SHOWN)
        self._status: Status | None = None
        self._live: Live | None = None
        self._printed, self._said = 0.0, ""

    def say(self, what: str) -> None:
        """A step of the demo."""
        results.print(f"[dim]{time.monotonic() - self._begun:5.1f} s[/]  {escape(what)}")

    @contextmanager
    def live(self) -> Iterator[None]:
        """Redraws the view in place meanwhile; does nothing if the output is a file."""
        if not results.is_terminal:
            yield
            return
        with Live(console=results, refresh_per_second=4, get_renderable=self.view) as self._live:
            yield
        self._live = None

    def event(self, event: ConsoleEvent) -> None:
        """A change."""
        from tailrace.sinks.console import line

        self._events.append(line(event, width=24))

    def show(self, status: Status) -> None:
        """How far the pipeline is; as a line every few seconds where there is no live view."""
        self._status = status
        said = summary(status)
        if self._live is not None or said == self._said or time.monotonic() - self._printed < PLAIN_SECONDS:
            return
        self._printed, self._said = time.monotonic(), said
        for event in [self._events.popleft() for _ in range(min(3, len(self._events)))]:
            results.print(event, no_wrap=True, overflow="ellipsis", crop=True)
        self.say(said)

    def compared(self, name: str, source: Rows, replica: Rows) -> bool:
        """Tells whether a table is equal on both sides, and if not the first keys that differ."""
        keys = [key for key in {**source, **replica} if source.get(key) != replica.get(key)]
        if not keys:
            results.print(f"  [green]equal[/]   {name:<12} {len(source):>7,} rows")
            return True
        results.print(f"  [red]differs[/] {name:<12} {len(source):,} rows, {len(replica):,} in the replica")
        for key in keys[:3]:
            results.print(escape(f"    {key}: {source.get(key)} / {replica.get(key)}"), soft_wrap=False)
        return False

    def view(self) -> RenderableType:
        """What a terminal shows while the pipeline runs."""
        status: RenderableType = table(self._status) if self._status else Text("starting")
        events = Group(*self._events, *[Text("")] * (EVENTS_SHOWN - len(self._events)))
        for event in self._events:
            event.no_wrap, event.overflow = True, "ellipsis"
        return Group(
            Panel(events, title="events", title_align="left"), Panel(status, title="replica", title_align="left")
        )


def summary(status: Status) -> str:
    """The status in a line."""
    behind = "" if status.lag_bytes is None else f", {size(status.lag_bytes)} behind"
    rows = ", ".join(f"{name.removeprefix('public.')} {count:,}" for name, count in status.tables.items())
    return f"{status.phase} at {status.position or 'the beginning'}{behind}; replica: {rows or 'empty'}"
