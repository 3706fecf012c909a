"""Checks whether the server can send the texts of a database as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tailrace.connectors.finding import Finding

# Names of tables, columns and labels, as the bytes that they have.
_NAMES = """
WITH tables AS (
    SELECT c.oid, n.nspname || '.' || c.relname AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p')
)
SELECT convert_to(shown, 'SQL_ASCII') AS name FROM (
    SELECT name, name FROM tables
    UNION ALL SELECT attname, name || '.' || attname FROM tables JOIN pg_attribute ON attrelid = oid
    WHERE attnum > 0 AND NOT attisdropped
    UNION ALL SELECT enumlabel, typname || '.' || enumlabel FROM pg_type t JOIN pg_enum ON enumtypid = t.oid
) AS named (own, shown) WHERE own ~ '[^ -~]' ORDER BY 1
"""


def encoding_findings(connection: psycopg.Connection[Any], encoding: str) -> Iterator[Finding]:
    """The server converts texts of every encoding but SQL_ASCII, whose bytes it sends as they are."""
    if encoding != "SQL_ASCII":
        converts = "" if encoding == "UTF8" else ", which the server converts"
        yield Finding("encoding", True, f"the database is in {encoding}{converts}")
        return
    what = "the database is in SQL_ASCII: a text that is not valid UTF-8 cannot be read, and ends the run"
    yield Finding("encoding", None, what, "see that all texts are UTF-8, or copy them into a database in UTF8")
    names = [row["name"] for row in connection.cursor(row_factory=dict_row).execute(_NAMES)]
    wrong = [name.decode(errors="backslashreplace") for name in names if not _is_utf8(name)]
    if wrong:
        what = f"names are not valid UTF-8: {', '.join(wrong)}"
        yield Finding("encoding", False, what, "rename them over a connection with client_encoding = SQL_ASCII")


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
