"""Where SQL Server is found: a listener with an address in each subnet, and named instances. On the stand-in."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tailrace.connectors import registry
from tailrace.connectors.sqlserver import address, arrow_client, client
from tailrace.connectors.sqlserver.arrow_client import ArrowConnection
from tailrace.connectors.sqlserver.encryption import refusal
from tests.servers.sqlserver.server import SqlServer

LISTENER, INSTANCE = "listener.test", "ERP"


def properties(server: SqlServer, **given: str) -> dict[str, str]:
    return {
        "database.hostname": LISTENER,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": "master",
        "topic.prefix": "t",
        "driver.encrypt": "false",
        "driver.loginTimeout": "5",
        **{name.replace("__", "."): value for name, value in given.items()},
    }


@pytest.fixture
def silent(sqlserver: SqlServer) -> Iterator[str]:
    """An address at which nothing answers on the server's port, as in a subnet without the primary replica."""
    full = socket.socket()
    full.bind(("127.0.0.3", sqlserver.port))
    full.listen(0)
    waiting = [socket.socket() for _ in range(4)]
    for each in waiting:  # what follows is left unanswered, as the queue of connections is full
        each.setblocking(False)
        each.connect_ex(("127.0.0.3", sqlserver.port))
    yield "127.0.0.3"
    for each in [full, *waiting]:
        each.close()


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    """The listener's name has two addresses; the second one is the server's."""
    known = socket.getaddrinfo

    def found(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        if host != LISTENER:
            return known(host, port, *arguments, **named)
        return [entry for each in (silent, "127.0.0.1") for entry in known(each, port, *arguments, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.usefixtures("resolved")
@pytest.mark.parametrize("encrypt", ["false", "true"])
def test_the_address_of_a_listener_that_answers_is_taken(sqlserver: SqlServer, encrypt: str) -> None:
    given = {"driver__encrypt": encrypt, "driver__trustServerCertificate": "true", "driver__loginTimeout": "60"}
    config = registry.named("sqlserver").load().resolve(properties(sqlserver, **given))
    begun = time.monotonic()
    with closing(client.connect(config)) as connection:
        assert connection.value("SELECT 1") == 1
    assert time.monotonic() - begun < 50, "the other address is not waited for"
    assert "MultiSubnetFailover={Yes};" in arrow_client._settings(config, None)


def test_rows_come_over_a_listener_with_one_address_as_before(sqlserver: SqlServer) -> None:
    config = registry.named("sqlserver").load().resolve(properties(sqlserver, database__hostname="localhost"))
    assert address.answering(config) is None
    assert "MultiSubnetFailover" not in arrow_client._settings(config, None)
    with closing(arrow_client.connect(config)) as connection:
        assert isinstance(connection, ArrowConnection)


def test_the_port_of_a_named_instance_is_that_of_the_browser(
    sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not 1433, where another instance may be: the certificate of that one says nothing."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as browser:
        browser.bind(("127.0.0.1", 0))
        monkeypatch.setattr(address, "_BROWSER_PORT", browser.getsockname()[1])
        monkeypatch.setattr(address, "_BROWSER_S", 60.0)
        told = f"ServerName;DOUBLE;InstanceName;{INSTANCE};IsClustered;No;Version;16.0.1000.6;tcp;{sqlserver.port};;"

        def answer() -> None:
            asked, client_ = browser.recvfrom(100)
            assert asked == b"\x04" + INSTANCE.encode()
            browser.sendto(b"\x05" + len(told).to_bytes(2, "little") + told.encode(), client_)

        threading.Thread(target=answer, daemon=True).start()
        given = properties(sqlserver, database__hostname="127.0.0.1", database__instance=INSTANCE)
        del given["database.port"]
        config = registry.named("sqlserver").load().resolve(given)
        assert address.port_of(config) == sqlserver.port


def test_without_a_browser_nothing_is_said_of_an_instance_s_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_BROWSER_PORT", 9)
    given = {"database.hostname": "127.0.0.1", "database.instance": INSTANCE, "database.names": "shop"}
    config = registry.named("sqlserver").load().resolve({**given, "topic.prefix": "t", "driver.encrypt": "true"})
    assert address.port_of(config) is None
    assert refusal(config) is None
