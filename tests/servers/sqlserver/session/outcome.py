"""What running statements tells the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..datatypes import SqlType
from ..translate.query import OutColumn
from ..tsql.errors import SqlError

Described = list[tuple[str, SqlType, int]]
NULLABLE, UPDATABLE, IDENTITY, EXPRESSION = 0x01, 0x08, 0x10, 0x20


@dataclass(frozen=True)
class Compiled:
    """A query ready to run, with the columns it yields."""

    sql: str
    columns: list[OutColumn]

    @property
    def described(self) -> Described:
        """The columns as the client is told of them."""
        found = []
        for column in self.columns:
            flags = NULLABLE if column.nullable else 0
            flags |= UPDATABLE if column.column is not None else EXPRESSION
            flags |= IDENTITY if column.column is not None and column.column.identity is not None else 0
            found.append((column.name, column.kind, flags))
        return found


class Sink(Protocol):
    """Takes the results of statements as they come."""

    def columns(self, described: Described) -> None:
        """A result set begins."""

    def rows(self, rows: Sequence[memoryview], described: Described) -> None:
        """Rows of the result set, in PostgreSQL's binary COPY format."""

    def done(self, command: str, count: int | None) -> None:
        """A statement has ended."""

    def failed(self, error: SqlError) -> None:
        """A statement has failed."""

    def info(self, number: int, severity: int, text: str, state: int = 1) -> None:
        """A message that is no error, as of PRINT."""

    def environment(self, kind: int, new: str | bytes, old: str | bytes) -> None:
        """The database, the transaction or another state of the connection has changed."""

    def enter_procedure(self) -> None:
        """The statements of a procedure follow."""

    def leave_procedure(self, status: int) -> None:
        """The procedure has ended."""


class Silent:
    """A sink for statements whose results nobody wants; errors are raised instead."""

    def columns(self, described: Described) -> None:
        """Ignored."""

    def rows(self, rows: Sequence[memoryview], described: Described) -> None:
        """Ignored."""

    def done(self, command: str, count: int | None) -> None:
        """Ignored."""

    def failed(self, error: SqlError) -> None:
        """Raised."""
        raise error

    def info(self, number: int, severity: int, text: str, state: int = 1) -> None:
        """Ignored."""

    def environment(self, kind: int, new: str | bytes, old: str | bytes) -> None:
        """Ignored."""

    def enter_procedure(self) -> None:
        """Ignored."""

    def leave_procedure(self, status: int) -> None:
        """Ignored."""


def delivered(query: str, columns: list[OutColumn]) -> str:
    """A query whose columns come in the form that the encoders of rows expect."""
    listed = ", ".join(_delivered(f"q.c{number}", column.kind) for number, column in enumerate(columns, 1))
    return f"SELECT {listed} FROM ({query}) q"


def delivered_values(values: list[tuple[str, SqlType]]) -> str:
    """The select list, or RETURNING list, of expressions in that form."""
    return ", ".join(_delivered(sql, kind) for sql, kind in values)


def _delivered(sql: str, kind: SqlType) -> str:
    if kind.family == "decimal":
        scaled = f"({sql}) * 1{'0' * kind.scale}"
        return f"({scaled})::int8" if kind.precision <= 18 else f"round({scaled})::text"
    if kind.family == "money":
        return f"(({sql}) * 10000)::int8"
    return f"({sql})::{kind.storage}"
