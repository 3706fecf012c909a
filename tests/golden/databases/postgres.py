"""Scenarios on PostgreSQL: the server of $TAILRACE_GOLDEN_DSN, or an embedded one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tailrace.connectors.postgres.position import parse_lsn
from tailrace.override import override
from tailrace.testing.postgres import EmbeddedPostgres, PostgresServer
from tests.golden.databases.database import GoldenServer, SkippedError
from tests.golden.script import Directive, split

# The recordings name the database, and the slot lives in it.
DATABASE = "golden"
SLOT = "golden_slot"


class GoldenPostgres(GoldenServer):
    """Implements GoldenServer."""

    format = "postgres-cdc"

    def __init__(self, version: int = 16) -> None:
        dsn = os.environ.get("TAILRACE_GOLDEN_DSN") if version == 16 else None
        self._own = None if dsn else EmbeddedPostgres(version).start()
        self._server = PostgresServer.from_dsn(dsn) if dsn else self._own
        assert self._server is not None
        self._sessions: dict[str, psycopg.Connection[Any]] = {}

    @property
    def server(self) -> PostgresServer:
        """The server."""
        assert self._server is not None
        return self._server

    @override
    def places(self) -> Mapping[str, object]:
        server = self.server
        known = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        return {**known, "dbname": DATABASE, "slot": SLOT}

    @override
    def check(self, folder: Path, settings: Mapping[str, Any]) -> None:
        with self.server.connect() as admin:
            if admin.info.server_version // 10000 < settings.get("server", 0):
                raise SkippedError(f"needs PostgreSQL {settings['server']}")
            for need in settings.get("requires", ()):
                if not _has(admin, need):
                    raise SkippedError(f"needs the server's {need}")

    def prepare(self, folder: Path) -> None:
        """Run by the workload's main session, as temporary tables of its are to be seen there."""
        self.server.drop_database(DATABASE)
        self.server.create_database(DATABASE)
        self._sessions = {"main": self.server.connect(DATABASE)}
        for step in split((folder / "setup.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                self._sessions["main"].execute(step.text.encode())

    @override
    def workload(self, folder: Path) -> Iterator[Directive]:
        current = "main"
        forgiven: tuple[type[Exception], ...] = ()
        for step in split((folder / "workload.sql").read_text(encoding="utf-8")):
            if not isinstance(step, Directive):
                if current not in self._sessions:
                    self._sessions[current] = self.server.connect(DATABASE)
                with suppress(*forgiven):
                    self._sessions[current].execute(step.text.encode())
            elif step.name == "session":
                current = step.argument
            elif step.name == "lenient":
                forgiven = (psycopg.Error,)
            else:
                yield step

    @override
    def log_end(self) -> int:
        with self.server.connect(DATABASE) as connection:
            written = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        return parse_lsn(str(written[0])) if written else 0

    @override
    def position(self, text: str) -> int:
        return parse_lsn(text)

    @override
    def clear(self) -> None:
        for session in self._sessions.values():
            session.close()
        self.server.drop_database(DATABASE)

    @override
    def close(self) -> None:
        if self._own is not None:
            self._own.close()


def _has(admin: psycopg.Connection[Any], need: str) -> bool:
    """Whether an extension can be installed, or the server was built with `xml`."""
    if need == "xml":
        try:
            admin.execute("SELECT '<a/>'::xml")
        except psycopg.errors.FeatureNotSupported:
            return False
        return True
    return admin.execute("SELECT 1 FROM pg_available_extensions WHERE name = %s", [need]).fetchone() is not None
