"""Transactions of a session: SQL Server's nested counts and savepoints over PostgreSQL's transactions.

In PostgreSQL a failed statement ends its transaction; in SQL Server the transaction goes on. So every statement inside
of a transaction is preceded by a savepoint, to which an error goes back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..backend import Backend, EngineError

_GUARD = "guard"
LEVELS = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE")


class TableLocks:
    """Which sessions hold a table lock that readers must wait for: PostgreSQL's readers would not."""

    def __init__(self) -> None:
        self._held: dict[int, set[int]] = {}
        self._lock = threading.Lock()

    def add(self, object_id: int, session: int) -> None:
        """Note that a session holds a table exclusively."""
        with self._lock:
            self._held.setdefault(object_id, set()).add(session)

    def remove(self, object_id: int, session: int) -> None:
        """Note that it does no longer."""
        with self._lock:
            holders = self._held.get(object_id, set())
            holders.discard(session)
            if not holders:
                self._held.pop(object_id, None)

    def held_by_others(self, object_id: int, session: int) -> bool:
        """Whether another session holds the table."""
        return bool(self._held.get(object_id, set()) - {session}) if self._held else False


class Transactions:
    """The state of one session's transaction."""

    def __init__(self, backend: Backend, locks: TableLocks, session: int, committed: Callable[[], None]) -> None:
        self._backend = backend
        self._locks = locks
        self._session = session
        self._committed = committed
        self.count = 0
        self.number = 0
        self.isolation = "READ COMMITTED"
        self.changed_definitions = False
        self._started = False
        self._guarded = False
        self._in_statement = False
        self._savepoints: list[str] = []
        self._tables: list[tuple[int, int]] = []

    @property
    def open(self) -> bool:
        """Whether a transaction is open."""
        return self.count > 0

    @property
    def has_savepoints(self) -> bool:
        """Whether the transaction has savepoints."""
        return bool(self._savepoints)

    def begin(self) -> bool:
        """BEGIN TRAN; True if a transaction begins by it."""
        self.count += 1
        if self.count == 1:
            self.number += 1
        return self.count == 1

    def commit(self) -> bool:
        """COMMIT; True if the transaction ends by it."""
        if self.count > 1:
            self.count -= 1
            return False
        self._end("COMMIT")
        return True

    def rollback(self) -> None:
        """ROLLBACK of the whole transaction."""
        self._end("ROLLBACK")

    def save(self, name: str) -> None:
        """SAVE TRAN."""
        self._start()
        self._savepoints.append(name.lower())
        self._backend.run(self._release() + f'SAVEPOINT "save_{len(self._savepoints)}"')

    def rollback_to(self, name: str) -> bool:
        """ROLLBACK to a savepoint; False if there is none of this name."""
        if name.lower() not in self._savepoints:
            return False
        place = len(self._savepoints) - 1 - self._savepoints[::-1].index(name.lower())
        self._backend.run(f'ROLLBACK TO SAVEPOINT "save_{place + 1}"')
        self._guarded = False
        del self._savepoints[place + 1 :]
        for object_id, depth in [held for held in self._tables if held[1] > place]:
            self._locks.remove(object_id, self._session)
            self._tables.remove((object_id, depth))
        return True

    def before_statement(self) -> str:
        """What has to run before a statement of an open transaction."""
        if not self.open:
            return ""
        self._start()
        text = self._release() + f"SAVEPOINT {_GUARD};"
        self._guarded = self._in_statement = True
        return text

    def statement_done(self) -> None:
        """The statement has succeeded: an error of the next one does not undo it."""
        self._in_statement = False

    def statement_failed(self, ends_transaction: bool) -> None:
        """Go back to where the statement began, or end the transaction."""
        if self.open and ends_transaction:
            self.rollback()
        elif self.open and self._in_statement:
            self._backend.run(f"ROLLBACK TO SAVEPOINT {_GUARD}")
        elif self._backend.in_transaction and not self.open:
            self._backend.run("ROLLBACK")
        self._in_statement = False

    def lock_table(self, object_id: int, physical: str, mode: str) -> None:
        """Lock a table until the transaction ends, or goes back before this."""
        self._start()
        name = f"table_{len(self._tables)}"
        self._backend.run(f"{self._release()}SAVEPOINT {name}")
        try:
            self._backend.run(f"LOCK TABLE {physical} IN {mode} MODE")
        except EngineError:
            self._backend.run(f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}")
            raise
        self._backend.run(f"RELEASE SAVEPOINT {name}")
        if mode == "EXCLUSIVE":
            self._tables.append((object_id, len(self._savepoints)))
            self._locks.add(object_id, self._session)

    def wait_for(self, tables: list[tuple[int, str]]) -> None:
        """Wait until no other session holds these tables exclusively."""
        for object_id, physical in tables:
            if not self._locks.held_by_others(object_id, self._session):
                continue
            lock = f"LOCK TABLE {physical} IN ROW SHARE MODE;"
            if self.open:
                self._start()
                self._backend.run("SAVEPOINT wait")
                try:
                    self._backend.run(lock)
                finally:
                    self._backend.run("ROLLBACK TO SAVEPOINT wait; RELEASE SAVEPOINT wait")
            else:
                self._backend.run(f"BEGIN; {lock} ROLLBACK")

    def wait_for_writers(self, physical: str) -> None:
        """Wait until no other transaction has changed a table, as a reader without versions of rows does."""
        lock = f"LOCK TABLE {physical} IN SHARE MODE;"
        if not self.open:
            self._backend.run(f"BEGIN; {lock} ROLLBACK")
            return
        self._start()
        self._backend.run(f"{self._release()}SAVEPOINT writers")
        try:
            self._backend.run(lock)
        finally:
            self._backend.run("ROLLBACK TO SAVEPOINT writers; RELEASE SAVEPOINT writers")

    def _start(self) -> None:
        if not self._started:
            level = "REPEATABLE READ" if self.isolation == "SNAPSHOT" else "READ COMMITTED"
            self._backend.run(f"BEGIN ISOLATION LEVEL {level}")
            self._started = True

    def _release(self) -> str:
        if not self._guarded:
            return ""
        self._guarded = False
        return f"RELEASE SAVEPOINT {_GUARD};"

    def _end(self, word: str) -> None:
        changed, self.changed_definitions = self.changed_definitions, False
        started, self._started = self._started, False
        self.count = 0
        self._guarded = False
        self._savepoints.clear()
        try:
            if started:
                self._backend.run(word)
        finally:
            for object_id, _ in self._tables:
                self._locks.remove(object_id, self._session)
            self._tables.clear()
            if changed:
                self._committed()
