"""Databases that `tailrace verify` is run on by tests, and a run of the command."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tailrace.override import override
from tests.conformance import db2 as db2_users
from tests.conformance.mongodb import PASSWORD as MONGO_PASSWORD
from tests.conformance.sqlserver import LOGIN
from tests.conformance.sqlserver import PASSWORD as SQLSERVER_PASSWORD
from tests.conftest import Database
from tests.servers.golden import load

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "verify"]
PLANTED, VALUE = "planted_name_7f3a", "planted-value-9c1d"
Rows = list[tuple[Any, ...]]


class Place(ABC):
    """A database that `verify` is run on."""

    name: str
    url: str
    environment: Mapping[str, str]
    words: tuple[str, ...]
    """What no report may have."""
    deviating: frozenset[str] = frozenset()
    """The probes by which a stand-in may be told from a real server; none for a real one."""

    @abstractmethod
    def left(self) -> list[str]:
        """What of the command's is on the server."""


class PostgresPlace(Place):
    """A database of PostgreSQL."""

    name = "postgres"

    def __init__(self, database: Database) -> None:
        self.database, server = database, database.server
        self.url = f"postgresql://{server.user}@{server.host}:{server.port}/{database.name}"
        self.environment = {"PGPASSWORD": server.password or ""}
        self.words = (database.name, server.user, server.password or "-", server.host, str(server.port))
        database.execute(f"CREATE TABLE {PLANTED} (t text)", f"INSERT INTO {PLANTED} VALUES ('{VALUE}')")

    @override
    def left(self) -> list[str]:
        query = (
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'tailrace_v%' "
            "UNION ALL SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'tailrace_v%' "
            "UNION ALL SELECT pubname FROM pg_publication WHERE pubname LIKE 'tailrace_v%'"
        )
        with self.database.connect() as connection:
            return [str(row[0]) for row in connection.execute(query).fetchall()]


class SqlServerPlace(Place):
    """A database of the stand-in for SQL Server."""

    name = "sqlserver"

    def __init__(self, server: Any, database: str) -> None:
        self.server, self.database = server, database
        self.url = f"mssql://{LOGIN}@{server.host}:{server.port}/{database}"
        self.environment = {"MSSQL_PASSWORD": SQLSERVER_PASSWORD}
        self.words = (database, LOGIN, SQLSERVER_PASSWORD, server.host, str(server.port), server.name)
        self.run(f"CREATE TABLE {PLANTED} (t varchar(40))", f"INSERT INTO {PLANTED} VALUES ('{VALUE}')")

    def run(self, *statements: str) -> Rows:
        """Run statements in the database."""
        rows: Rows = self.server.execute(*statements, database=self.database)
        return rows

    @override
    def left(self) -> list[str]:
        found = self.run("SELECT name FROM sys.schemas WHERE name LIKE 'tailrace%'")
        found += self.run("SELECT capture_instance FROM cdc.change_tables WHERE capture_instance LIKE 'tailrace%'")
        return [row[0] for row in found]


class MongoPlace(Place):
    """A replica set."""

    name = "mongodb"

    def __init__(self, servers: Any) -> None:
        self.servers = servers
        self.url = f"mongodb://admin@{servers.hosts}/?replicaSet=rs0&authSource=admin"
        self.environment = {"MONGODB_PASSWORD": "admin-password"}
        self.words = ("admin-password", servers.hosts, servers.hosts.partition(":")[2], "127.0.0.1", MONGO_PASSWORD)
        with servers.client() as client:
            client[PLANTED]["t"].replace_one({"_id": 1}, {"t": VALUE}, upsert=True)

    @override
    def left(self) -> list[str]:
        with self.servers.client() as client:
            return [each for each in client.list_database_names() if each.startswith("tailrace_v")]


class Db2Place(Place):
    """The stand-in for Db2."""

    name = "db2"
    deviating = frozenset({"blocking.deadlock"})  # Derby has a code of its own

    def __init__(self, server: Any) -> None:
        self.server = server
        self.url = f"db2://{server.user}@{server.host}:{server.port}/{server.database}?securityMechanism=3"
        self.environment = {"DB2_PASSWORD": db2_users.PASSWORD}
        self.words = (server.database, server.user, db2_users.PASSWORD, server.host, str(server.port))

    @override
    def left(self) -> list[str]:
        return [
            str(row[0])
            for query in (
                "SELECT SCHEMANAME FROM SYSCAT.SCHEMATA WHERE SCHEMANAME LIKE 'TAILRACE%'",
                "SELECT TABNAME FROM SYSCAT.TABLES WHERE TABNAME LIKE 'CDC_TAILRACE%'",
                "SELECT SOURCE_TABLE FROM ASNCDC.IBMSNAP_REGISTER WHERE SOURCE_OWNER LIKE 'TAILRACE%'",
            )
            for row in self.server.execute(query)
        ]


@contextmanager
def placed(name: str, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A database of one's own on the server of that name."""
    if name == "postgres":
        server = request.getfixturevalue("postgres18")
        database = Database(server, f"test_{uuid4().hex[:12]}")
        server.create_database(database.name)
        try:
            yield PostgresPlace(database)
        finally:
            server.drop_database(database.name)
    elif name == "sqlserver":
        server, database = request.getfixturevalue("sqlserver"), f"verify_{uuid4().hex[:8]}"  # type: ignore[assignment]
        server.create(database)
        server.execute("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0", database=database)
        server.readers_wait = True
        try:
            yield SqlServerPlace(server, database)  # type: ignore[arg-type]
        finally:
            server.readers_wait = False
            server.drop(database)
    else:
        server = request.getfixturevalue(name)
        yield MongoPlace(server) if name == "mongodb" else Db2Place(server)


@dataclass(frozen=True)
class Done:
    """A run of the command, with what it wrote."""

    place: Place
    report: dict[str, Any]
    page: str
    output: str
    code: int

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each probe."""
        return {entry["name"]: entry["outcome"] for entry in self.report["probes"]}


def verified(place: Place, folder: Path, *arguments: str) -> Done:
    """Run the command to its end."""
    out = folder / "report.json"
    done = subprocess.run(
        [*COMMAND, place.url, "--out", str(out), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **place.environment},
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert out.exists(), done.stderr
    output = done.stdout + done.stderr
    return Done(place, load(out), out.with_suffix(".md").read_text(encoding="utf-8"), output, done.returncode)
