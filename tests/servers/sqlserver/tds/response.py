"""Writes the tokens of a response and sends them in packets, long before all rows are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..datatypes import SqlType
from ..tsql.errors import SqlError
from . import tokens
from .rows import encode_rows
from .transport import Transport

_FLUSH = 1 << 16
Described = list[tuple[str, SqlType, int]]


class Response:
    """A sink that talks to a client."""

    def __init__(
        self, transport: Transport, server_name: str, *, rpc: bool = False, check: Callable[[], None] = lambda: None
    ) -> None:
        self._transport = transport
        self._server_name = server_name
        self._rpc = rpc
        self._check = check
        self._depth = 0
        self._buffer = bytearray()
        self._done: tuple[int, int, int, int] | None = None
        self.status = 0
        self.had_error = False

    # What statements give

    def columns(self, described: Described) -> None:
        """A result set begins."""
        self._add(tokens.columns(described))

    def rows(self, rows: Sequence[memoryview], described: Described) -> None:
        """Rows of the result set."""
        self._check()
        self._add(encode_rows(rows, described))

    def done(self, command: str, count: int | None) -> None:
        """A statement has ended."""
        status = 0 if count is None else tokens.DONE_COUNT
        self._finish_statement(status, tokens.COMMANDS.get(command, 0xFD), count or 0)

    def failed(self, error: SqlError) -> None:
        """A statement has failed."""
        self.had_error = True
        self._add(
            tokens.message(
                error.number,
                error.state,
                max(error.severity, 11),
                error.message,
                self._server_name,
                error.procedure,
                error.line,
            )
        )
        self._finish_statement(tokens.DONE_ERROR, 0xFD, 0)

    def info(self, number: int, severity: int, text: str, state: int = 1) -> None:
        """A message that is no error; clients are told of a severity of 10 as 0."""
        severity = 0 if severity == 10 else severity
        self._add(tokens.message(number, state, severity, text, self._server_name))

    def environment(self, kind: int, new: str | bytes, old: str | bytes) -> None:
        """A state of the connection has changed."""
        self._add(tokens.environment(kind, new, old))

    def enter_procedure(self) -> None:
        """The statements of a procedure follow."""
        self._depth += 1

    def leave_procedure(self, status: int) -> None:
        """The procedure has ended."""
        self._depth -= 1
        if self._depth == 0 and self._rpc:
            self.status = status
        elif self._depth == 0:
            self._add(tokens.return_status(status))
            self._end_with(tokens.DONE_PROCEDURE, 0, 0xE0, 0)

    # Tokens of the protocol

    def add(self, token: bytes) -> None:
        """Add a finished token."""
        self._add(token)

    def end_call(self, values: list[bytes]) -> None:
        """The end of a remote procedure call: its status, its output values."""
        self._depth = 0
        self._add(tokens.return_status(self.status))
        for value in values:
            self._add(value)
        self._end_with(tokens.DONE_PROCEDURE, tokens.DONE_ERROR if self.had_error else 0, 0xE0, 0)

    def acknowledge_attention(self) -> None:
        """The answer to an attention: what was under way has stopped."""
        self._done = None
        self._end_with(tokens.DONE, tokens.DONE_ATTENTION, 0, 0)

    def finish(self) -> None:
        """Send what is left."""
        if self._done is None:
            self._end_with(tokens.DONE, 0, 0xFD, 0)
        assert self._done is not None
        token, status, command, count = self._done
        self._buffer += tokens.done(token, status, command, count)
        self._transport.write(self._buffer, last=True)

    # Buffer

    def _finish_statement(self, status: int, command: int, count: int) -> None:
        token = tokens.DONE_IN_PROCEDURE if self._depth or self._rpc else tokens.DONE
        self._end_with(token, status, command, count)

    def _end_with(self, token: int, status: int, command: int, count: int) -> None:
        self._write_done()
        self._done = (token, status, command, count)

    def _write_done(self) -> None:
        """Write the end that was kept back until it was known that more follows."""
        if self._done is not None:
            token, status, command, count = self._done
            self._buffer += tokens.done(token, status | tokens.DONE_MORE, command, count)
            self._done = None

    def _add(self, token: bytes) -> None:
        self._write_done()
        self._buffer += token
        if len(self._buffer) >= _FLUSH:
            sent = self._transport.write(self._buffer, last=False)
            del self._buffer[:sent]
