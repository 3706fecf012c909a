"""Roots of replicas: Delta tables below a path or URL, `iceberg://namespace`, or a schema of a database."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import unquote

# Users name a database by itself: its COPY, its types and its transactions are what the format is made of.
Format = Literal["delta", "iceberg", "postgres"]
DATABASE_FORMAT: Format = "postgres"
# What writes tables: a package in the executors' tasks, deltalake or pyiceberg as the format has it, or Spark's MERGE.
Engine = Literal["deltalake", "pyiceberg", "spark"]

ICEBERG = "iceberg://"
DATABASE = "postgresql://"
_PORT = 5432
# A host has no @ and a port is a number, so that no part of a password that was not encoded is taken for either.
_HOST = r"(?:[^/?#@:,\[\]]*|\[[^\]/]*\])(?::\d+)?"
_URL = re.compile(rf"postgres(?:ql)?://(?:[^/?#@]*@)?(?P<hosts>{_HOST}(?:,{_HOST})*)/(?P<database>[^/?#@]+)(?:\?.*)?")


def database_root(url: str, schema: str) -> str:
    """The root of a schema in the database of a URL, without user and password. Raises ValueError, without them too."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(
            "`url` should be postgresql://user@host:5432/database, with characters such as @ : / ? % of a password "
            "as %40 and so on; or set `password`"
        )
    return f"{DATABASE}{match['hosts']}/{match['database']}/{schema}"


def in_database(place: str) -> tuple[str, str]:
    """The server of a table below such a root as a URL of its first host and port, and `database.schema.table`."""
    hosts, *names = place.removeprefix(DATABASE).split("/", 3)
    host = hosts.partition(",")[0] or "localhost"
    has_port = ":" in host.rpartition("]")[2]
    return f"postgres://{host if has_port else f'{host}:{_PORT}'}", ".".join(map(unquote, names))
