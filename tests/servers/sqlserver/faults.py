"""Errors that tests have the double report: at a log-in, or in place of a statement."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .tsql.errors import SqlError

# From this severity on the server ends the connection (Microsoft: "Database Engine error severities").
_FATAL = 20


@dataclass
class Fault:
    """Errors of one answer, which a log-in or each statement that matches gets so many times."""

    errors: tuple[SqlError, ...]
    statement: re.Pattern[str] | None
    database: str | None
    times: int

    @property
    def is_fatal(self) -> bool:
        """Whether the connection ends with it."""
        return any(each.severity >= _FATAL for each in self.errors)


class Faults:
    """The errors that wait to be reported. `reported` counts them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Fault] = []
        self.reported = 0

    @contextmanager
    def logins(self, *errors: SqlError, database: str | None = None, times: int = 1_000_000) -> Iterator[None]:
        """Refuse log-ins, or those to a database, with all of these errors."""
        with self._while(Fault(errors, None, database, times)):
            yield

    @contextmanager
    def statements(self, pattern: str, *errors: SqlError, times: int = 1) -> Iterator[None]:
        """Answer statements that a regular expression matches with these errors, and do not run them."""
        with self._while(Fault(errors, re.compile(pattern, re.IGNORECASE | re.DOTALL), None, times)):
            yield

    def of_login(self, database: str) -> Fault | None:
        """What a log-in to a database gets."""
        return self._next(
            lambda each: each.statement is None and each.database in (None, database) and not _is_system(database)
        )

    def of_statement(self, text: str) -> Fault | None:
        """What a statement gets."""
        return self._next(lambda each: each.statement is not None and each.statement.search(text) is not None)

    @contextmanager
    def _while(self, fault: Fault) -> Iterator[None]:
        with self._lock:
            self._waiting.append(fault)
        try:
            yield
        finally:
            with self._lock:
                self._waiting = [each for each in self._waiting if each is not fault]

    def _next(self, matches: object) -> Fault | None:
        assert callable(matches)
        with self._lock:
            found = next((each for each in self._waiting if each.times > 0 and matches(each)), None)
            if found is not None:
                found.times -= 1
                self.reported += 1
            return found


def _is_system(database: str) -> bool:
    return database.lower() in ("master", "msdb", "tempdb", "model")
