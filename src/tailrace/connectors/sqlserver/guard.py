"""Finds tables of which a login sees masked values or fewer rows, while their changes are complete."""

from __future__ import annotations

import time
from collections.abc import Collection

from tailrace.connectors.sql_tables.tables import Connection
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.errors import SourceError
from tailrace.model.table import TableId

# Microsoft: "Dynamic data masking" (UNMASK), "Row-level security" (filter predicates are of type 0).
_HIDDEN = """
SELECT N'mask', c.name FROM {db}.sys.columns c WHERE c.object_id = {id} AND c.is_masked = 1
UNION ALL SELECT N'filter', p.name FROM {db}.sys.security_predicates r
JOIN {db}.sys.security_policies p ON p.object_id = r.object_id
WHERE r.target_object_id = {id} AND r.predicate_type = 0 AND p.is_enabled = 1
"""
_ROWS = "SELECT SUM(p.rows) FROM {db}.sys.partitions p WHERE p.object_id = {id} AND p.index_id < 2"
_TRIES, _PAUSE_S = 3, 0.2  # guessed
# As many as no table has.
_ALL = 1 << 62


def guard(connection: Connection, table: TableId, number: int, columns: Collection[str]) -> None:
    """Raise SourceError for a table whose snapshot would have masks in these columns, or lack rows.

    May raise the driver's errors.
    """
    hidden = connection.rows(_HIDDEN.format(db=name(table.database), id=number))
    masked = [str(column) for kind, column in hidden if kind == "mask" and column in columns]
    if masked and not _is_unmasked(connection, table):
        raise SourceError(
            f"the login is shown masks instead of the values of {', '.join(masked)}, and changes have the values",
            where=str(table),
            remedy=f"GRANT UNMASK TO <user> in {table.database}, or leave the columns out by column.exclude.list",
        )
    policies = sorted({str(policy) for kind, policy in hidden if kind == "filter"})
    if policies:
        count = f"SELECT COUNT_BIG(*) FROM {'.'.join(map(name, table.parts))}"
        _compare(connection, table, number, count, f"the security policy {', '.join(policies)}")
    elif not sees_policies(connection, table.database):
        # Most predicates hide all rows from a login that they do not name; to count them would take a scan.
        some = f"SELECT COALESCE((SELECT TOP 1 {_ALL} FROM {'.'.join(map(name, table.parts))}), 0)"
        _compare(connection, table, number, some, "a security policy that the login may not see")


def _is_unmasked(connection: Connection, table: TableId) -> bool:
    """Whether the login sees the values: the right is the database's, from SQL Server 2022 on a table's, too."""
    own = text(".".join(map(name, table.parts)))
    rights = (
        f"HAS_PERMS_BY_NAME({text(table.database)}, N'DATABASE', N'UNMASK')",
        f"HAS_PERMS_BY_NAME({own}, N'OBJECT', N'UNMASK')",
    )
    return any(connection.value(f"SELECT {right}") == 1 for right in rights)


def sees_policies(connection: Connection, database: str) -> bool:
    """Whether the login sees which security policies a database has (Microsoft: "sys.security_policies")."""
    rights = ("VIEW DEFINITION", "ALTER ANY SECURITY POLICY")
    asked = (f"HAS_PERMS_BY_NAME({text(database)}, N'DATABASE', {text(right)})" for right in rights)
    return any(connection.value(f"SELECT {each}") == 1 for each in asked)


def _compare(connection: Connection, table: TableId, number: int, shown: str, policy: str) -> None:
    """Raise SourceError if a policy hides rows: those of a transaction that is not committed come later."""
    visible = rows = 0
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        rows = int(connection.value(_ROWS.format(db=name(table.database), id=number)) or 0)
        visible = int(connection.value(shown))
        if visible >= rows:
            return
    raise SourceError(
        f"{policy} shows the login {visible:,} of {rows:,} rows, and changes come of all",
        where=str(table),
        remedy="let the policy's predicate hold for the login, or leave the table out",
    )
