"""Exported snapshots at known positions of the log, for all who read tables."""

from __future__ import annotations

import logging

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres import publication, slot
from tailrace.connectors.postgres.catalog import Catalog
from tailrace.connectors.postgres.connect import connect, first_line
from tailrace.errors import SourceError

log = logging.getLogger(__name__)


class Export:
    """An exported snapshot, held open by a connection until everything is read."""

    def __init__(self, holder: psycopg.Connection, name: str, lsn: int) -> None:
        self.holder, self.name, self.lsn = holder, name, lsn

    def close(self) -> None:
        """Let the snapshot go."""
        self.holder.close()


def export_at_slot(config: Config, application: str) -> Export:
    """Prepare publication and slot, and export the snapshot at whose position the slot begins.

    A slot that exists already is moved to the position of a temporary one, whose snapshot is exported: exact as well.
    """
    with connect(config, application=f"{application} planner") as connection:
        publication.ensure(connection, config, Catalog(connection, config).tables())
        present = slot.free(connection, config, application)
        holder = connect(config, replication=True, application=f"{application} snapshot")
        if present is None:
            lsn, name = slot.create(holder, config)
        else:
            lsn, name = slot.create_temporary(holder, config)
            slot.advance(connection, config, lsn)
    log.info("snapshot %s begins, the log goes on from there", name)
    return Export(holder, name, lsn)


def export_now(config: Config) -> Export:
    """Export the present snapshot without any slot, for a bounded read."""
    holder = connect(config, application="tailrace snapshot")
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    row = holder.execute("SELECT pg_export_snapshot(), (pg_current_wal_lsn() - '0/0')::int8").fetchone()
    assert row is not None
    return Export(holder, row[0], row[1])


def export_aside(config: Config) -> Export:
    """Export a snapshot at an exact position of the log, by a slot that goes with the export."""
    holder = connect(config, replication=True, application="tailrace snapshot")
    lsn, name = slot.create_temporary(holder, config)
    return Export(holder, name, lsn)


def adopt(connection: psycopg.Connection, name: str) -> None:
    """Read under an exported snapshot from here on. Raises SourceError when it is gone."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(name)))
    except psycopg.Error as error:
        raise SourceError(
            f"the exported snapshot {name} is gone: {first_line(error)}",
            remedy="start the query again; an unfinished snapshot begins anew",
        ) from error
