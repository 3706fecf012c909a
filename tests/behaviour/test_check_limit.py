"""`tailrace check` has a time limit on every database: a server that takes the connection and says nothing is told."""

from __future__ import annotations

import socket
import time
from importlib.util import find_spec

import pytest

from tailrace.connectors import registry

ADDRESSES = {
    "postgres": {"database.hostname": "127.0.0.1", "database.port": "{}", "database.user": "u", "database.dbname": "d"},
    "mongodb": {"mongodb.connection.string": "mongodb://127.0.0.1:{}/?directConnection=true"},
    "sqlserver": {"database.hostname": "127.0.0.1", "database.port": "{}", "database.names": "d"},
    "db2": {
        "database.hostname": "127.0.0.1",
        "database.port": "{}",
        "database.dbname": "d",
        "database.user": "u",
        "database.password": "p",
    },
}


@pytest.mark.parametrize("connector", ADDRESSES)
def test_a_check_has_a_limit(connector: str) -> None:
    if connector == "db2" and not find_spec("ibm_db"):
        pytest.skip("IBM has no driver for this processor")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        given = {name: value.format(port) for name, value in ADDRESSES[connector].items()}
        package = registry.named(connector).load()
        config = package.resolve({**given, "connection.validation.timeout.ms": "300", "topic.prefix": "t"})
        begin = time.monotonic()
        (finding,) = package.admin(config).checks()
    assert (finding.ok, finding.what) == (False, "Connection validation timed out after 300 ms")
    assert "raise connection.validation.timeout.ms" in (finding.remedy or "")
    assert time.monotonic() - begin < 25, "the drivers' own limits are longer"
