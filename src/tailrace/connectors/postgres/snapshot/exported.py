"""Exported snapshots: one state of the database that several connections read, with its position in the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.position import LogClaim
from tailrace.connectors.postgres.server import publication, slot
from tailrace.connectors.postgres.server.connect import address, connect, first_line, is_transient
from tailrace.connectors.postgres.snapshot.selects import locked
from tailrace.connectors.snapshot_ports import SnapshotHandle
from tailrace.connectors.snapshots import SnapshotGone
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.override import override

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Export(SnapshotHandle):
    """An exported snapshot, held open by connections until everything is read; one of them may hold locks."""

    held: ExitStack
    name: str
    lsn: int

    @property
    @override
    def position(self) -> int:
        return self.lsn

    def lock(self, config: Config, tables: Sequence[TableId]) -> None:
        """Hold the locks of snapshot.locking.mode on the tables as well. Raises SourceError."""
        _lock(config, tables, self.held)

    @override
    def is_valid(self, config: Config) -> bool:
        """Whether connections can still read under it. Raises SourceError."""
        with connect(config, application="tailrace planner") as connection:
            try:
                adopt(connection, config, self.name)
            except SourceError as error:
                if is_transient(error):
                    raise
                return False
        return True

    @override
    def close(self) -> None:
        """Let the snapshot go."""
        self.held.close()


def export_at_slot(config: Config, application: str, claim: LogClaim) -> Export:
    """Prepare publication and slot, and export the snapshot at whose position the slot begins.

    A slot that exists already is moved to the position of a temporary one, whose snapshot is exported: exact as well.
    Raises SourceError for a slot that is not the pipeline's by its claim.
    """
    with connect(config, application=f"{application} export") as connection, ExitStack() as held:
        slot.check_owned(connection, config, claim)
        catalog = Catalog(connection, config)
        publication.ensure(connection, config, catalog.tables())
        slot.free(connection, config, application)
        present = slot.usable(connection, config, claim)
        # Before the snapshot is taken, so that no schema changes in between.
        _lock(config, catalog.snapshot_tables(), held)
        holder = held.enter_context(
            closing(connect(config, replication=True, application=slot.snapshot_application(application)))
        )
        if present is None:
            lsn, name = slot.create(holder, config)
        else:
            lsn, name = slot.create_temporary(holder, config)
            slot.advance(connection, config, lsn)
        log.info("snapshot %s begins; the log is read from the same position on", name)
        return Export(held.pop_all(), name, lsn)


def _lock(config: Config, tables: Sequence[TableId], held: ExitStack) -> None:
    locks = locked(config, tables)
    if locks is not None:
        held.enter_context(closing(locks))


def export_now(config: Config) -> Export:
    """Export the present snapshot without any slot, for a bounded read."""
    with ExitStack() as held:
        holder = held.enter_context(closing(connect(config, application="tailrace snapshot")))
        catalog = Catalog(holder, config)
        _lock(config, catalog.snapshot_tables(), held)
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = holder.execute("SELECT pg_export_snapshot(), (pg_current_wal_lsn() - '0/0')::int8").fetchone()
        assert row is not None
        return Export(held.pop_all(), row[0], row[1])


def export_aside(config: Config, application: str = "tailrace", *, once: bool = False) -> Export:
    """Export a snapshot at an exact position of the log, by a slot that goes with the export.

    With `once` creating the slot is not tried again.
    """
    with ExitStack() as held:
        holder = held.enter_context(
            closing(connect(config, replication=True, application=slot.snapshot_application(application)))
        )
        lsn, name = slot.create_temporary(holder, config, once=once)
        return Export(held.pop_all(), name, lsn)


def adopt(connection: psycopg.Connection, config: Config, name: str) -> None:
    """Read under an exported snapshot from here on. Raises SourceError when it is gone."""
    try:
        for statement in adopting(name):
            connection.execute(statement.encode())
    except psycopg.Error as error:
        raise gone(config, name, first_line(error)) from error


def adopting(name: str) -> list[str]:
    """The statements after which a connection reads under an exported snapshot."""
    return [
        "SET synchronize_seqscans = off",  # read again the rows come in the same order
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(name)).as_string(),
    ]


def gone(config: Config, name: str, said: str) -> SnapshotGone:
    """An exported snapshot that cannot be read under."""
    return SnapshotGone(
        f"the exported snapshot {name} is gone, as the connection that held it has ended ({said})",
        where=address(config),
        remedy="the server's log says what ended the connection named `tailrace ... snapshot` (a restart, "
        "pg_terminate_backend, a firewall). A snapshot of several batches then resumes, one of a single batch starts "
        "from the beginning, one that a signal requested is read again",
    )
