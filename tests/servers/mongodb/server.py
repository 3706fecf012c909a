"""Real MongoDB replica sets for tests and the demo: one or several mongod processes, with users and TLS on request."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from tailrace.errors import TailraceError
from tailrace.testing.process import ServerProcess, free_port
from tests.servers.mongodb.binary import LOCKED, Mongod, find_mongod
from tests.servers.mongodb.certificates import Certificates

if TYPE_CHECKING:
    from typing_extensions import Self

NAME = "rs0"
ADMIN, PASSWORD = "admin", "admin-password"
_START_SECONDS = 60
_PARAMETERS = {
    "diagnosticDataCollectionEnabled": "false",
    "shutdownTimeoutMillisForSignaledShutdown": "100",  # a primary waits 15 s for its readers otherwise
    "enableTestCommands": "1",  # fail points: errors at a chosen command
}
_ELECTION = {"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500, "heartbeatTimeoutSecs": 2}
Client = MongoClient[dict[str, Any]]


class Member(ServerProcess):
    """One mongod on a free port of 127.0.0.1, on a folder of its own that is gone at exit."""

    def __init__(self, mongod: Mongod) -> None:
        super().__init__()
        self.port = free_port()
        self.arguments: list[str] = []
        self.home = self._folder("tailrace-mongodb-")
        self._mongod = mongod
        (self.home / "data").mkdir()

    @property
    def address(self) -> str:
        """The member's name in the replica set."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The member's log file."""
        return self.home / "server.log"

    def start(self) -> Self:
        """Start the member, on the data it had before if any, and return once it takes connections."""
        if self.running:
            return self
        seen = self.log.stat().st_size if self.log.exists() else 0
        place = ["--port", str(self.port), "--dbpath", str(self.home / "data"), "--bind_ip", "127.0.0.1"]
        self._launch([self._mongod.program, *place, *self.arguments], {"env": self._mongod.environment})
        deadline = time.monotonic() + _START_SECONDS
        while b'"Waiting for connections"' not in self.log.read_bytes()[seen:]:
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(
                    f"mongod did not start. The end of its log:\n{self._log_tail()}", where=str(self.log)
                )
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """Stop the member in order and keep its data."""
        self._signal(signal.SIGTERM)


class ReplicaSet:
    """A replica set of one or more members, started by `start()` or `with`.

    `auth` asks for a password: the user `admin` may do everything, `create_user` adds others. `tls` asks for encrypted
    connections; `certificates` has the files. `options` are mongod's command line options, such as {"oplogSize": "16"},
    and `parameters` its server parameters. Raises TailraceError when there is no mongod for this machine or it does not
    start.
    """

    def __init__(
        self,
        members: int = 1,
        *,
        version: str = LOCKED,
        auth: bool = False,
        tls: bool = False,
        options: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        mongod = find_mongod(version)
        self.members = [Member(mongod) for _ in range(members)]
        folder = self.members[0].home  # what all members share goes with the first one
        self.certificates = Certificates(folder) if tls else None
        self.auth = auth
        arguments = ["--replSet", NAME, "--nounixsocket"]
        for name, value in {"wiredTigerCacheSizeGB": "0.5", "oplogSize": "256", **(options or {})}.items():
            arguments += [f"--{name}", value]
        for name, value in {**_PARAMETERS, **(parameters or {})}.items():
            arguments += ["--setParameter", f"{name}={value}"]
        arguments += _key_file(folder) if auth else []
        arguments += _encryption(self.certificates) if self.certificates else []
        for member in self.members:
            member.arguments = arguments

    @property
    def hosts(self) -> str:
        """The addresses of all members, as in a connection string."""
        return ",".join(member.address for member in self.members)

    def url(self, user: str | None = None, password: str | None = None, **options: str) -> str:
        """The connection string; `admin` is the user where authentication is on and none is named."""
        if self.auth and user is None:
            user, password = ADMIN, PASSWORD
        login = f"{quote_plus(user)}:{quote_plus(password or '')}@" if user else ""
        options = {"replicaSet": NAME, **options}
        if self.certificates is not None:
            options = {"tls": "true", "tlsCAFile": str(self.certificates.authority), **options}
        return f"mongodb://{login}{self.hosts}/?{urlencode(options)}"

    def client(self, **options: Any) -> Client:
        """A new client that everything is allowed to; close it."""
        return MongoClient(self.url(), serverSelectionTimeoutMS=30000, **options)

    def start(self) -> Self:
        """Start all members, form the set at the first start, and return once there is a primary."""
        for member in self.members:
            member.start()
        with self._direct(self.members[0]) as client:
            self._initiate(client)
        if self.auth:
            self._create_admin()
        self.wait_for_primary()
        return self

    def stop(self) -> None:
        """Stop all members in order and keep their data."""
        for member in self.members:
            member.stop()

    def kill(self) -> None:
        """End all members by SIGKILL."""
        for member in self.members:
            member.kill()

    def recreate(self) -> None:
        """Start all members anew, without any data, on the same addresses."""
        self.kill()
        for member in self.members:
            shutil.rmtree(member.home / "data")
            (member.home / "data").mkdir()
        self.start()

    def close(self) -> None:
        """Stop all members and remove their data."""
        for member in self.members:
            member.kill()
            member.close()

    def wait_for_primary(self, other_than: Member | None = None) -> Member:
        """The primary, waited for; `other_than` waits for another member to be elected."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            for member in self.members:
                if member is not other_than and member.running and self._writable(member):
                    return member
            time.sleep(0.05)
        raise TailraceError(f"no primary was elected in {_START_SECONDS} s", where=self.hosts)

    def step_down(self) -> Member:
        """Make the primary step down for a minute; the new primary is returned. Needs three members."""
        old = self.wait_for_primary()
        with self.client() as client, suppress(AutoReconnect):
            client.admin.command("replSetStepDown", 60, secondaryCatchUpPeriodSecs=10)
        return self.wait_for_primary(other_than=old)

    def create_user(self, name: str, password: str, roles: list[Any]) -> None:
        """A user of the database `admin` with these roles."""
        with self.client() as client:
            client.admin.command("createUser", name, pwd=password, roles=roles)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _direct(self, member: Member) -> Client:
        """A client of one member without a login: until there is a user, that is enough on its own machine."""
        options: dict[str, Any] = {"directConnection": True, "serverSelectionTimeoutMS": 10000}
        if self.certificates is not None:
            options |= {"tls": True, "tlsCAFile": str(self.certificates.authority)}
        return MongoClient(f"mongodb://{member.address}/", **options)

    def _initiate(self, client: Client) -> None:
        members = [{"_id": number, "host": member.address} for number, member in enumerate(self.members)]
        config = {"_id": NAME, "members": members, "settings": _ELECTION, "writeConcernMajorityJournalDefault": False}
        if client.admin.command("hello").get("setName") is None:
            client.admin.command("replSetInitiate", config)

    def _create_admin(self) -> None:
        """The first user, which a member lets anybody create from its own machine."""
        with self._direct(self.wait_for_primary()) as client, suppress(OperationFailure):
            # Refused where the user is there from an earlier start.
            client.admin.command("createUser", ADMIN, pwd=PASSWORD, roles=["root"])

    def _writable(self, member: Member) -> bool:
        try:
            with self._direct(member) as client:
                return bool(client.admin.command("hello")["isWritablePrimary"])
        except PyMongoError:
            return False


def _key_file(folder: Path) -> list[str]:
    """The options for a secret that the members know each other by; it switches authentication on."""
    file = folder / "keyfile"
    file.touch(mode=0o600)
    file.write_text(base64.b64encode(os.urandom(96)).decode(), encoding="ascii")
    return ["--keyFile", str(file)]


def _encryption(files: Certificates) -> list[str]:
    options = ["--tlsMode", "requireTLS", "--tlsCAFile", str(files.authority)]
    return [*options, "--tlsCertificateKeyFile", str(files.server), "--tlsAllowConnectionsWithoutCertificates"]
