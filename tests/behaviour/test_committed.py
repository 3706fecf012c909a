"""What servers say of commits before the end of their logs, where a commit can be hidden from it."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from tailrace.connectors.log_ports import Committed
from tailrace.connectors.mongodb.connector import MongoConnector
from tailrace.connectors.mongodb.package import MongoPackage
from tailrace.connectors.postgres.connector import PostgresConnector
from tailrace.connectors.postgres.package import PostgresPackage
from tests.conftest import Database
from tests.servers.mongodb.server import ReplicaSet


def test_a_commit_that_is_not_flushed_yet_lies_before_no_position_that_is_read(database: Database) -> None:
    """With synchronous_commit=off a commit returns before it is flushed, which the WAL writer does later."""
    config = PostgresPackage().resolve({**database.properties, "topic.prefix": "t", "slot.name": "none"})
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "ALTER SYSTEM SET wal_writer_delay = '10s'")
    database.execute("SELECT pg_reload_conf()")
    try:
        with closing(PostgresConnector(config)) as connector, database.connect() as writer:
            writer.execute("SET synchronous_commit = off")
            deadline, key = time.monotonic() + 120, 0
            while True:
                key += 1
                writer.execute("INSERT INTO t VALUES (%s)", [key])
                returned = time.time() * 1e6
                end = connector.log_end()
                known = connector.committed(end)
                assert known is not None
                assert returned < known.before_us
                if end.position < known.position:
                    break
                assert time.monotonic() < deadline, "each commit was flushed at once"
            database.execute("INSERT INTO t VALUES (-1)")  # which flushes all before it
            assert not connector.log_end().position < known.position
    finally:
        database.execute("ALTER SYSTEM RESET wal_writer_delay", "SELECT pg_reload_conf()")


@pytest.mark.long
def test_a_secondary_does_not_know_what_its_primary_has_acknowledged() -> None:
    with ReplicaSet(members=3) as servers:
        primary = servers.wait_for_primary()
        for member in servers.members:
            properties = {"mongodb.connection.string": f"mongodb://{member.address}/?directConnection=true"}
            assert (_committed(properties) is not None) == (member is primary)
        before = time.time() * 1e6
        with servers.client(w=1) as client:
            client.shop.items.insert_one({"_id": 1})
            returned = time.time() * 1e6
        known = _committed({"mongodb.connection.string": servers.url(readPreference="secondary")})
        assert known is not None, "the primary is asked, whoever is read from"
        assert before < known.before_us
        assert returned < known.before_us + 1000, "its clock has milliseconds"


def _committed(properties: dict[str, str]) -> Committed | None:
    config = MongoPackage().resolve({**properties, "topic.prefix": "t"})
    with closing(MongoConnector(config)) as connector:
        return connector.committed(connector.log_end())
