"""Finds out why an encrypted connection is refused: a server's certificate, or a file of certificates.

A driver may only say that it has not connected. Then the handshake is done once more here, before any login.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from tailrace.errors import SourceError

_RENEW = "renew the server's certificate, or correct the clock of this machine"
# OpenSSL's words for what is wrong with a certificate; a certificate for another host has several.
_EXPIRED, _EARLY, _OTHER_HOST = "has expired", "not yet valid", "mismatch"


@dataclass(frozen=True)
class Remedies:
    """What to set, by a connector's names of properties."""

    authority: str
    """If the authority that signed the server's certificate is unknown."""
    host: str
    """If the certificate is for another host."""
    encrypt: str
    """If the server takes encrypted connections only."""
    plain: str
    """If the server does not encrypt."""

    def distrusted(self, said: str, where: str) -> SourceError:
        """The error of a certificate; `said` is OpenSSL's reason."""
        if _EXPIRED in said or _EARLY in said:
            return SourceError(f"the server's {said}", where=where, remedy=_RENEW)
        remedy = self.host if _OTHER_HOST in said else self.authority
        return SourceError(f"the server's certificate is not trusted: {said}", where=where, remedy=remedy)

    def unencrypted(self, where: str) -> SourceError:
        """The error of a server without TLS."""
        return SourceError("the server does not encrypt connections", where=where, remedy=self.plain)

    def encrypted_only(self, where: str) -> SourceError:
        """The error of a server that takes nothing but TLS."""
        return SourceError("the server accepts encrypted connections only", where=where, remedy=self.encrypt)


def pem(path: str, where: str, remedy: str, convert: str) -> str:
    """The path of a file that has certificates in PEM. Raises SourceError.

    `remedy` is for a file that cannot be read, `convert` for one in another format; `where` is the property.
    """
    if b"-----BEGIN" not in content(path, where, remedy):
        raise SourceError(f"{path} is no PEM file", where=where, remedy=convert)
    return path


def content(path: str, where: str, remedy: str) -> bytes:
    """What is in a file. Raises SourceError."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise SourceError(f"there is no file {path}", where=where, remedy=remedy) from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}", where=where, remedy=remedy) from error


def objection(host: str, port: int, authorities: str | None, timeout: float) -> str | None:
    """OpenSSL's reason to refuse the certificate of a server that begins with TLS; None if it finds none.

    `authorities` is a PEM file, None means the authorities that the system trusts; `timeout` is in seconds.
    """
    try:
        context = ssl.create_default_context(cafile=authorities)
        with socket.create_connection((host, port), timeout) as plain, context.wrap_socket(plain, server_hostname=host):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except OSError:
        return None


def is_encrypting(host: str, port: int, timeout: float) -> bool:
    """Whether the server answers to TLS, whatever its certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False
