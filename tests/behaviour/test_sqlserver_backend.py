"""The connection of a session of SQL Server's stand-in."""

from __future__ import annotations

import socket

import pytest

from tests.conftest import Database
from tests.servers.sqlserver.backend import Backend


@pytest.mark.long
def test_a_statement_whose_client_has_left_is_abandoned(database: Database) -> None:
    client, served = socket.socketpair()
    backend = Backend(database.dsn)

    def left() -> bool:
        raise ConnectionError

    backend.watched, backend.watch = served.fileno(), left
    client.close()
    with pytest.raises(ConnectionError):
        backend.run("SELECT pg_sleep(60)")
    backend.watched = None
    backend.abandon()
    assert backend.scalar("SELECT 1") == "1"
    backend.close()
    served.close()
