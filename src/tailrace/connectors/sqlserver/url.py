"""Reads the URL of a new pipeline."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from tailrace.connectors.ports import NewSource
from tailrace.errors import ConfigError

_VARIABLE = "MSSQL_PASSWORD"
_PORT = 1433
FORM = "mssql://user@host:1433/database?encrypt=true"
_OPTIONS = {
    "encrypt": "driver.encrypt",
    "trustservercertificate": "driver.trustServerCertificate",
    "truststore": "driver.trustStore",
    "instance": "database.instance",
    "applicationintent": "driver.applicationIntent",
}


def new_source(url: str) -> NewSource:
    """The source that a URL describes: its password goes into an environment variable. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
    except ValueError as error:
        raise _wrong("the URL is not valid") from error
    database = unquote(parts.path.lstrip("/"))
    if not parts.hostname or not database or not parts.username:
        raise _wrong("the URL lacks a user, a host or a database")
    found = {
        "database.hostname": parts.hostname,
        "database.port": str(port),
        "database.user": unquote(parts.username),
        "database.password": f"${{env:{_VARIABLE}}}",
        "database.names": database,
        "topic.prefix": database,
    }
    for name, value in parse_qsl(parts.query):
        if name.lower() not in _OPTIONS:
            raise _wrong(f"the URL has the option {name}; known are {', '.join(sorted(_OPTIONS))}")
        found[_OPTIONS[name.lower()]] = value
    secret = "database.password"
    secrets = {secret: unquote(parts.password)} if parts.password else {}
    prompts = {secret: f"Password of {found['database.user']} at {parts.hostname}:{port}"}
    return NewSource(database, f"{database} at {parts.hostname}:{port}", found, secrets, {secret: _VARIABLE}, prompts)


def _wrong(what: str) -> ConfigError:
    return ConfigError(what, where="url", remedy=f"write {FORM}; special characters as %xx")
