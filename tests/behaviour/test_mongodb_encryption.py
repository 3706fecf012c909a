"""Encrypted connections to MongoDB that are refused: one error that says why, and which setting fixes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tailrace.connectors import registry
from tailrace.connectors.mongodb.client import Server
from tailrace.errors import SourceError
from tests.servers.mongodb.certificates import Certificates
from tests.servers.mongodb.server import ReplicaSet
from tests.servers.tls import Authority, TlsPort

PASSWORD = "such-a-word"


def answer_over(hosts: str, **given: str) -> object:
    """What a server says over a connection of these properties; a dot of a name is two underscores."""
    properties = {
        "mongodb.connection.string": f"mongodb://reader:{PASSWORD}@{hosts}/?directConnection=true",
        "topic.prefix": "t",
        "mongodb.server.selection.timeout.ms": "500",
        **{name.replace("__", "."): value for name, value in given.items()},
    }
    server = Server(registry.named("mongodb").load().resolve(properties))
    try:
        return server.ask(lambda client: client.admin.command("hello")["ok"])
    finally:
        server.close()


def refused(hosts: str, what: str, remedy: str, **given: str) -> SourceError:
    """The error of such a connection, which is not tried again: the number of retries has no limit."""
    with pytest.raises(SourceError) as caught:
        answer_over(hosts, **given)
    error = caught.value
    assert what in error.what
    assert remedy in (error.remedy or "")
    assert PASSWORD not in str(error)
    assert len(str(error).splitlines()) == 2
    return error


def trusting(path: Path | str, **given: str) -> dict[str, str]:
    """The properties of an encrypted connection."""
    return {"mongodb__ssl__enabled": "true", "mongodb__ssl__truststore": str(path), **given}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(scope="module")
def encrypting() -> Iterator[tuple[str, Certificates]]:
    """The address of a mongod that takes encrypted connections only, and its certificates."""
    with ReplicaSet(tls=True) as server:
        assert server.certificates is not None
        yield server.hosts, server.certificates


def test_certificates_that_are_not_trusted(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    store = "mongodb.ssl.truststore"
    with TlsPort(authority.context("127.0.0.1")) as port:
        hosts = f"127.0.0.1:{port.port}"
        error = refused(hosts, "not trusted: unable to get local issuer certificate", store, **trusting(other.path))
        assert error.where == hosts
        refused(hosts, "not trusted: ", store, mongodb__ssl__enabled="true")
    with TlsPort(authority.context("127.0.0.1", expired=True)) as port:
        hosts = f"127.0.0.1:{port.port}"
        refused(hosts, "the server's certificate has expired", "renew", **trusting(authority.path))
    with TlsPort(authority.context("elsewhere.example")) as port:
        name = "mongodb.ssl.invalid.hostname.allowed"
        for host, what in (("127.0.0.1", "IP address mismatch"), ("localhost", "Hostname mismatch")):
            refused(f"{host}:{port.port}", what, name, **trusting(authority.path))


def test_a_server_that_does_not_encrypt(mongodb: ReplicaSet, authority: Authority) -> None:
    what, remedy = "the server does not encrypt connections", "mongodb.ssl.enabled=false"
    refused(mongodb.hosts, what, remedy, **trusting(authority.path))
    with TlsPort(None) as port:
        refused(f"127.0.0.1:{port.port}", what, remedy, **trusting(authority.path))


def test_a_server_that_encrypts_only(encrypting: tuple[str, Certificates]) -> None:
    hosts, files = encrypting
    error = refused(hosts, "the server accepts encrypted connections only", "mongodb.ssl.enabled=true")
    assert error.where == hosts
    url = f"mongodb://{hosts}/?directConnection=true"
    assert answer_over(hosts, **trusting(files.authority), mongodb__connection__string=url) == 1
    anywhere = hosts.replace("127.0.0.1", "0.0.0.0")
    refused(anywhere, "IP address mismatch", "mongodb.ssl.invalid", **trusting(files.authority))


def test_a_server_that_is_away_is_not_mistaken(authority: Authority) -> None:
    for given in ({}, trusting(authority.path)):
        refused("127.0.0.1:1", "no server can be reached", "that mongod runs", **given, errors__max__retries="0")


@pytest.mark.parametrize("name", ["mongodb.ssl.truststore", "mongodb.ssl.keystore"])
def test_files_that_cannot_be_used(authority: Authority, tmp_path: Path, name: str) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    given = trusting(authority.path)
    for path, what in (
        (tmp_path / "none.pem", "there is no file"),
        (tmp_path, "cannot be read: Is a directory"),
        (junk, "is no PEM file"),
    ):
        assert refused("127.0.0.1:1", what, name, **{**given, name.replace(".", "__"): str(path)}).where == name


def test_files_of_the_connection_string(tmp_path: Path) -> None:
    url = f"mongodb://127.0.0.1:1/?tls=true&tlsCAFile={tmp_path}/none.pem"
    error = refused("", "there is no file", "mongodb.ssl.truststore", mongodb__connection__string=url)
    assert error.where == "mongodb.connection.string"


def test_a_file_with_a_key_and_no_certificate(encrypting: tuple[str, Certificates], tmp_path: Path) -> None:
    key, _, _ = encrypting[1].client.read_text().partition("-----BEGIN CERTIFICATE")
    (tmp_path / "key.pem").write_text(key)
    given = trusting(tmp_path / "key.pem")
    refused("127.0.0.1:1", "no certificates that can be read", "mongodb.ssl.truststore", **given)


def test_a_client_without_the_right_key(encrypting: tuple[str, Certificates], tmp_path: Path) -> None:
    _, files = encrypting
    text = files.client.read_bytes()
    key = load_pem_private_key(text, None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"right"))
    (tmp_path / "locked.pem").write_bytes(locked + text[text.index(b"-----BEGIN CERTIFICATE") :])
    given = trusting(files.authority)
    what, remedy = "no key that fits", "mongodb.ssl.keystore.password"
    refused("127.0.0.1:1", what, remedy, **given, mongodb__ssl__keystore=str(files.authority))
    wrong = {"mongodb__ssl__keystore": str(tmp_path / "locked.pem"), "mongodb__ssl__keystore__password": "wr0ng"}
    assert "wr0ng" not in str(refused("127.0.0.1:1", what, remedy, **given, **wrong))
