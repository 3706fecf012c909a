"""Certificates of SQL Server: compared where connections are encrypted, by the stand-in's TLS."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors import registry
from tailrace.connectors.sqlserver.client import Server
from tailrace.errors import ConfigError, SourceError
from tests.servers.sqlserver.server import SqlServer
from tests.servers.sqlserver.tds.certificate import tls_context
from tests.servers.tls import Authority


def answer_over(server: SqlServer, **given: str) -> Any:
    """What a server says over a connection of these properties; a dot of a name is two underscores."""
    properties = {
        "database.hostname": "localhost",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": "master",
        "topic.prefix": "t",
        "driver.loginTimeout": "5",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    connection = Server(registry.named("sqlserver").load().resolve(properties))
    try:
        return connection.ask(lambda each: each.value("SELECT 1"))
    finally:
        connection.close()


@pytest.fixture
def trusted(sqlserver: SqlServer, tmp_path: Path) -> str:
    """A file with the server's certificate."""
    path = tmp_path / "trusted.pem"
    path.write_text(sqlserver.tls()[1], encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("encrypt", ["true", "mandatory"])
def test_a_trusted_certificate_is_taken(sqlserver: SqlServer, trusted: str, encrypt: str) -> None:
    before = os.environ.get("FREETDSCONF")
    assert answer_over(sqlserver, driver__encrypt=encrypt, driver__trustStore=trusted) == 1
    assert answer_over(sqlserver, database__encrypt=encrypt, database__trustStore=trusted) == 1
    assert os.environ.get("FREETDSCONF") == before


def test_any_certificate_is_accepted_if_configured(sqlserver: SqlServer) -> None:
    assert answer_over(sqlserver, driver__encrypt="true", driver__trustServerCertificate="true") == 1
    # Nothing but the login is encrypted then, by any certificate, as of the reference engine's driver.
    assert answer_over(sqlserver, driver__encrypt="false") == 1


def test_a_certificate_of_another_authority_is_refused(sqlserver: SqlServer, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(tls_context()[1], encoding="utf-8")
    # Neither is tried again: a certificate does not become right by waiting.
    for given in ({"driver__trustStore": str(other)}, {}):
        with pytest.raises(SourceError, match="the server's certificate is not trusted: self") as caught:
            answer_over(sqlserver, driver__encrypt="true", **given)
        assert "driver.trustStore" in (caught.value.remedy or "")


def test_a_certificate_for_another_host_is_refused(sqlserver: SqlServer, trusted: str) -> None:
    given = {"driver__encrypt": "true", "driver__trustStore": trusted, "database__hostname": "127.0.0.1"}
    with pytest.raises(SourceError, match="IP address mismatch"):
        answer_over(sqlserver, **given)
    assert answer_over(sqlserver, **given, driver__hostNameInCertificate="localhost") == 1
    with pytest.raises(SourceError, match="Hostname mismatch"):
        answer_over(sqlserver, **given, driver__hostNameInCertificate="elsewhere")


def test_an_expired_certificate_is_an_error(
    sqlserver: SqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    context = authority.context("localhost", expired=True)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    monkeypatch.setattr(sqlserver, "_tls", (context, ""))
    with pytest.raises(SourceError, match="the server's certificate has expired") as caught:
        answer_over(sqlserver, driver__encrypt="true", driver__trustStore=str(authority.path))
    assert "renew" in (caught.value.remedy or "")
    assert caught.value.where == f"localhost:{sqlserver.port}"


def test_a_server_that_does_not_encrypt_is_an_error(
    sqlserver: SqlServer, trusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlserver, "encryption", "off")
    for given in ({"driver__trustStore": trusted}, {"driver__trustServerCertificate": "true"}):
        with pytest.raises(SourceError, match="the server does not encrypt connections") as caught:
            answer_over(sqlserver, driver__encrypt="true", **given)
        assert "driver.encrypt=false" in (caught.value.remedy or "")
        assert sqlserver.password not in str(caught.value)


def test_a_server_that_takes_encrypted_connections_only_gets_them(
    sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlserver, "encryption", "required")
    assert answer_over(sqlserver, driver__encrypt="false") == 1


def test_a_trust_store_that_cannot_be_used_is_an_error(sqlserver: SqlServer, tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(SourceError, match="is no PEM file") as caught:
        answer_over(sqlserver, driver__encrypt="true", driver__trustStore=str(store))
    assert f"keytool -list -rfc -keystore {store}" in (caught.value.remedy or "")
    with pytest.raises(SourceError, match="there is no file"):
        answer_over(sqlserver, driver__encrypt="true", driver__trustStore=str(tmp_path / "none"))
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        answer_over(sqlserver, driver__encrypt="true", driver__trustStore=str(tmp_path))


def test_a_server_that_is_away_is_not_mistaken(trusted: str, sqlserver: SqlServer) -> None:
    given = {"database__port": "1", "errors__max__retries": "0", "driver__trustStore": trusted}
    with pytest.raises(SourceError, match="cannot be reached"):
        answer_over(sqlserver, driver__encrypt="true", **given)


def test_what_freetds_cannot_do_is_refused(sqlserver: SqlServer) -> None:
    with pytest.raises(ConfigError, match="strict"):
        answer_over(sqlserver, driver__encrypt="strict")
    with pytest.raises(ConfigError, match="serverCertificate"):
        answer_over(sqlserver, driver__serverCertificate="a.pem")
