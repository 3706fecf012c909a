"""Reads the URL of a new pipeline: one database on one server, and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from tailrace.connectors.ports import NewSource
from tailrace.errors import ConfigError

_SECRET = "database.password"


@dataclass(frozen=True)
class UrlForm:
    """What a database's URLs have of their own.

    `example` is shown in errors, `port` the default. `options` maps the names of URL options, in lower case, to
    properties. The password becomes a reference to the environment variable `variable`. `database` is the property for
    the database's name. With `lower_prefix` `topic.prefix` is that name in lower case.
    """

    example: str
    port: int
    options: Mapping[str, str]
    variable: str
    database: str
    lower_prefix: bool = False

    def source(self, url: str) -> NewSource:
        """The source that a URL describes. Raises ConfigError, never with the password."""
        try:
            parts = urlsplit(url)
            port = parts.port or self.port
        except ValueError as error:
            raise self._wrong("the URL is not valid") from error
        database = unquote(parts.path.lstrip("/"))
        if not parts.hostname or not database or not parts.username:
            raise self._wrong("the URL lacks a user, a host or a database")
        properties = {
            "database.hostname": parts.hostname,
            "database.port": str(port),
            "database.user": unquote(parts.username),
            _SECRET: f"${{env:{self.variable}}}",
            self.database: database,
            "topic.prefix": database.lower() if self.lower_prefix else database,
        }
        for name, value in parse_qsl(parts.query):
            if name.lower() not in self.options:
                raise self._wrong(f"the URL has the option {name}; known are {', '.join(sorted(self.options))}")
            properties[self.options[name.lower()]] = value
        secrets = {_SECRET: unquote(parts.password)} if parts.password else {}
        server = f"{parts.hostname}:{port}"
        prompts = {_SECRET: f"Password of {properties['database.user']} at {server}"}
        return NewSource(database, f"{database} at {server}", properties, secrets, {_SECRET: self.variable}, prompts)

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(what, where="url", remedy=f"write {self.example}; special characters as %xx")
