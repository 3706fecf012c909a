"""Encryption of connections: which certificates FreeTDS accepts, and why it has refused one."""

from __future__ import annotations

import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.config import Config
from tailrace.errors import SourceError

_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_STORE = "driver.trustStore"
# The first message of a connection: a version, and that all of it is to be encrypted. Its packets have a header.
_PRELOGIN, _HEADER, _ENCRYPT = 0x12, 8, 1
_OPTIONS = struct.pack(">BHHBHHB", 0, 11, 6, _ENCRYPT, 17, 1, 0xFF) + bytes(6) + bytes([1])
_PACKET = 4096


def is_encrypted(config: Config) -> bool:
    """Whether all of a connection is encrypted, and not the login alone."""
    return config.text("driver.encrypt") in ("true", "mandatory")


def is_compared(config: Config) -> bool:
    """Whether the server's certificate must be one that is trusted."""
    return is_encrypted(config) and not config.flag("driver.trustServerCertificate")


@contextmanager
def settings(config: Config) -> Iterator[str]:
    """The path of a file with FreeTDS's settings, for the time of a connection attempt. Raises SourceError."""
    host = config.optional("driver.hostNameInCertificate")
    lines = ("[global]", f"ca file = {trusted(config)}", "check certificate hostname = yes")
    with tempfile.NamedTemporaryFile("w", prefix="tailrace-", suffix=".conf", encoding="utf-8") as file:
        file.write("\n".join((*lines, f"certificate hostname = {host}" if host else "", "")))
        file.flush()
        yield file.name


def trusted(config: Config) -> str:
    """The file of the certificates that are trusted, in PEM. Raises SourceError."""
    given = config.optional(_STORE)
    found = [given] if given else [ssl.get_default_verify_paths().cafile, *_SYSTEM]
    path = next((each for each in found if each and Path(each).is_file()), None)
    remedy = f"set {_STORE} to a PEM file with the certificate of who has issued the server's"
    if path is None:
        what = f"there is no file {given}" if given else "the system has no file of trusted certificates"
        raise SourceError(what, where=_STORE, remedy=remedy)
    if b"-----BEGIN" not in Path(path).read_bytes():
        convert = f"keytool -list -rfc -keystore {path} > trusted.pem"
        raise SourceError(f"{path} is no PEM file", where=_STORE, remedy=f"{convert}, and set {_STORE} to that")
    return str(path)


def objection(config: Config, timeout: float) -> str | None:
    """What is wrong with the server's certificate; None if nothing is, or if the server does not answer so far.

    FreeTDS only tells that it has not connected. So the handshake is done once more here, and ended before a login.
    """
    host = config.text("database.hostname")
    context = ssl.create_default_context(cafile=trusted(config))
    # SQL Server speaks TLS 1.2 inside of TDS 7.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    name = config.optional("driver.hostNameInCertificate") or host
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        with socket.create_connection((host, config.number("database.port")), timeout) as connection:
            _send(connection, _OPTIONS)
            _receive(connection)
            _shake_hands(connection, tls, incoming, outgoing)
    except ssl.SSLCertVerificationError as error:
        return str(error.verify_message)
    except (OSError, ValueError):
        return None
    return None


def _shake_hands(
    connection: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
    while not _has_ended(tls):
        _send(connection, outgoing.read())
        incoming.write(_receive(connection))


def _has_ended(handshake: ssl.SSLObject) -> bool:
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _send(connection: socket.socket, content: bytes) -> None:
    for first in range(0, len(content), _PACKET - _HEADER):
        piece = content[first : first + _PACKET - _HEADER]
        is_last = first + len(piece) == len(content)
        connection.sendall(struct.pack(">BBHHBB", _PRELOGIN, is_last, len(piece) + _HEADER, 0, 0, 0) + piece)


def _receive(connection: socket.socket) -> bytes:
    """The content of one packet. Raises OSError where the connection ends."""
    _, _, size = struct.unpack(">BBH4x", _exactly(connection, _HEADER))
    return _exactly(connection, size - _HEADER)


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = connection.recv(size - len(content))
        if not piece:
            raise ConnectionError("the server has ended the connection")
        content += piece
    return content
