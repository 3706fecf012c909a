"""Locks that statements take on tables, by their hints and the isolation level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..translate.context import TableUse
from ..tsql.errors import error

if TYPE_CHECKING:
    from .session import Session

_UNLOCKED = {"NOLOCK", "READUNCOMMITTED"}


def prepare(session: Session, uses: list[TableUse]) -> None:
    """Take the table locks of a statement, and wait for those of others that PostgreSQL would not wait for."""
    level = session.transactions.isolation
    if level == "SNAPSHOT":
        _check_snapshot(session, uses)
    waits = []
    for use in uses:
        if use.table.physical_name is not None:
            continue
        _lock_table(session, use)
        dirty = level == "READ UNCOMMITTED" or bool(use.hints & _UNLOCKED)
        if use.access == "SELECT" and level != "SNAPSHOT" and not dirty:
            waits.append((use.table.object_id, use.table.physical))
            if session.server.readers_wait and not _has_versions(session, use):
                session.transactions.wait_for_writers(use.table.physical)
    if waits:
        session.transactions.wait_for(waits)


def _has_versions(session: Session, use: TableUse) -> bool:
    """Whether readers of the table's database read the last committed versions of rows."""
    database = session.reader().database(use.table.database)
    return database is not None and database.read_committed_snapshot


def _lock_table(session: Session, use: TableUse) -> None:
    mode = ""
    if use.hints & {"TABLOCKX"} or use.hints >= {"TABLOCK", "XLOCK"}:
        mode = "EXCLUSIVE"
    elif (
        use.hints >= {"TABLOCK", "HOLDLOCK"}
        or session.transactions.isolation == "SERIALIZABLE"
        or use.hints & {"HOLDLOCK", "SERIALIZABLE"}
    ):
        mode = "SHARE"
    if not mode or not session.transactions.open or use.access != "SELECT":
        return
    session.transactions.wait_for([(use.table.object_id, use.table.physical)])
    session.transactions.lock_table(use.table.object_id, use.table.physical, mode)


def _check_snapshot(session: Session, uses: list[TableUse]) -> None:
    for use in uses:
        if use.table.physical_name is not None:
            continue
        database = session.reader().database(use.table.database)
        if database is not None and not database.snapshot:
            raise error(3952, database.name)
