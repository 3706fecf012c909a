"""Control of flow, transactions, messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..datatypes import INT, MAX, make
from ..tsql import statements as s
from ..tsql.errors import SqlError, error, unsupported

if TYPE_CHECKING:
    from .executor import Executor
    from .session import Session

_ENV_BEGIN, _ENV_COMMIT, _ENV_ROLLBACK = 8, 9, 10
_NO_TRANSACTION = bytes(8)


class Break(Exception):
    """BREAK."""


class Continue(Exception):
    """CONTINUE."""


class Return(Exception):
    """RETURN, with the status if one is given."""

    def __init__(self, status: int = 0) -> None:
        super().__init__()
        self.status = status


def in_try(session: Session) -> bool:
    """Whether a TRY block would catch an error."""
    return session.try_depth > 0


def run_if(executor: Executor, statement: s.If) -> None:
    """IF."""
    if executor.condition(statement.condition):
        executor.run(statement.then)
    elif statement.otherwise is not None:
        executor.run(statement.otherwise)


def run_while(executor: Executor, statement: s.While) -> None:
    """WHILE."""
    while executor.condition(statement.condition):
        try:
            executor.run(statement.body)
        except Break:  # noqa: PERF203  # the loop is that of the statement
            return
        except Continue:
            continue


def run_block(executor: Executor, statement: s.Block) -> None:
    """BEGIN ... END."""
    executor.run_all(statement.body)


def run_try(executor: Executor, statement: s.TryCatch) -> None:
    """TRY and CATCH."""
    session = executor.session
    session.try_depth += 1
    try:
        executor.run_all(statement.body)
        return
    except SqlError as failure:
        caught = failure
    finally:
        session.try_depth -= 1
    session.state.caught.append(caught)
    try:
        executor.run_all(statement.handler)
    finally:
        session.state.caught.pop()


def run_simple(executor: Executor, statement: s.Simple) -> None:
    """PRINT, RETURN, RAISERROR, THROW, WAITFOR, BREAK, CONTINUE."""
    word = statement.word
    if word == "BREAK":
        raise Break
    if word == "CONTINUE":
        raise Continue
    if word == "RETURN":
        raise Return(int(executor.value(statement.arguments[0], INT).value or 0) if statement.arguments else 0)
    if word == "PRINT":
        text = executor.value(statement.arguments[0], make("nvarchar", MAX)).value
        executor.sink.info(0, 0, text or "")
    elif word == "RAISERROR":
        _raise_error(executor, statement)
    elif word == "THROW":
        _throw(executor, statement)
    elif word.startswith("WAITFOR"):
        _wait(executor, statement)
    elif word != "CHECKPOINT":
        raise unsupported(word)


def _raise_error(executor: Executor, statement: s.Simple) -> None:
    message, severity, state, *values = statement.arguments
    found = executor.value(message)
    number = 50000
    if found.kind.family == "integer":
        number, text = int(found.value or 0), f"Error {found.value}"
    else:
        text = found.value or ""
        for node in values:
            value = executor.value(node).value
            text = (
                text.replace("%s", value or "(null)", 1) if "%s" in text else text.replace("%d", value or "(null)", 1)
            )
    level = int(executor.value(severity, INT).value or 0)
    mark = int(executor.value(state, INT).value or 0)
    if level <= 10:
        executor.sink.info(number, level, text, mark)
        return
    raise SqlError(number, level, text, mark)


def _throw(executor: Executor, statement: s.Simple) -> None:
    if not statement.arguments:
        if not executor.session.state.caught:
            raise error(10704)
        raise executor.session.state.caught[-1]
    number, message, state = (executor.value(node).value for node in statement.arguments)
    raise SqlError(int(number or 0), 16, message or "", int(state or 1))


def _wait(executor: Executor, statement: s.Simple) -> None:
    if statement.word != "WAITFOR DELAY":
        raise unsupported(statement.word)
    text = executor.value(statement.arguments[0], make("nvarchar", 40)).value or "0:0:0"
    hours, minutes, seconds = (float(part) for part in [*text.split(":"), "0", "0"][:3])
    end = time.monotonic() + hours * 3600 + minutes * 60 + seconds
    executor.session.backend.run(f"SELECT pg_sleep({max(end - time.monotonic(), 0)})")


# Transactions


def run_transaction(executor: Executor, statement: s.Transaction) -> None:
    """BEGIN, COMMIT, ROLLBACK and SAVE of transactions."""
    name = statement.name
    if name is not None and name.startswith("@"):
        variable = executor.session.scopes[-1].get(name.lower())
        name = variable.value if variable is not None else name
    {"BEGIN": begin, "COMMIT": commit, "ROLLBACK": roll_back, "SAVE": save}[statement.action](executor, name)
    executor.sink.done(statement.action, None)


def _descriptor(session: Session) -> bytes:
    return session.spid.to_bytes(4, "little") + session.transactions.number.to_bytes(4, "little")


def begin(executor: Executor, name: str | None) -> None:
    """BEGIN TRAN."""
    session = executor.session
    if session.transactions.begin():
        executor.sink.environment(_ENV_BEGIN, _descriptor(session), b"")


def commit(executor: Executor, name: str | None) -> None:
    """COMMIT."""
    session = executor.session
    if not session.transactions.open:
        raise error(3902)
    descriptor = _descriptor(session)
    if session.transactions.commit():
        executor.sink.environment(_ENV_COMMIT, b"", descriptor)


def roll_back(executor: Executor, name: str | None) -> None:
    """ROLLBACK, whole or to a savepoint."""
    session = executor.session
    if not session.transactions.open:
        raise error(3903)
    if name is not None and session.transactions.rollback_to(name):
        return
    if name is not None and session.transactions.has_savepoints:
        raise error(6401, name)
    descriptor = _descriptor(session)
    session.transactions.rollback()
    executor.sink.environment(_ENV_ROLLBACK, b"", descriptor)


def save(executor: Executor, name: str | None) -> None:
    """SAVE TRAN."""
    if not executor.session.transactions.open:
        raise error(628)
    executor.session.transactions.save(name or "")
