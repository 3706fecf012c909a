"""One session's connection to PostgreSQL: statements, rows in the binary COPY format, cancelling."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from psycopg import pq

from .tds.copy_binary import HEADER_LENGTH

_CHUNK_ROWS = 8192
_CHUNK_BYTES = 1 << 20
_TRAILER = b"\xff\xff"


class EngineError(Exception):
    """An error of PostgreSQL."""

    def __init__(self, result: pq.abc.PGresult) -> None:
        def field(code: pq.DiagnosticField) -> str:
            return (result.error_field(code) or b"").decode("utf-8", "replace")

        self.state = field(pq.DiagnosticField.SQLSTATE)
        self.text = field(pq.DiagnosticField.MESSAGE_PRIMARY)
        self.detail = field(pq.DiagnosticField.MESSAGE_DETAIL)
        self.constraint = field(pq.DiagnosticField.CONSTRAINT_NAME)
        self.table = field(pq.DiagnosticField.TABLE_NAME)
        self.column = field(pq.DiagnosticField.COLUMN_NAME)
        super().__init__(f"{self.state} {self.text} {self.detail}")


@dataclass
class Outcome:
    """What a statement gave: rows as text, and how many rows it returned or changed."""

    rows: list[tuple[str | None, ...]]
    count: int


class Backend:
    """Runs statements on a connection of its own; `watch` is asked while waiting whether to cancel."""

    def __init__(self, dsn: str, options: str = "") -> None:
        conninfo = dsn + (f" options='{options}'" if options else "")
        self._connection = pq.PGconn.connect(conninfo.encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise ConnectionError(self._connection.get_error_message())
        self._connection.notice_handler = None
        self._copying = False
        self.watched: int | None = None
        self.was_cancelled = False
        self.watch: Callable[[], bool] = lambda: False

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        return self._connection.transaction_status != pq.TransactionStatus.IDLE

    def close(self) -> None:
        """Close the connection; what is open is rolled back."""
        self._connection.finish()

    def run(self, statement: str) -> Outcome:
        """Run statements; return what the last of them gave."""
        self._connection.send_query(statement.encode())
        outcome = Outcome([], 0)
        error: EngineError | None = None
        while (result := self._result()) is not None:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                error = EngineError(result)
            else:
                outcome = _outcome(result)
        if error is not None:
            raise error
        return outcome

    def scalar(self, statement: str) -> str | None:
        """The first value of the first row."""
        rows = self.run(statement).rows
        return rows[0][0] if rows else None

    def copy(self, query: str, before: str = "") -> Iterator[Sequence[memoryview]]:
        """Run a query, after statements without rows; yield its rows in the binary COPY format, some at a time."""
        self._connection.send_query(f"{before}COPY ({query}) TO STDOUT (FORMAT BINARY)".encode())
        result = self._result()
        while result is not None and result.status == pq.ExecStatus.COMMAND_OK:
            result = self._result()
        if result is None or result.status != pq.ExecStatus.COPY_OUT:
            self._drain()
            assert result is not None
            raise EngineError(result)
        self._copying = True
        try:
            yield from self._chunks()
        except GeneratorExit:
            self.cancel()
            while self._copying and self._read_row() is not None:
                pass
            self._drain()
            raise
        result = self._result()
        self._drain()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            raise EngineError(result)

    def notifications(self, timeout: float | None) -> set[str]:
        """Wait for notifications; return their payloads, those that came with the last statements' results included."""
        found = self._notified()
        if not found and select.select([self._connection.socket], [], [], timeout)[0]:
            self._connection.consume_input()
            found = self._notified()
        return found

    def _notified(self) -> set[str]:
        found: set[str] = set()
        while (notification := self._connection.notifies()) is not None:
            found.add(notification.extra.decode())
        return found

    def cancel(self) -> None:
        """Cancel the running statement."""
        self._connection.get_cancel().cancel()

    def abandon(self) -> None:
        """Cancel the statement that runs, if its client has left before it has ended."""
        if self._connection.transaction_status == pq.TransactionStatus.ACTIVE:
            self.cancel()
            while self._copying and self._read_row() is not None:
                pass
            self._drain()

    def _chunks(self) -> Iterator[Sequence[memoryview]]:
        rows: list[memoryview] = []
        size = 0
        first = True
        while (row := self._read_row()) is not None:
            if first:
                row = row[HEADER_LENGTH:]
                first = False
            if len(row) == 2 and bytes(row) == _TRAILER:
                continue
            if len(row):
                rows.append(row)
                size += len(row)
            if len(rows) >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
                yield rows
                rows, size = [], 0
        if rows:
            yield rows

    def _read_row(self) -> memoryview | None:
        get = self._connection.get_copy_data
        while True:
            count, row = get(1)
            self._copying = count >= 0
            if count > 0:
                return row
            if count < 0:
                return None
            self._wait()

    def _result(self) -> pq.abc.PGresult | None:
        while self._connection.is_busy():
            self._wait()
        return self._connection.get_result()

    def _drain(self) -> None:
        while self._result() is not None:
            pass

    def _wait(self) -> None:
        """Wait for the server, and for the client: what it sends meanwhile may be a wish to cancel."""
        sockets = [self._connection.socket]
        if self.watched is not None:
            sockets.append(self.watched)
        ready = select.select(sockets, [], [])[0]
        if self._connection.socket in ready:
            self._connection.consume_input()
        elif self.watch():
            self.watched = None
            self.was_cancelled = True
            self.cancel()


def _outcome(result: pq.abc.PGresult) -> Outcome:
    rows = []
    for row in range(result.ntuples):
        values = (result.get_value(row, column) for column in range(result.nfields))
        rows.append(tuple(None if value is None else bytes(value).decode() for value in values))
    return Outcome(rows, result.ntuples or result.command_tuples or 0)
