"""Fixtures for all tests: real servers, started when first asked for, and one Spark session."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from hypothesis import HealthCheck, settings
from psycopg import sql
from pyspark.sql import SparkSession

from tailrace.pipeline.session import local_session
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres, PostgresServer
from tests.conformance import db2 as db2_users
from tests.conformance.mongodb import create_users
from tests.conformance.sqlserver import LOGIN, PASSWORD, POOR
from tests.servers.mongodb.server import ReplicaSet
from tests.servers.registry import Registry, why_not_here
from tests.servers.sqlserver.server import SqlServer

if TYPE_CHECKING:
    from tests.servers.db2.server import Db2

# An example, or making one, takes longer than usual where the machine does other work: that is no failure.
# Half of Hypothesis's own number: the default suite runs with each change, each time with other random values.
settings.register_profile("tests", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
# `make quick`: as many examples as show that a test runs.
settings.register_profile("quick", parent=settings.get_profile("tests"), max_examples=10)
settings.load_profile("tests")


def pytest_sessionstart() -> None:
    """Collecting makes objects that stay: the collector would take a fifth of its time for nothing (12 s to 10 s)."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on the collector looks at what tests make alone."""
    gc.freeze()
    gc.enable()


@dataclass(frozen=True)
class Database:
    """An empty database for one test; it goes with its slots and publications when the test ends."""

    server: PostgresServer
    name: str

    @property
    def dsn(self) -> str:
        """The connection text of a superuser."""
        return self.server.dsn(self.name)

    @property
    def properties(self) -> dict[str, str]:
        """A connector's `database.*` properties."""
        return self.server.properties(self.name)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection that commits each statement."""
        return self.server.connect(self.name)

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    """PostgreSQL 18, or the server of $TAILRACE_TEST_PG_DSN_18."""
    with _server(18) as server:
        yield server


@pytest.fixture(scope="session")
def postgres16() -> Iterator[PostgresServer]:
    """PostgreSQL 16, or the server of $TAILRACE_TEST_PG_DSN_16."""
    with _server(16) as server:
        yield server


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """A database of one's own on PostgreSQL 18."""
    with _database(postgres18) as database:
        yield database


@pytest.fixture
def database16(postgres16: PostgresServer) -> Iterator[Database]:
    """A database of one's own on PostgreSQL 16."""
    with _database(postgres16) as database:
        yield database


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """A Kafka broker; tests share it, so each takes topics of its own."""
    with EmbeddedKafka() as broker:
        _coordinate(broker)
        yield broker


@pytest.fixture(scope="session")
def registry() -> Iterator[Registry]:
    """A schema registry; tests share it, so each takes topics of its own, and are skipped where Maven has it not."""
    if (why := why_not_here()) is not None:
        pytest.skip(why)
    with Registry() as server:
        yield server


@pytest.fixture(scope="session")
def mongodb() -> Iterator[ReplicaSet]:
    """A replica set of one member with the users of the conformance suite; tests take databases of their own."""
    with ReplicaSet(auth=True) as servers:
        create_users(servers)
        yield servers


@pytest.fixture(scope="session")
def sqlserver() -> Iterator[SqlServer]:
    """The stand-in for SQL Server with the logins of the conformance suite; tests take databases of their own."""
    with SqlServer(capture_interval=0.05) as server:
        server.execute(f"CREATE LOGIN {LOGIN} WITH PASSWORD = '{PASSWORD}'")
        server.execute(f"ALTER SERVER ROLE sysadmin ADD MEMBER {LOGIN}")
        server.execute(f"CREATE LOGIN {POOR} WITH PASSWORD = '{PASSWORD}'")
        yield server


@pytest.fixture(scope="session")
def db2() -> Iterator[Db2]:
    """The stand-in for Db2 with the users of the conformance suite; tests take schemas of their own."""
    from tests.servers.db2.server import Db2  # its driver is not there for every processor

    users = dict.fromkeys((db2_users.POOR, db2_users.CDC), db2_users.PASSWORD)
    with Db2(password=db2_users.PASSWORD, users=users) as server:
        yield server


def _coordinate(broker: EmbeddedKafka) -> None:
    """Wait for the coordinator of consumer groups, which a new broker sets up at the first question for it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "tests"})
    deadline = time.monotonic() + 120
    while True:
        try:
            consumer.committed([TopicPartition("tests", 0)], timeout=5)
            return consumer.close()
        except KafkaException:  # noqa: PERF203  # the loop is the retrying
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the test run: two local cores, UTC, no UI."""
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": 2,
        # Many short queries: the JVM's second compiler costs more than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    session = local_session("tests", folder / "spark.log", settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the recordings and specifications that lie outside the project; skips where it is missing."""
    folder = Path(os.environ.get("TAILRACE_SHARED") or Path(__file__).parents[2] / "shared")
    if not folder.is_dir():
        pytest.skip("needs the folder of recordings, name it in TAILRACE_SHARED")
    return folder


@contextmanager
def _server(version: int) -> Iterator[PostgresServer]:
    dsn = os.environ.get(f"TAILRACE_TEST_PG_DSN_{version}")
    if dsn:
        yield PostgresServer.from_dsn(dsn)
    else:
        with EmbeddedPostgres(version) as server:
            _log_in_faster(server)
            yield server


def _log_in_faster(server: EmbeddedPostgres) -> None:
    """A password's 4,096 rounds of hashing are most of what a connection costs, and tests make thousands."""
    change = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(server.user), sql.Literal(server.password))
    with server.connect() as connection:
        connection.execute("SET scram_iterations = 1")
        connection.execute(change)


@contextmanager
def _database(server: PostgresServer) -> Iterator[Database]:
    name = f"test_{uuid4().hex[:12]}"
    server.create_database(name)
    try:
        yield Database(server, name)
    finally:
        server.drop_database(name)
