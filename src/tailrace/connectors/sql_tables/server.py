"""Runs statements on one server over a connection that is kept, and reconnects after a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tailrace.config import Config
from tailrace.connectors.retry import retrying
from tailrace.connectors.snapshot_ports import Failures
from tailrace.connectors.sql_tables.tables import Connection

T = TypeVar("T")
C = TypeVar("C", bound=Connection)


class ReconnectingServer(Generic[C]):
    """Implements Server (sql_tables/tables.py). `connect` opens a connection, and may raise the driver's errors."""

    def __init__(self, config: Config, failures: Failures, connect: Callable[[], C]) -> None:
        self.config = config
        self._failures = failures
        self._connect = connect
        self._connection: C | None = None
        self._has_answered = False

    def ask(self, question: Callable[[C], T], doing: str = "the server cannot be queried") -> T:
        """The answer to a question over the connection, which is opened again where it was lost. Raises SourceError."""

        def attempt() -> T:
            with self._failures.translated(doing):
                try:
                    answer = question(self.connection)
                    self._has_answered = True
                    return answer
                except self._failures.driver_error as error:
                    if self._failures.is_lost(error):
                        self.close()
                    raise

        return retrying(self.config, attempt, self._is_worth_a_try)

    def _is_worth_a_try(self, error: BaseException) -> bool:
        """What says that the configuration is wrong may pass as well, but not before the server has answered once."""
        failures = self._failures
        return failures.is_transient(error) and (self._has_answered or not failures.is_refused(error))

    @property
    def connection(self) -> C:
        """The connection, which is opened when it is first asked for."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
