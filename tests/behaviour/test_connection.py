"""Connection properties against a real server: encryption and certificates by a TLS proxy in front of it."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tailrace.connectors.postgres.admin.url import properties_of
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.log.feed import LibpqFeed
from tailrace.connectors.postgres.log.stream import LogStream
from tailrace.connectors.postgres.server.connect import connect, is_transient, parameters
from tailrace.connectors.postgres.server.refusal import state_of_refusal
from tailrace.errors import SourceError
from tests.behaviour import streams_here
from tests.behaviour.capture import capturing
from tests.conftest import Database

SSL_REQUEST = 8  # bytes that a client sends to ask for encryption


class TlsProxy:
    """Ends TLS in front of a server that has none, and notes the name on each client's certificate."""

    def __init__(self, folder: Path, port: int) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.context.load_verify_locations(folder / "ca.crt")
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.target = port
        self.names: list[str | None] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            client.recv(SSL_REQUEST, socket.MSG_WAITALL)
            client.sendall(b"S")
            with (
                self.context.wrap_socket(client, server_side=True) as secure,
                socket.create_connection(("127.0.0.1", self.target)) as server,
            ):
                subject = dict(pair[0] for pair in (secure.getpeercert() or {}).get("subject", ()))  # type: ignore[misc]
                self.names.append(subject.get("commonName"))
                back = threading.Thread(target=relay, args=(server, secure), daemon=True)
                back.start()
                relay(secure, server)
                back.join()


def relay(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a certificate for `localhost` and one for the client `reader`, whose key has the password `pw`."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path_factory.mktemp("certificates")
    new = ("req", "-newkey", "rsa:2048", "-x509", "-days", "2")
    openssl(folder, *new, "-nodes", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
    openssl(
        *(folder, *new, *signed, "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        *("-keyout", "server.key", "-out", "server.crt"),
    )
    openssl(
        *(folder, *new, *signed, "-subj", "/CN=reader", "-passout", "pass:pw"),
        *("-keyout", "reader.key", "-out", "reader.crt"),
    )
    (folder / "reader.key").chmod(0o600)
    return folder


@pytest.fixture
def proxy(certificates: Path, database: Database) -> Iterator[TlsProxy]:
    proxy = TlsProxy(certificates, database.server.port)
    yield proxy
    proxy.listener.close()


def answer(database: Database, statement: str = "SELECT 'connected'", **properties: str) -> object:
    """What a statement gives over a connection under these properties."""
    given = {name.replace("__", "."): value for name, value in properties.items()}
    with connect(resolve({**database.properties, "topic.prefix": "t", **given})) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return None if row is None else row[0]


def test_the_log_over_tls_is_the_same(database: Database, proxy: TlsProxy) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    there = {"database__hostname": "localhost", "database__port": str(proxy.port), "database__sslmode": "require"}
    with capturing(database, **there) as capture:
        capture.step()
        database.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 20000) AS n")
        database.execute("DELETE FROM t WHERE id % 2 = 0")
        assert [row["op"] for row in capture.step()] == ["c"] * 20_000 + ["d"] * 10_000
        opened = streams_here.streams[f"tailrace {capture.offset['pipeline']}"]
        assert isinstance(opened, LogStream)
        assert opened._replication is not None
        assert isinstance(opened._replication.feed, LibpqFeed)


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer"])
def test_a_server_without_encryption(database: Database, mode: str) -> None:
    assert answer(database, database__sslmode=mode) == "connected"


def test_a_role_that_may_not_log_in(database: Database) -> None:
    role = f"nologin_{database.name}"
    database.execute(f"CREATE ROLE {role} NOLOGIN PASSWORD 'x'")
    try:
        with pytest.raises(SourceError, match=r"not permitted to log in\n  Remedy: ALTER ROLE <database.user> LOGIN"):
            answer(database, database__user=role, database__password="x")
    finally:
        database.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_server_without_tls_is_an_error_if_encryption_is_required(database: Database, mode: str) -> None:
    with pytest.raises(SourceError, match="server does not support SSL"):
        answer(database, database__sslmode=mode, database__sslrootcert="system" if mode == "verify-full" else "none")


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_the_reason_of_a_refused_login_is_asked_over_tls(database: Database, proxy: TlsProxy, mode: str) -> None:
    """Whatever the language of its words: a client without a place, and one whose role has none."""
    port = database.server.port if mode == "disable" else proxy.port
    there = {"database__hostname": "localhost", "database__port": str(port), "database__sslmode": mode}
    named = {name.replace("__", "."): value for name, value in there.items()}
    given = parameters(resolve({**database.properties, "topic.prefix": "t", **named}))
    assert state_of_refusal(given, "ist nicht bereit") == "57P03", "it takes this one now"
    role = f"many_{database.name}_{mode}"
    database.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0 PASSWORD 'x'")
    try:
        with pytest.raises(SourceError, match=r"too many .* for role.*\n  Remedy: raise .*CONNECTION LIMIT") as full:
            answer(database, database__user=role, database__password="x", **there)
    finally:
        database.execute(f"DROP ROLE {role}")
    assert is_transient(full.value)
    assert state_of_refusal({**given, "user": "nobody"}, "something else") is None


def test_the_servers_certificate_is_checked(database: Database, certificates: Path, proxy: TlsProxy) -> None:
    there = {"database__hostname": "localhost", "database__port": str(proxy.port), "database__sslmode": "verify-full"}
    assert answer(database, **there, database__sslrootcert=str(certificates / "ca.crt")) == "connected"
    with pytest.raises(
        SourceError, match=r"certificate verify failed\n  Remedy: set database.sslrootcert .*that signed"
    ):
        answer(database, **there, database__sslrootcert=str(certificates / "server.crt"))
    by_address = {**there, "database__hostname": "127.0.0.1"}
    with pytest.raises(
        SourceError, match=r'does not match host name "127.0.0.1"\n  Remedy: set database.hostname to a name'
    ):
        answer(database, **by_address, database__sslrootcert=str(certificates / "ca.crt"))
    assert answer(database, **{**by_address, "database__sslmode": "require"}) == "connected"
    with pytest.raises(
        SourceError, match=r"root certificate file .*\n  Remedy: set database.sslrootcert .*or to system"
    ):
        answer(database, **there)


def test_the_client_shows_its_certificate(database: Database, certificates: Path, proxy: TlsProxy) -> None:
    there = {"database__hostname": "localhost", "database__port": str(proxy.port), "database__sslmode": "require"}
    own = {
        "database__sslcert": str(certificates / "reader.crt"),
        "database__sslkey": str(certificates / "reader.key"),
    }
    assert answer(database, **there) == "connected"
    assert answer(database, **there, **own, database__sslpassword="pw") == "connected"
    assert proxy.names == [None, "reader"]
    with pytest.raises(SourceError, match="could not load private key"):
        answer(database, **there, **own, database__sslpassword="wrong")


def test_tls_parameters_of_a_url_are_used(database: Database, certificates: Path, proxy: TlsProxy) -> None:
    secret = database.server.password
    url = f"postgresql://{database.server.user}:{secret}@localhost:{proxy.port}/{database.name}?sslmode=verify-full"
    own = f"sslcert={certificates / 'reader.crt'}&sslkey={certificates / 'reader.key'}&sslpassword=pw"
    found = properties_of(f"{url}&sslrootcert={certificates / 'ca.crt'}&{own}")
    with connect(resolve({**found, "topic.prefix": "t"})) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert proxy.names == ["reader"]
    missing = resolve({**properties_of(f"{url}&sslrootcert=none.crt"), "topic.prefix": "t"})
    with pytest.raises(SourceError, match=r"none\.crt.*does not exist") as caught, connect(missing):
        pass
    assert "database.sslrootcert" in str(caught.value.remedy)


@pytest.mark.parametrize("keeps", [True, False])
def test_keepalive_probes_of_the_connection(database: Database, keeps: bool) -> None:
    config = resolve(
        {**database.properties, "topic.prefix": "t", "database.tcpKeepAlive": str(keeps).lower(), "name": "x"}
    )
    with connect(config) as connection, socket.socket(fileno=connection.pgconn.socket) as used:
        assert bool(used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)) is keeps
        used.detach()


def test_statements_run_on_each_new_connection(database: Database) -> None:
    statements = "SET work_mem = '777kB'; SET application_name = 'a;;b'"
    given = {"database__initial__statements": statements}
    assert answer(database, "SHOW work_mem", **given) == "777kB"
    assert answer(database, "SHOW application_name", **given) == "a;b"
    config = resolve({**database.properties, "topic.prefix": "t", "database.initial.statements": statements})
    with connect(config, replication=True) as connection:
        assert connection.execute("SHOW work_mem").fetchone() != ("777kB",)


def test_queries_have_a_limit(database: Database) -> None:
    assert answer(database, "SHOW statement_timeout", database__query__timeout__ms="1500") == "1500ms"
    assert answer(database, "SHOW statement_timeout", database__query__timeout__ms="0") == "0"
    assert answer(database, "SHOW statement_timeout") == "10min"
