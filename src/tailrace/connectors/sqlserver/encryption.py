"""Encryption of connections: which certificates are accepted, and why a connection or a login was refused."""

from __future__ import annotations

import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_HOSTNAME
from tailrace.connectors.certificates import Remedies, pem
from tailrace.connectors.sqlserver.address import answering, port_of
from tailrace.connectors.sqlserver.options import (
    DRIVER_ENCRYPT,
    DRIVER_HOST_NAME_IN_CERTIFICATE,
    DRIVER_LOGIN_TIMEOUT,
    DRIVER_TRUST_SERVER_CERTIFICATE,
    DRIVER_TRUST_STORE,
)
from tailrace.connectors.sqlserver.tds import NOT_SUPPORTED, OFF, ON, REQUIRED, Conversation, Login, ServerError
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


def is_encrypted(config: Config) -> bool:
    """Whether all of a connection is encrypted, and not the login alone."""
    return config[DRIVER_ENCRYPT] in ("true", "mandatory")


def is_compared(config: Config) -> bool:
    """Whether the server's certificate must be one that is trusted."""
    return is_encrypted(config) and not config[DRIVER_TRUST_SERVER_CERTIFICATE]


@contextmanager
def settings(config: Config, address: tuple[str, int] | None) -> Iterator[str]:
    """The path of a file with FreeTDS's settings, for the time of a connection attempt. Raises SourceError.

    `address` is that of the host which is to be taken.
    """
    host, lines = config[DATABASE_HOSTNAME], ["[global]"]
    if is_compared(config):
        name = config[DRIVER_HOST_NAME_IN_CERTIFICATE] or host
        lines += [f"ca file = {trusted(config)}", "check certificate hostname = yes", f"certificate hostname = {name}"]
    if address is not None:
        lines += [f"[{host}]", f"host = {address[0]}", f"port = {address[1]}"]
    with tempfile.NamedTemporaryFile("w", prefix="tailrace-", suffix=".conf", encoding="utf-8") as file:
        file.write("\n".join((*lines, "")))
        file.flush()
        yield file.name


def trusted(config: Config) -> str:
    """The file of the certificates that are trusted, in PEM. Raises SourceError."""
    given = config[DRIVER_TRUST_STORE]
    files = [given] if given else [ssl.get_default_verify_paths().cafile, *_SYSTEM]
    path = next((each for each in files if each and (each == given or Path(each).is_file())), None)
    if path is None:
        what = "the system has no file of trusted certificates"
        raise SourceError(what, where=TRUST_STORE, remedy=REMEDIES.authority)
    return pem(path, TRUST_STORE, REMEDIES.authority, _CONVERT.format(path=path))


def refusal(config: Config) -> SourceError | None:
    """Why an encrypted connection was not made, if encryption is the reason.

    FreeTDS only tells that it has not connected. So the handshake is done once more here, and ended before a login.
    """
    where = f"{config[DATABASE_HOSTNAME]}:{port_of(config)}"
    try:
        with opened(config) as connection:
            talk = Conversation(connection)
            if talk.greet(ON) == NOT_SUPPORTED:
                return REMEDIES.unencrypted(where)
            if is_compared(config):
                talk.shake_hands(ssl.create_default_context(cafile=trusted(config)), _name(config))
    except ssl.SSLCertVerificationError as error:
        return REMEDIES.distrusted(error.verify_message, where)
    except (OSError, ValueError, struct.error):
        return None
    return None


def errors_of_login(config: Config, login: Login) -> list[ServerError]:
    """The errors with which the server refuses a login; none if it does not, or cannot be asked."""
    try:
        with opened(config) as connection:
            talk, is_all = Conversation(connection), is_encrypted(config)
            answer = talk.greet(ON if is_all else OFF)
            if answer != NOT_SUPPORTED:
                talk.shake_hands(_context(config), _name(config))
            return talk.refusals(login, is_all_encrypted=is_all or answer in (ON, REQUIRED))
    except (OSError, ValueError, struct.error):
        return []


def _context(config: Config) -> ssl.SSLContext:
    if is_compared(config):
        return ssl.create_default_context(cafile=trusted(config))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _name(config: Config) -> str:
    return config[DRIVER_HOST_NAME_IN_CERTIFICATE] or config[DATABASE_HOSTNAME]


@contextmanager
def opened(config: Config) -> Iterator[socket.socket]:
    """A connection to the server's port. Raises OSError, ValueError if the port is not known."""
    port = port_of(config)
    if port is None:
        raise ValueError("the port of the instance is not known")
    address = answering(config) or (config[DATABASE_HOSTNAME], port)
    patience = config[DRIVER_LOGIN_TIMEOUT] or None
    with socket.create_connection(address, patience) as connection:
        yield connection
