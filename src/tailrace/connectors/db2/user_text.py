"""Decides which SQL a signal may have in Db2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailrace.connectors.user_text import Grammar

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

# Db2 reserves no words: a column with such a name is written in quotes.
_REFUSED = """
ALTER BEGIN CALL COMMIT CREATE DECLARE DELETE DROP EXECUTE GRANT INSERT INTO LOCK MERGE NEXTVAL REVOKE ROLLBACK TRUNCATE
UPDATE
"""


def _dialect() -> type[Dialect]:
    from tailrace.connectors.db2.sql_dialect import Db2

    return Db2


GRAMMAR = Grammar(
    dialect=_dialect,
    prefixes=("X", "BX", "GX", "UX", "N", "G", "U&"),
    operators=("^=",),
    refused=frozenset(
        {
            *((word,) for word in _REFUSED.split()),
            *(("NEXT", "VALUE", "FOR"), ("FINAL", "TABLE"), ("NEW", "TABLE"), ("OLD", "TABLE")),
            ("USE", "AND", "KEEP"),
        }
    ),
)
