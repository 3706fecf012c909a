"""Decides which SQL a signal may have in T-SQL."""

from __future__ import annotations

from tailrace.connectors.user_text import Grammar

# Reserved words of statements, which are no names without brackets; functions that run text on a server; what takes
# locks that keep others away, or draws a number that no rollback gives back.
_REFUSED = """
ALTER BACKUP BEGIN BREAK BULK CHECKPOINT CLOSE COMMIT CONTINUE CREATE DBCC DEALLOCATE DECLARE DELETE DENY DROP DUMP EXEC
EXECUTE EXIT GOTO GRANT IF INSERT INTO KILL LOAD MERGE OPEN OPENDATASOURCE OPENQUERY OPENROWSET PRINT PROC PROCEDURE
RAISERROR READTEXT RECONFIGURE RESTORE RETURN REVERT REVOKE ROLLBACK SAVE SET SETUSER SHUTDOWN TRAN TRANSACTION TRUNCATE
UPDATE UPDATETEXT USE WAITFOR WHILE WRITETEXT HOLDLOCK TABLOCK TABLOCKX UPDLOCK XLOCK
"""

GRAMMAR = Grammar(
    dialect=lambda: "tsql",
    prefixes=("N",),
    operators=("&", "|", "^", "~", "!<", "!>"),
    refused=frozenset({*((word,) for word in _REFUSED.split()), ("NEXT", "VALUE", "FOR")}),
    brackets=True,
    numbers=r"0x[0-9a-f]*(?!\w)",
)
