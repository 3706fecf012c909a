"""Finds what keeps changes from a running pipeline, or would keep rows from it, as the server says it now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.options import PUBLICATION_NAME
from tailrace.connectors.postgres.server.connect import connect, server_errors
from tailrace.connectors.postgres.server.published import (
    LOCKED,
    at_once,
    captured,
    find,
    publication_findings,
    shown,
)
from tailrace.connectors.postgres.snapshot.selects import grants, unreadable
from tailrace.model.table import TableId


def problems(config: Config, *, begun: bool) -> list[Finding]:
    """What keeps changes from the pipeline now, by a connection of its own. Raises SourceError."""
    with server_errors("the publication cannot be read"), connect(config, application="tailrace status") as connection:
        try:
            with at_once(connection):
                return list(_problems(connection, config, begun=begun))
        except psycopg.errors.LockNotAvailable:
            return [LOCKED]


def _problems(connection: psycopg.Connection[Any], config: Config, *, begun: bool) -> Iterator[Finding]:
    publication = find(connection, config[PUBLICATION_NAME])
    if publication is not None:
        yield from publication_findings(connection, config, publication, begun=begun)
    elif begun:
        what = f"there is no publication {config[PUBLICATION_NAME]}"
        yield Finding("publication", False, what, "`tailrace check` says what it takes")
    # Before the first start `check` says it, as an error.
    if begun:
        yield from _unreadable(connection, config)


def _unreadable(connection: psycopg.Connection[Any], config: Config) -> Iterator[Finding]:
    """A warning if rows of captured tables may not be read any more: the log needs no such right."""
    hidden = unreadable(connection)
    tables = [table for table in captured(connection, config) if table.name in hidden]
    if tables:
        ids = [TableId(config[DATABASE_DBNAME], *table.name) for table in tables]
        what = f"the right to read {shown(tables)} is missing: changes arrive, but no snapshot or comparison can read"
        yield Finding("select", None, what, "; ".join(grants(config, ids)))
