"""Scenarios on Db2: the stand-in of the project's own (tests/servers/db2), or a server given by $TAILRACE_DB2_URL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tailrace.connectors.change_tables.lsn import text_of
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.db2.log.end import END
from tailrace.override import override
from tests.golden.databases.database import GoldenServer, SkippedError
from tests.golden.script import Directive, split
from tests.servers.db2.client import Db2Client, Session
from tests.servers.db2.server import Db2

GIVEN = "TAILRACE_DB2_URL"


class GoldenDb2(GoldenServer):
    """Implements GoldenServer."""

    format = "db2-cdc"
    # As the recorder has it.
    settings: Mapping[str, str] = {"driver.securityMechanism": "3"}

    def __init__(self) -> None:
        url = os.environ.get(GIVEN)
        self._own = None if url else Db2(interval=0.02).start()
        self._server = self._own or Db2Client.of_url(url or "")
        self._sessions: dict[str, Session] = {}

    @property
    def server(self) -> Db2 | Db2Client:
        """The server."""
        return self._server

    @override
    def places(self) -> Mapping[str, object]:
        server = self._server
        known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return {**known, "dbname": server.database}

    @override
    def check(self, folder: Path, settings: Mapping[str, Any]) -> None:
        if not (folder / "setup.sql").exists():
            raise SkippedError("it has no script")

    @override
    def prepare(self, folder: Path) -> None:
        self._server.clear()
        for step in split((folder / "setup.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                self._execute("main", step.text)

    @override
    def workload(self, folder: Path) -> Iterator[Directive]:
        current = "main"
        for step in split((folder / "workload.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                self._execute(current, step.text)
            elif step.name == "session":
                current = step.argument
            else:
                yield step

    @override
    def log_end(self) -> LsnPosition:
        self._server.settle()
        found = self._server.execute(END.format(control="ASNCDC"))[0][0]
        return LsnPosition.of({self._server.database: text_of(found)})

    @override
    def position(self, text: str) -> LsnPosition:
        return LsnPosition.from_text(text)

    @override
    def clear(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions = {}
        self._server.clear()

    @override
    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def _execute(self, name: str, text: str) -> None:
        if name not in self._sessions:
            self._sessions[name] = self._server.connect()
        session, word = self._sessions[name], text.strip().upper()
        if word == "BEGIN":
            session.begin()
        elif word in ("COMMIT", "ROLLBACK"):
            session.end(commit=word == "COMMIT")
        else:
            session.rows(text)
