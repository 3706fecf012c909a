"""Encryption of connections: checks the files of certificates, and finds out why server and driver do not agree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tailrace.config import Config
from tailrace.connectors.certificates import Remedies, is_encrypting, pem
from tailrace.connectors.mongodb.options import MONGODB_SSL_ENABLED, MONGODB_SSL_KEYSTORE, MONGODB_SSL_TRUSTSTORE
from tailrace.errors import SourceError

_STRING = "mongodb.connection.string"
_TRUSTED, _CLIENT = MONGODB_SSL_TRUSTSTORE.name, MONGODB_SSL_KEYSTORE.name
_SET_TRUSTED = f"set {_TRUSTED} to the PEM file of the authority that signed the server's certificate"
_SET_CLIENT = (
    f"set {_CLIENT} to a PEM file with the client's certificate and its key, "
    f"and {_CLIENT}.password to the key's password"
)
# The option of the connection string that is the same, in lower case, and remedies for another format.
_FILES = {
    MONGODB_SSL_TRUSTSTORE: (
        "tlscafile",
        _SET_TRUSTED,
        "keytool -list -rfc -keystore {path} > trusted.pem, and set {where} to that",
    ),
    MONGODB_SSL_KEYSTORE: (
        "tlscertificatekeyfile",
        _SET_CLIENT,
        "openssl pkcs12 -in {path} -out client.pem, and set {where} to that",
    ),
}
REMEDIES = Remedies(
    authority=_SET_TRUSTED,
    host=f"use a host in {_STRING} that the certificate is issued for, or set mongodb.ssl.invalid.hostname.allowed="
    "true, which compares no names",
    encrypt=f"set mongodb.ssl.enabled=true and {_TRUSTED}; if they are set, {_CLIENT}, because the server may ask for "
    "a certificate of the client",
    plain=f"set mongodb.ssl.enabled=false and no tls=true in {_STRING}, or start mongod with --tlsMode requireTLS",
)
_SECONDS = 5  # guessed
_VERIFIED = re.compile(r"(\S+:\d+): \[SSL: CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (.*?) \(_ssl")
_BROKEN = re.compile(r"SSL handshake failed: (\S+:\d+): ")
_CLOSED = re.compile(r"(\S+):(\d+): (?:connection closed|\[Errno 104\])")


def check_files(config: Config, options: Mapping[str, Any]) -> None:
    """Raise SourceError for a file of certificates that cannot be used.

    `options` are those of the connection string, by names in lower case.
    """
    for file, (option, remedy, convert) in _FILES.items():
        given = options.get(option)
        path = given or (config[file] if config[MONGODB_SSL_ENABLED] else None)
        if path:
            where = _STRING if given else file.name
            pem(path, where, remedy, convert.format(path=path, where=file.name))


def keyless() -> SourceError:
    """The error of a client's file whose key the driver cannot use."""
    what = "the file has no key that fits its certificate, or the key's password is another one"
    return SourceError(what, where=_CLIENT, remedy=_SET_CLIENT)


def untrusting(said: str) -> SourceError:
    """The error of a file in PEM that has no certificates of authorities; `said` is OpenSSL's reason."""
    return SourceError(f"the file has no certificates that can be read: {said}", where=_TRUSTED, remedy=_SET_TRUSTED)


def refusal(line: str) -> SourceError | None:
    """What the driver's line about a server that it has not reached says about encryption; None if nothing."""
    if match := _VERIFIED.search(line):
        return REMEDIES.distrusted(match[2], match[1])
    if match := _BROKEN.search(line):
        return REMEDIES.unencrypted(match[1])
    match = _CLOSED.search(line)
    if match and is_encrypting(match[1], int(match[2]), _SECONDS):
        return REMEDIES.encrypted_only(f"{match[1]}:{match[2]}")
    return None
