"""A SQL Server that tests are given by a URL: its statements, and a capture step that follows every commit soon."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import pymssql

GIVEN = "TAILRACE_SQLSERVER_URL"
_PAUSE_S, _PATIENCE_S = 0.1, 60
_PORT = 1433


class SqlServerClient:
    """Where a server is, and what tests ask of it. Its user is a member of sysadmin, and its databases are dropped."""

    def __init__(self, url: str) -> None:
        """The server of `mssql://user:password@host:port`."""
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or _PORT
        self.user, self.password = (unquote(each or "") for each in (parts.username, parts.password))
        self._captures: dict[str, _Capture] = {}

    def __enter__(self) -> SqlServerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self, database: str = "master") -> Any:
        """A connection that commits each statement."""
        known = {"server": self.host, "port": str(self.port), "user": self.user, "password": self.password}
        return pymssql.connect(database=database, tds_version="7.4", autocommit=True, **known)

    def execute(self, *statements: str, database: str = "master") -> list[tuple[Any, ...]]:
        """Run statements one after the other; the rows of the last."""
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def create(self, database: str) -> None:
        """A new database whose changes are captured; one of that name is dropped."""
        self.drop(database)
        self.execute(f"CREATE DATABASE [{database}]")
        self.execute("EXEC sys.sp_cdc_enable_db", database=database)
        self._captures[database] = _Capture(self, database)

    def drop(self, database: str) -> None:
        """Drop a database if it is there, whoever uses it."""
        capture = self._captures.pop(database, None)
        if capture is not None:
            capture.stop()
        if self.execute(f"SELECT DB_ID(N'{database}')")[0][0] is not None:
            alone = f"ALTER DATABASE [{database}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE"
            self.execute(alone, f"DROP DATABASE [{database}]")

    def settle(self, database: str) -> None:
        """Wait until the change tables have what is committed."""
        self._captures[database].settle()

    def stop(self) -> None:
        """Drop what was created."""
        for database in list(self._captures):
            self.drop(database)


class _Capture:
    """Scans a database's log all the time, in place of SQL Server Agent's job, which pauses for seconds or may not run.

    Two cannot scan: the job is stopped whenever it is met.
    """

    def __init__(self, server: SqlServerClient, database: str) -> None:
        self._server, self._database = server, database
        self._scans, self._scanned, self._is_over = 0, threading.Condition(), False
        self._error: pymssql.Error | None = None
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait for a scan that began after now. Raises TimeoutError."""
        with self._scanned:
            goal = self._scans + 2
            if not self._scanned.wait_for(lambda: self._scans >= goal, _PATIENCE_S):
                raise TimeoutError(f"{self._database} is not captured: {self._error}")

    def stop(self) -> None:
        """End it."""
        with self._scanned:
            self._is_over = True
            self._scanned.notify_all()
        self._thread.join()

    def _run(self) -> None:
        with closing(self._server.connect(self._database)) as connection, connection.cursor() as cursor:
            while True:
                done = self._scan(cursor)
                with self._scanned:
                    self._scans += done
                    self._scanned.notify_all()
                    if self._scanned.wait_for(lambda: self._is_over, _PAUSE_S):
                        return

    def _scan(self, cursor: Any) -> bool:
        try:
            cursor.execute("EXEC sys.sp_cdc_scan @maxtrans = 5000, @maxscans = 100")
        except pymssql.Error as error:
            self._error = error
            # The job does not run, or there is none before the first table is captured.
            with suppress(pymssql.Error):
                cursor.execute("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
            return False
        return True
