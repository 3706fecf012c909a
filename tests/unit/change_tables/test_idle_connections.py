"""Connections that a worker process keeps between micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.config import Config
from tailrace.connectors.change_tables import idle_connections
from tailrace.connectors.change_tables.idle_connections import reused_connection
from tailrace.connectors.sqlserver.config import resolve


class Link:
    """A connection that notes whether it is closed."""

    is_closed = False

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


class Links:
    """A dialect that makes links."""

    def __init__(self) -> None:
        self.made: list[Link] = []

    def connect(self, config: Config, application: str, database: str) -> Link:
        """A new one."""
        self.made.append(Link())
        return self.made[-1]


@pytest.fixture
def links() -> Iterator[Any]:
    """A dialect without idle connections."""
    idle_connections._idle.clear()
    yield Links()
    idle_connections._idle.clear()


def config(user: str = "reader") -> Config:
    return resolve({"topic.prefix": "t", "database.hostname": "h", "database.names": "d", "database.user": user})


def test_the_next_micro_batch_has_the_connection_of_the_last(links: Any) -> None:
    for _ in range(3):
        with reused_connection(links, config(), "log", "d"):
            pass
    assert len(links.made) == 1


def test_blocks_at_the_same_time_have_connections_of_their_own(links: Any) -> None:
    with (
        reused_connection(links, config(), "log", "d") as first,
        reused_connection(links, config(), "log", "d") as second,
    ):
        assert first is not second
    with reused_connection(links, config(), "log", "e"), reused_connection(links, config("other"), "log", "d"):
        assert len(links.made) == 4


def test_a_connection_is_closed_when_its_block_fails_or_is_left(links: Any) -> None:
    def rows() -> Iterator[int]:
        with reused_connection(links, config(), "log", "d"):
            yield 1
            yield 2

    left = rows()
    next(left)
    left.close()  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="cut"), reused_connection(links, config(), "log", "d"):
        raise OSError("cut")
    assert [each.is_closed for each in links.made] == [True, True]


def test_a_connection_that_was_idle_for_long_is_not_used_again(links: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with reused_connection(links, config(), "log", "d"):
        pass
    monkeypatch.setattr(idle_connections, "_IDLE_S", -1.0)
    with reused_connection(links, config(), "log", "d"):
        pass
    assert [each.is_closed for each in links.made] == [True, False]
