"""A server for replicas that are tables of a database: one for the process, with a database for each folder."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import psycopg

from tailrace.testing.postgres import EmbeddedPostgres

NAMESPACE = "lake"


def settings(folder: Path) -> dict[str, str]:
    """The settings of a replica in a pipeline file, whose tables are in a database of the folder's."""
    return {"format": "postgres", "url": _url(str(folder)), "namespace": NAMESPACE}


def execute(folder: Path, statement: str) -> None:
    """Run a statement in the database of a folder."""
    with psycopg.connect(_url(str(folder))) as connection:
        connection.execute(statement.encode())


@cache
def _url(folder: str) -> str:
    name = f"lake_{hashlib.sha256(folder.encode()).hexdigest()[:12]}"
    _server().create_database(name)
    return _server().url(name)


@cache
def _server() -> EmbeddedPostgres:
    return EmbeddedPostgres().start()
