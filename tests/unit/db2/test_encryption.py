"""The driver's errors of failed encrypted connections, and the errors that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.config import Config
from tailrace.connectors import registry
from tailrace.connectors.db2.client import connect
from tailrace.connectors.db2.encryption import refusal
from tailrace.errors import SourceError
from tests.servers.tls import Authority, TlsPort

HANDSHAKE = (
    '[IBM][CLI Driver] SQL30081N  A communication error has been detected. Communication protocol being used: "SSL".  '
    'Communication API being used: "SOCKETS".  Location where the error was detected: "".  Communication function '
    'detecting the error: "sqlccSSLSocketSetup".  Protocol specific error code(s): "{}", "*", "*".  SQLSTATE=08001 '
    "SQLCODE=-30081"
)
READ = HANDSHAKE.replace("sqlccSSLSocketSetup", "sqlccSSLSocketRead").format("420")
PLAIN = HANDSHAKE.replace('"SSL"', '"TCP/IP"').replace("sqlccSSLSocketSetup", "recv").format("104")
OTHER_HOST = (
    "[IBM][CLI Driver] SQL20576N  The command or operation failed because a TLS connection could not be established "
    'with reason "1" and additional information "127.0.0.1".  SQLSTATE=08001 SQLCODE=-20576'
)
NO_CERTIFICATE = (
    '[IBM][CLI Driver] SQL10013N  The specified library "GSKit Error: 2" could not be loaded.  SQLSTATE=42724 '
    "SQLCODE=-10013"
)


def config(port: int, **given: str) -> Config:
    """A configuration with these properties; a dot of a name is two underscores."""
    properties = {
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "reader",
        "database.password": "such-a-word",
        "database.dbname": "testdb",
        "topic.prefix": "t",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    return registry.named("db2").load().resolve(properties)


def refused(said: str, port: int, trusted: Path | None) -> SourceError | None:
    """What an attempt with TLS, or without where there is no file of authorities, becomes."""
    tls = {} if trusted is None else {"driver__sslConnection": "true", "driver__sslCertLocation": str(trusted)}
    return refusal(config(port, **tls), said, int(said.rpartition("=")[2]))


@pytest.mark.parametrize(
    ("host", "expired", "said", "what", "remedy"),
    [
        ("127.0.0.1", False, HANDSHAKE.format("414"), "is not trusted: unable to get local issuer", "sslCertLocation"),
        ("127.0.0.1", True, HANDSHAKE.format("414"), "the server's certificate has expired", "renew"),
        ("elsewhere", False, OTHER_HOST, "not valid for '127.0.0.1'", "set database.hostname"),
    ],
)
def test_why_a_certificate_is_not_trusted(
    tmp_path: Path, host: str, expired: bool, said: str, what: str, remedy: str
) -> None:
    authority = Authority(tmp_path)
    trusted = authority if expired or host == "elsewhere" else Authority(tmp_path, "other")
    with TlsPort(authority.context(host, expired=expired)) as port:
        error = refused(said, port.port, trusted.path)
    assert error is not None
    assert error.where == f"127.0.0.1:{port.port}"
    assert what in error.what
    assert remedy in (error.remedy or "")


def test_who_encrypts_and_who_does_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with TlsPort(authority.context("127.0.0.1")) as port:
        error = refused(PLAIN, port.port, None)
        assert error is not None
        assert error.what == "the server accepts encrypted connections only"
        assert "driver.sslConnection=true" in (error.remedy or "")
        # The connection was lost for another reason.
        assert refused(READ, port.port, authority.path) is None
    with TlsPort(None) as port:
        assert refused(PLAIN, port.port, None) is None
        error = refused(HANDSHAKE.format("410"), port.port, authority.path)
    assert error is not None
    assert error.what == "the server does not encrypt connections"
    assert "driver.sslConnection=false" in (error.remedy or "")


def test_a_certificate_that_is_right_by_now(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with TlsPort(authority.context("127.0.0.1")) as port:
        error = refused(HANDSHAKE.format("414"), port.port, authority.path)
    assert error is not None
    assert error.what == "the server's certificate is not trusted: the driver does not say why"


def test_a_file_without_certificates(tmp_path: Path) -> None:
    error = refused(NO_CERTIFICATE, 1, tmp_path / "junk.pem")
    assert error is not None
    assert (error.where, error.what) == (
        "driver.sslCertLocation",
        f"{tmp_path / 'junk.pem'} has no certificate that can be read",
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "none.pem", "there is no file"), (tmp_path, "cannot be read: Is a directory")):
        with pytest.raises(SourceError, match=what) as caught:
            connect(config(1, driver__sslConnection="true", driver__sslCertLocation=str(path)))
        assert caught.value.where == "driver.sslCertLocation"
        assert "authority" in (caught.value.remedy or "")
