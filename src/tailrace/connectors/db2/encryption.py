"""Finds out why server and driver do not agree on encryption."""

from __future__ import annotations

import re

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_HOSTNAME, DATABASE_PORT
from tailrace.connectors.certificates import Remedies, content, is_encrypting, objection
from tailrace.connectors.db2.options import DRIVER_SSL_CERT_LOCATION, DRIVER_SSL_CONNECTION
from tailrace.errors import SourceError

_FILE = "driver.sslCertLocation"
_SET_FILE = f"set {_FILE} to a PEM file with the certificate of the authority that signed the server's"
REMEDIES = Remedies(
    authority=_SET_FILE,
    host="set database.hostname to a host that the server's certificate is issued for",
    encrypt=f"set driver.sslConnection=true, {_FILE}, and database.port to the port for TLS (SSL_SVCENAME)",
    plain="set database.port to the server's port for TLS (SSL_SVCENAME), or driver.sslConnection=false",
)
# Of GSKit, the driver's TLS: a certificate that it does not trust, for whatever reason.
_BAD_CERTIFICATE = "414"
_HANDSHAKE = re.compile(r'"sqlccSSLSocketSetup".*?error code\(s\): "(\d+)"', re.DOTALL)
_NO_TLS_CONNECTION = -20576
_SECONDS = 5
_NO_LIBRARY, _GSKIT = -10013, "GSKit Error"


def check_files(config: Config) -> None:
    """Raise SourceError for a file of certificates that cannot be read."""
    path = config[DRIVER_SSL_CERT_LOCATION]
    if path and config[DRIVER_SSL_CONNECTION]:
        content(path, _FILE, _SET_FILE)


def refusal(config: Config, said: str, code: int) -> SourceError | None:
    """What the driver's error of a connection attempt says about encryption; None if nothing.

    `code` is the SQLCODE. The driver does not tell why it does not trust a certificate, nor whether a server that ends
    a connection wants TLS: the handshake is done once more for that.
    """
    host, port = config[DATABASE_HOSTNAME], config[DATABASE_PORT]
    where = f"{host}:{port}"
    if not config[DRIVER_SSL_CONNECTION]:
        return REMEDIES.encrypted_only(where) if is_encrypting(host, port, _SECONDS) else None
    if code == _NO_LIBRARY and _GSKIT in said:
        what = f"{config[DRIVER_SSL_CERT_LOCATION]} has no certificate that can be read"
        return SourceError(what, where=_FILE, remedy=_SET_FILE)
    alert = _HANDSHAKE.search(said)
    if code != _NO_TLS_CONNECTION and alert is None:
        return None
    if alert is not None and alert[1] != _BAD_CERTIFICATE:
        return REMEDIES.unencrypted(where)
    reason = objection(host, port, config[DRIVER_SSL_CERT_LOCATION], _SECONDS)
    return REMEDIES.distrusted(reason or "the driver does not say why", where)
