"""Reads the URL of a new pipeline."""

from __future__ import annotations

from pymongo.errors import PyMongoError

from tailrace.connectors.mongodb.client import hosts_of, parts_of
from tailrace.connectors.ports import NewSource
from tailrace.errors import ConfigError

_VARIABLE = "MONGODB_PASSWORD"


def new_source(url: str) -> NewSource:
    """The source that a URL describes: its password goes into an environment variable. Raises ConfigError."""
    try:
        parsed = parts_of(url)
    except PyMongoError as error:
        remedy = "write mongodb://user@host:27017/?replicaSet=rs0; special characters of the password as %xx"
        raise ConfigError("the URL is not valid", where="url", remedy=remedy) from error
    user, password = parsed["username"], parsed["password"]
    address = url
    properties = {}
    if user is not None:
        scheme, _, rest = url.partition("://")
        address = f"{scheme}://{rest.partition('@')[2]}"
        properties = {"mongodb.user": user, "mongodb.password": f"${{env:{_VARIABLE}}}"}
        if parsed["database"] and "authsource" not in {name.lower() for name in parsed["options"]}:
            properties["mongodb.authsource"] = parsed["database"]
    database = parsed["database"]
    host = hosts_of(url)
    source = {"mongodb.connection.string": address, **properties, "topic.prefix": database or "mongodb"}
    if database and database != "admin":
        source["database.include.list"] = database
    secret = "mongodb.password"
    secrets = {secret: password} if password else {}
    prompts = {secret: f"Password of {user} at {host}"} if user is not None else {}
    variables = {secret: _VARIABLE} if user is not None else {}
    return NewSource(
        database or "mongodb", f"{database or 'all databases'} at {host}", source, secrets, variables, prompts
    )
