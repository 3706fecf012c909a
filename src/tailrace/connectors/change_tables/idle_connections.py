"""Reuses connections between the micro-batches of a worker process, as a login takes longer than a small range."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.config import Config
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.sql_tables.tables import Connection

# Servers and firewalls cut connections that are idle for minutes.
_IDLE_S = 60.0
_Key = tuple[object, ...]
_idle: dict[_Key, list[tuple[float, Connection]]] = {}


@contextmanager
def reused_connection(dialect: Dialect, config: Config, application: str, database: str) -> Iterator[Connection]:
    """An idle connection of this process, or a new one. It is kept unless the block raises or is not finished.

    May raise the driver's errors.
    """
    key: _Key = (type(dialect), application, database, *sorted(config.given.items()))
    connection = _taken(key) or dialect.connect(config, application, database)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    _idle.setdefault(key, []).append((time.monotonic(), connection))


def _taken(key: _Key) -> Connection | None:
    """The newest idle connection; all that are idle for long are closed."""
    now, fresh = time.monotonic(), []
    for since, connection in _idle.pop(key, []):
        if now - since < _IDLE_S:
            fresh.append((since, connection))
        else:
            connection.close()
    taken = fresh.pop()[1] if fresh else None
    _idle[key] = fresh
    return taken
