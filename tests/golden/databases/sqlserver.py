"""Scenarios on SQL Server: the stand-in (tests/servers/sqlserver), or a server given by $TAILRACE_SQLSERVER_URL.

Of a given server the scenario's databases (`testdb`) are dropped and created again; its user is a member of sysadmin.
"""

from __future__ import annotations

import json
import os
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.override import override
from tests.golden.databases.database import GoldenServer, SkippedError
from tests.golden.script import Directive, split
from tests.servers.sqlserver.client import GIVEN, SqlServerClient
from tests.servers.sqlserver.server import SqlServer

# The recordings name the database.
DATABASE = "testdb"


class GoldenSqlServer(GoldenServer):
    """Implements GoldenServer."""

    format = "sqlserver-cdc"

    def __init__(self) -> None:
        url = os.environ.get(GIVEN)
        self._server = SqlServerClient(url) if url else SqlServer(capture_interval=0.02).start()
        self._sessions: dict[str, Any] = {}
        self._databases = [DATABASE]

    @property
    def server(self) -> SqlServerClient | SqlServer:
        """The server."""
        return self._server

    @property
    def databases(self) -> Sequence[str]:
        """The databases of the scenario."""
        return self._databases

    @override
    def places(self) -> Mapping[str, object]:
        server = self._server
        known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return {**known, "dbname": DATABASE}

    @override
    def check(self, folder: Path, settings: Mapping[str, Any]) -> None:
        if not (folder / "setup.sql").exists():
            raise SkippedError("it has no script")

    @override
    def prepare(self, folder: Path) -> None:
        self.clear()
        self._databases = _databases(folder)
        for database in self._databases:
            self._server.create(database)
            # The server of the recordings needed no option for this isolation level.
            self._server.execute(f"ALTER DATABASE {database} SET ALLOW_SNAPSHOT_ISOLATION ON")
        for step in split((folder / "setup.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                self._execute("main", step.text)
        for database in self._databases:
            self._server.settle(database)

    @override
    def workload(self, folder: Path) -> Iterator[Directive]:
        current = "main"
        for step in split((folder / "workload.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                self._execute(current, step.text)
            elif step.name == "session":
                current = step.argument
            elif step.name == "start" and step.argument:
                # The recorded engine was stopped after so many events; a batch here has whole transactions.
                yield from (Directive("start"), Directive("wait"), Directive("stop"))
            else:
                yield Directive("wait") if step.name == "events" else step

    @override
    def log_end(self) -> LsnPosition:
        lsns = {}
        for database in self._databases:
            self._server.settle(database)
            with self._sessions["main"].cursor() as cursor:
                cursor.execute(f"SELECT {database}.sys.fn_cdc_get_max_lsn()")
                lsns[database] = text_of(cursor.fetchone()[0])
        return LsnPosition.of(lsns)

    @override
    def position(self, text: str) -> LsnPosition:
        return LsnPosition.from_text(text)

    @override
    def clear(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions = {}
        for database in self._databases:
            self._server.drop(database)

    @override
    def close(self) -> None:
        self._server.stop()

    def _execute(self, session: str, text: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = self._server.connect(DATABASE)
        with self._sessions[session].cursor() as cursor:
            cursor.execute(text)


def _databases(folder: Path) -> list[str]:
    config = json.loads((folder / "connector.json").read_text(encoding="utf-8"))["config"]
    return [string.Template(name).safe_substitute(dbname=DATABASE) for name in config["database.names"].split(",")]
