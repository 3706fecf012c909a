"""Parses a connection URL as libpq does, and converts it to the connector's properties."""

from __future__ import annotations

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tailrace.connectors.ports import NewSource
from tailrace.errors import ConfigError

SCHEMES = ("postgresql://", "postgres://")
# The environment variables whose values a pipeline file refers to in place of secrets.
_VARIABLES = {"database.password": "PGPASSWORD", "database.sslpassword": "PGSSLPASSWORD"}

_PROPERTIES = {
    "host": "database.hostname",
    "port": "database.port",
    "user": "database.user",
    "password": "database.password",
    "dbname": "database.dbname",
    **{name: f"database.{name}" for name in ("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert")},
    "keepalives": "database.tcpKeepAlive",
}
_VALUES = {"keepalives": {"0": "false", "1": "true"}}
_REMEDIES = {
    "options": "leave it out of the URL, and write SET statements into database.initial.statements of the file",
    "target_session_attrs": "leave it out of the URL, and name the one server to read from",
    "hostaddr": "write the address in place of the host name",
    "application_name": "leave it out of the URL: Tailrace finds its connections by the names it gives them",
    "channel_binding": "leave it out of the URL; sslmode=verify-full with sslrootcert checks the server",
}
_FORM = "Write postgresql://user@host:5432/database."


def new_source(url: str) -> NewSource:
    """The source of a new pipeline for this URL's database. Raises ConfigError, never with a secret."""
    given = properties_of(url)
    secrets = {name: value for name, value in given.items() if name in _VARIABLES}
    variables = {name: _VARIABLES[name] for name in ("database.password", *secrets)}
    name = re.sub(r"[^a-z0-9_]", "_", given["database.dbname"].lower())
    properties = {
        "database.hostname": given["database.hostname"],
        "database.port": "5432",
        "database.user": "postgres",
        **{each: value for each, value in given.items() if each not in _VARIABLES},
        **{each: f"${{env:{variable}}}" for each, variable in variables.items()},
        "topic.prefix": name,
        "slot.name": f"tailrace_{name}"[:63],
        "publication.name": f"tailrace_{name}"[:63],
        "publication.autocreate.mode": "filtered",
    }
    prompts = {"database.password": f"Password of {properties['database.user']}"}
    return NewSource(name, given["database.dbname"], properties, secrets, variables, prompts)


def properties_of(url: str) -> dict[str, str]:
    """The `database.*` properties that the URL gives, secrets included. Raises ConfigError, never with a secret."""
    given = _parsed(url) if url.startswith(SCHEMES) else {}
    host = given.get("host", "")
    if not host or not given.get("dbname"):
        raise ConfigError("the URL is incomplete", where="url", remedy=_FORM)
    if "@" in host:
        raise _unreadable()
    if "," in host or "," in given.get("port", ""):
        remedy = "name the one server to read from; the primary, or a standby from PostgreSQL 16 on"
        raise ConfigError("the URL names several servers", where="url", remedy=remedy)
    if host.startswith("/"):
        remedy = "name a host, such as localhost: replication connections need TCP here"
        raise ConfigError("the URL names a socket directory", where="url", remedy=remedy)
    for name in given:
        if name not in _PROPERTIES:
            remedy = _REMEDIES.get(name, f"leave it out of the URL; these work: {', '.join(sorted(_PROPERTIES))}")
            raise ConfigError(f"the URL's parameter {name} is not supported", where="url", remedy=remedy)
    return {_PROPERTIES[name]: _VALUES.get(name, {}).get(text, text) for name, text in given.items()}


def _parsed(url: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError as error:
        if "query parameter" in str(error):
            remedy = f"these work: {', '.join(sorted(_PROPERTIES))}"
            what = "the URL has a parameter that PostgreSQL does not know, or one without a value"
            raise ConfigError(what, where="url", remedy=remedy) from None
        # The driver's message quotes the part that it cannot read, which may be the password.
        raise _unreadable() from None


def _unreadable() -> ConfigError:
    remedy = f"{_FORM} Write characters such as @ : / ? % in a password as %40 and so on, or set $PGPASSWORD instead."
    return ConfigError("the URL cannot be read", where="url", remedy=remedy)
