"""SET options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tsql import statements as s
from ..tsql.errors import SqlError, error
from .transactions import LEVELS

if TYPE_CHECKING:
    from .executor import Executor


def set_option(executor: Executor, statement: s.SetOption) -> None:
    """SET of any option; those without meaning here are accepted."""
    session = executor.session
    words = [word.upper() for word in statement.words]
    on = words[-1] == "ON"
    if words[:3] == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        _isolation(executor, " ".join(words[3:]))
    elif words[0] == "IMPLICIT_TRANSACTIONS":
        session.options.implicit_transactions = on
    elif words[0] == "NOCOUNT":
        session.options.no_count = on
    elif words[0] == "XACT_ABORT":
        session.options.abort_on_error = on
    elif words[0] == "FMTONLY":
        session.options.format_only = on
    elif words[0] == "LOCK_TIMEOUT":
        _lock_timeout(executor, int("".join(words[1:])))
    elif words[0] == "IDENTITY_INSERT":
        _identity_insert(executor, statement.words[1:-1], on)
    executor.sink.done("SET", None)


def _isolation(executor: Executor, level: str) -> None:
    transactions = executor.session.transactions
    if level not in LEVELS:
        raise SqlError(102, 15, f"Incorrect syntax near '{level}'.")
    if level == "SNAPSHOT" and transactions.open and transactions.isolation != "SNAPSHOT":
        raise error(3951, executor.session.database_name)
    transactions.isolation = level


def _lock_timeout(executor: Executor, milliseconds: int) -> None:
    executor.session.options.lock_timeout = milliseconds
    # PostgreSQL has no "at once": a millisecond stands for it; 0 there means to wait for ever, as -1 does here.
    value = 0 if milliseconds < 0 else max(milliseconds, 1)
    executor.session.backend.run(f"SET SESSION lock_timeout = {value}")


def _identity_insert(executor: Executor, words: list[str], on: bool) -> None:
    name = tuple(part for part in words if part != ".")
    table = executor.session.context().table(name)
    options = executor.session.options
    if on and options.identity_insert not in (None, table.object_id):
        raise error(8107, table.name)
    options.identity_insert = table.object_id if on else None
