"""Encryption of connections: which certificates FreeTDS accepts, and why it refused one."""

from __future__ import annotations

import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.config import Config
from tailrace.connectors.certificates import Remedies, pem
from tailrace.errors import SourceError

_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
TRUST_STORE = "driver.trustStore"
_CONVERT = "keytool -list -rfc -keystore {path} > trusted.pem, and set driver.trustStore to that"
REMEDIES = Remedies(
    authority=f"set {TRUST_STORE} to a PEM file with the certificate of who has issued the server's",
    host="set database.hostname, or driver.hostNameInCertificate, to a host that the certificate is issued for",
    encrypt="set driver.encrypt=true",
    plain="let the server encrypt connections, or set driver.encrypt=false: then even the password is sent as it is",
)
# The first message of a connection: a version, and that all of it is to be encrypted. Its packets have a header.
_PRELOGIN, _HEADER, _ENCRYPT = 0x12, 8, 1
_OPTIONS = struct.pack(">BHHBHHB", 0, 11, 6, _ENCRYPT, 17, 1, 0xFF) + bytes(6) + bytes([1])
_OPTION, _NOT_SUPPORTED = struct.Struct(">BHH"), 2
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
    given = config.optional(TRUST_STORE)
    found = [given] if given else [ssl.get_default_verify_paths().cafile, *_SYSTEM]
    path = next((each for each in found if each and (each == given or Path(each).is_file())), None)
    if path is None:
        what = "the system has no file of trusted certificates"
        raise SourceError(what, where=TRUST_STORE, remedy=REMEDIES.authority)
    return pem(path, TRUST_STORE, REMEDIES.authority, _CONVERT.format(path=path))


def refusal(config: Config) -> SourceError | None:
    """Why an encrypted connection was not made, if encryption is the reason.

    FreeTDS only tells that it has not connected. So the handshake is done once more here, and ended before a login.
    """
    host, port = config.text("database.hostname"), config.number("database.port")
    try:
        with socket.create_connection((host, port), config.number("driver.loginTimeout") or None) as connection:
            _send(connection, _OPTIONS)
            if _encryption(_receive(connection)) == _NOT_SUPPORTED:
                return REMEDIES.unencrypted(f"{host}:{port}")
            if is_compared(config):
                _shake_hands(connection, config)
    except ssl.SSLCertVerificationError as error:
        return REMEDIES.distrusted(error.verify_message, f"{host}:{port}")
    except (OSError, ValueError, struct.error):
        return None
    return None


def _encryption(answer: bytes) -> int | None:
    """What the server's first message says about encryption."""
    place = 0
    while answer[place : place + 1] not in (b"", b"\xff"):
        name, start, size = _OPTION.unpack_from(answer, place)
        if name == _ENCRYPT and size:
            return int(answer[start])
        place += _OPTION.size
    return None


def _shake_hands(connection: socket.socket, config: Config) -> None:
    context = ssl.create_default_context(cafile=trusted(config))
    # SQL Server speaks TLS 1.2 inside of TDS 7.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    name = config.optional("driver.hostNameInCertificate") or config.text("database.hostname")
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
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
