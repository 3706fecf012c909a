"""The test double: listens for clients and holds what their sessions share."""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import backups
from .catalogue.literals import quote
from .catalogue.store import Catalogue
from .cdc.capture import Capture
from .engine import Engine
from .faults import Faults
from .platforms import SQL_SERVER_2022, Platform
from .session.session import Session
from .session.transactions import TableLocks
from .tds.certificate import tls_context
from .tds.connection import Connection
from .tds.login import Login
from .tsql.errors import SqlError, SqlErrors, error

if TYPE_CHECKING:
    from typing_extensions import Self

_FIRST_SPID = 51
_DROP_SECONDS = 60


class SqlServer:
    """A SQL Server on a free port of 127.0.0.1, started by `start()` or `with`.

    Without `folder` its data is temporary. `encryption` is `login` (the log-in, or all if the client asks), `off` or
    `required`. `utc_offset` is the offset of the server's local time, in minutes. `capture_interval` is the time in
    seconds between two scans of the capture step; `idle_seconds` how long a database is idle before the capture job
    notes it in `lsn_time_mapping`. With `record`, `statements` keeps the texts that clients send.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        port: int = 0,
        password: str = "Double-Password-1",
        encryption: str = "login",
        utc_offset: int = 0,
        capture_interval: float = 0.1,
        idle_seconds: float = 300,
        record: bool = False,
        platform: Platform = SQL_SERVER_2022,
    ) -> None:
        self.host = "127.0.0.1"
        self.port = port
        self.user = "sa"
        self.password = password
        self.name = "DOUBLE"
        self.encryption = encryption
        self.engine = Engine(folder / "postgres" if folder is not None else None, utc_offset)
        self.table_locks = TableLocks()
        self.platform = platform
        self.faults = Faults()
        # Whether readers wait for transactions that have changed their tables, as without versions of rows.
        self.readers_wait = False
        self.statements: list[tuple[int, str]] = []
        self._record = record
        self._capture_settings = (capture_interval, idle_seconds)
        self._connections: set[Connection] = set()
        self._sessions: dict[int, Session] = {}
        self._lock = threading.Lock()
        self._spids = itertools.count(_FIRST_SPID)
        self._listener: socket.socket | None = None
        self._tls: tuple[ssl.SSLContext, str] | None = None

    # Life

    def start(self) -> Self:
        """Start listening; return once clients can connect."""
        self.engine.start()
        self._lookups = self.engine.connect("lookups")
        self._lookups.run("TRUNCATE cat.sessions")
        self._lookup_lock = threading.Lock()
        self.catalogue = Catalogue(self.engine.connect("catalogue"))
        self.views = self.engine.views(self._lookups)
        self.become(self.platform)
        self.capture = Capture(self.engine, *self._capture_settings)
        self.capture.start()
        self._listener = socket.create_server((self.host, self.port), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="listener", daemon=True).start()
        return self

    def stop(self) -> None:
        """Cut all connections and stop."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.close()
        deadline = time.monotonic() + _DROP_SECONDS
        while self._connections and time.monotonic() < deadline:
            time.sleep(0.01)
        self.capture.close()
        self.engine.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        listener = self._listener
        while listener is not None:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            connection = Connection(self, client)
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve()
        finally:
            self._connections.discard(connection)

    def tls(self) -> tuple[ssl.SSLContext, str]:
        """What encrypts connections of this run, and its certificate in PEM: for localhost, by its own authority."""
        with self._lock:
            if self._tls is None:
                self._tls = tls_context()
            return self._tls

    # Sessions

    def open_session(self, who: Login) -> Session:
        """The session of a client whose password is right."""
        self._check_password(who)
        default = self.lookup(f"SELECT default_database FROM cat.logins WHERE lower(name) = {quote(who.user.lower())}")
        database = who.database or default or "master"
        fault = self.faults.of_login(database)
        if fault is not None:
            raise SqlErrors(fault.errors)
        spid = next(self._spids)
        session = Session(self, spid, who.user, who.host, who.application)
        try:
            session.use(database)
        except SqlError as failure:
            session.close()
            raise SqlErrors((error(4060, database), error(18456, who.user))) from failure
        with self._lock:
            self._sessions[spid] = session
        pid = session.backend.scalar("SELECT pg_backend_pid()")
        values = (
            f"{spid}, {pid}, {quote(who.user)}, {quote(who.host)}, {quote(who.application)},"
            f" {session.database.database_id}"
        )
        self.run(f"INSERT INTO cat.sessions VALUES ({values})")
        return session

    def _check_password(self, who: Login) -> None:
        found = self.lookup(
            f"SELECT coalesce(password, '') FROM cat.logins WHERE type = 'S' AND is_disabled = 0 AND lower(name) ="
            f" {quote(who.user.lower())}"
        )
        wanted = self.password if who.user.lower() == "sa" else found
        if found is None or who.password != wanted:
            raise error(18456, who.user)

    def session_ended(self, session: Session) -> None:
        """Forget a session whose client has left."""
        with self._lock:
            self._sessions.pop(session.spid, None)
        session.close()
        self.run(f"DELETE FROM cat.sessions WHERE session_id = {session.spid}")

    def note_database(self, session: Session) -> None:
        """Note that a session has changed its database."""
        self.run(
            f"UPDATE cat.sessions SET database_id = {session.database.database_id} WHERE session_id = {session.spid}"
        )

    def note_statement(self, session: Session, text: str) -> None:
        """Keep the text of a statement, if statements are recorded. Raises the errors that tests have it get."""
        fault = self.faults.of_statement(text)
        if fault is not None:
            raise SqlErrors(fault.errors, is_cut=fault.is_fatal)
        if self._record:
            self.statements.append((session.spid, text))

    def users_of(self, database: str, asking: Session) -> bool:
        """Whether other sessions still use a database, after those that are just leaving have left."""
        deadline = time.monotonic() + _DROP_SECONDS
        while any(
            session is not asking and session.database_name == database for session in list(self._sessions.values())
        ):
            if time.monotonic() > deadline:
                return True
            time.sleep(0.02)
        return False

    @contextmanager
    def capture_paused(self, database_id: int) -> Iterator[None]:
        """Keep the capture step away from a database."""
        with self.capture.paused(database_id):
            yield

    # Look-ups

    def lookup(self, query: str) -> str | None:
        """One value of the catalogue as it is committed."""
        with self._lookup_lock:
            return self._lookups.scalar(query)

    def run(self, statement: str) -> None:
        """Run a statement of the double's own."""
        with self._lookup_lock:
            self._lookups.run(statement)

    # For tests

    def connect(self, database: str = "master", **options: Any) -> Any:
        """A connection of pymssql as administrator, which commits each statement."""
        import pymssql  # only tests that use it need it

        settings = {
            "server": self.host,
            "port": str(self.port),
            "user": self.user,
            "password": self.password,
            "tds_version": "7.4",
            "autocommit": True,
        }
        return pymssql.connect(database=database, **{**settings, **options})

    def create(self, database: str) -> None:
        """A new database whose changes are captured; one of that name is dropped."""
        self.drop(database)
        self.execute(f"CREATE DATABASE [{database}]")
        self.execute("EXEC sys.sp_cdc_enable_db", database=database)

    def drop(self, database: str) -> None:
        """Drop a database if it is there, whoever uses it."""
        self.cut(database)
        self.execute(f"DROP DATABASE IF EXISTS [{database}]")

    def become(self, platform: Platform, name: str | None = None) -> None:
        """Be another kind of server, or a node of another name, from now on."""
        self.platform, self.name = platform, name or self.name
        values = ", ".join(f"({quote(key)}, {quote(each)})" for key, each in platform.properties(self.name).items())
        self.run(f"DELETE FROM cat.properties; INSERT INTO cat.properties VALUES {values}")
        is_there = self.lookup("SELECT ms.db_id('rdsadmin')") is not None
        if platform.is_rds and not is_there:
            self.run("SELECT cat.create_database('rdsadmin', nextval('cat.database_ids')::int)")
        elif is_there and not platform.is_rds:
            self.run("DELETE FROM cat.databases WHERE name = 'rdsadmin'")
        self.catalogue.changed()

    @contextmanager
    def being(self, platform: Platform, name: str | None = None) -> Iterator[None]:
        """Be another kind of server within a block."""
        before = self.platform, self.name
        self.become(platform, name)
        try:
            yield
        finally:
            self.become(*before)

    def fail_over(self, node: str, database: str) -> None:
        """Have another node answer, whose copy of a database was made at another time; connections are cut."""
        self.cut(database)
        self.become(self.platform, node)
        self.run(f"UPDATE cat.databases SET create_date = now() - INTERVAL '7 days' WHERE name = {quote(database)}")

    def mask(self, database: str, table: str, column: str) -> None:
        """ALTER COLUMN ... ADD MASKED WITH (FUNCTION = 'default()')."""
        self._change_column(database, table, column, "mask = 'default()'")

    def encrypt(self, database: str, table: str, column: str) -> None:
        """Have the catalogue say that Always Encrypted protects a column."""
        self._change_column(database, table, column, "encryption_type = 2")

    def partition(self, database: str, table: str, parts: int) -> None:
        """Have the catalogue say that a table has several partitions."""
        values, again = f"{self._object(database, table)}, {parts}", "(object_id) DO UPDATE SET parts = EXCLUDED.parts"
        self.run(f"INSERT INTO cat.partitioned VALUES ({values}) ON CONFLICT {again}")

    def move(self, database: str, table: str, part: int = 1, rows: int | None = None) -> None:
        """Have the catalogue say that a part of a table lies elsewhere: ALTER INDEX ... REBUILD.

        With `rows` it is the rows' number from now on: ALTER TABLE ... SWITCH PARTITION, in the catalogue alone.
        """
        values = f"{self._object(database, table)}, {part}, nextval('cat.hobts'), {'NULL' if rows is None else rows}"
        again = "(object_id, part) DO UPDATE SET hobt = EXCLUDED.hobt, rows = EXCLUDED.rows"
        self.run(f"INSERT INTO cat.moved VALUES ({values}) ON CONFLICT {again}")

    def switch(self, database: str, table: str, other: str) -> None:
        """ALTER TABLE ... SWITCH TO: give a table's rows to an empty one of the same columns, as no change."""
        source, target = (self._object(database, each) for each in (table, other))
        moved = f"WITH rows AS (DELETE FROM u.t{source} RETURNING *) INSERT INTO u.t{target} SELECT * FROM rows"
        self.run(f"BEGIN; SET LOCAL session_replication_role = replica; {moved}; COMMIT")
        for each in (table, other):
            self.move(database, each)

    def add_policy(self, database: str, table: str, condition: str, exempt: str = "") -> None:
        """A security policy that shows no other rows, but to these logins. Columns are c1, c2, ... in the condition."""
        values = f"{self._object(database, table)}, 'policy_{table}', {quote(condition)}, {quote(exempt)}"
        self.run(f"INSERT INTO cat.filters VALUES ({values})")
        self.catalogue.changed()

    def _change_column(self, database: str, table: str, column: str, change: str) -> None:
        where = f"object_id = {self._object(database, table)} AND name = {quote(column)}"
        self.run(f"UPDATE cat.columns SET {change} WHERE {where}")
        self.catalogue.changed()

    def _object(self, database: str, table: str) -> str:
        return self.lookup(f"SELECT ms.object_id({quote('dbo.' + table)}, {self._number(database)}, 'U')") or "0"

    def cut(self, database: str) -> None:
        """Cut the connections to a database."""
        for connection in list(self._connections):
            session = connection.session
            if session is not None and session.database_name == database:
                connection.close()

    def back_up(self, database: str) -> None:
        """Keep what a database holds."""
        number = self._number(database)
        with self.capture.paused(number), self._lookup_lock:
            backups.back_up(self._lookups, number)

    def restore(self, database: str) -> None:
        """Put back what it held when it was backed up; its tables must be the same."""
        self.cut(database)
        number = self._number(database)
        with self.capture.paused(number), self._lookup_lock:
            backups.restore(self._lookups, number)

    def _number(self, database: str) -> int:
        return int(self.lookup(f"SELECT ms.db_id({quote(database)})") or 0)

    def settle(self, database: str) -> None:
        """Have the change tables hold what is committed."""
        self.capture.scan(self._number(database))

    def execute(self, *statements: str, database: str = "master") -> list[tuple[Any, ...]]:
        """Run statements one after the other; return the rows of the last."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            return rows
