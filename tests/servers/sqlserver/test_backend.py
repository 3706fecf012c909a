"""Sessions of the server behind the stand-in."""

from __future__ import annotations

from tests.servers.sqlserver.server import SqlServer


def test_a_notification_that_came_during_a_statement_is_not_lost(server: SqlServer) -> None:
    waits, tells = server.engine.connect("waits"), server.engine.connect("tells")
    try:
        waits.run("LISTEN news")
        tells.run("NOTIFY news, '7'")
        waits.run("SELECT 1")
        assert waits.notifications(0.0) == {"7"}
        assert waits.notifications(0.0) == set()
    finally:
        waits.close()
        tells.close()
