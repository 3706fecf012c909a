"""Encrypted connections to Db2 that are refused: the real driver, against ports that shake hands only.

The driver says after five seconds that it has not connected. tests/unit/db2/test_encryption.py has its messages.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tailrace.connectors import registry
from tailrace.connectors.db2.client import Server
from tailrace.errors import SourceError
from tests.servers.tls import Authority, TlsPort

PASSWORD = "such-a-word"

pytestmark = pytest.mark.long


def refused(port: int, **given: str) -> SourceError:
    """The error of a connection with these properties; a dot of a name is two underscores."""
    properties = {
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": "reader",
        "database.password": PASSWORD,
        "database.dbname": "testdb",
        "topic.prefix": "t",
        "driver.loginTimeout": "1",
        "errors.max.retries": "0",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    server = Server(registry.named("db2").load().resolve(properties))
    with pytest.raises(SourceError) as caught:
        server.ask(lambda each: each.value("VALUES 1"))
    assert PASSWORD not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2
    return caught.value


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def with_tls(context: ssl.SSLContext | None, trusted: Path) -> SourceError:
    """The error of an encrypted connection to a port."""
    with TlsPort(context) as port:
        error = refused(port.port, driver__sslConnection="true", driver__sslCertLocation=str(trusted))
        assert error.where == f"127.0.0.1:{port.port}"
    return error


def test_a_certificate_of_another_authority(authority: Authority, tmp_path: Path) -> None:
    error = with_tls(authority.context("127.0.0.1"), Authority(tmp_path, "other").path)
    assert error.what.startswith("the server's certificate is not trusted: ")
    assert "certificate chain" in error.what or "issuer" in error.what
    assert "driver.sslCertLocation" in (error.remedy or "")


def test_an_expired_certificate(authority: Authority) -> None:
    error = with_tls(authority.context("127.0.0.1", expired=True), authority.path)
    assert error.what == "the server's certificate has expired"
    assert "renew" in (error.remedy or "")


def test_a_certificate_for_another_host(authority: Authority) -> None:
    error = with_tls(authority.context("elsewhere.example"), authority.path)
    assert "mismatch, certificate is not valid for '127.0.0.1'" in error.what
    assert "database.hostname" in (error.remedy or "")


def test_a_server_without_tls(authority: Authority) -> None:
    error = with_tls(None, authority.path)
    assert error.what == "the server does not encrypt connections"
    assert "driver.sslConnection=false" in (error.remedy or "")


def test_a_server_that_takes_tls_only(authority: Authority) -> None:
    with TlsPort(authority.context("127.0.0.1")) as port:
        error = refused(port.port)
    assert error.what == "the server accepts encrypted connections only"
    assert "driver.sslConnection=true" in (error.remedy or "")


def test_a_server_that_is_away_is_not_mistaken() -> None:
    for given in ({}, {"driver__sslConnection": "true"}):
        assert "cannot be reached" in refused(1, **given).what
