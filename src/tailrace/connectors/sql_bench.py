"""Makes and changes the tables of `verify` in SQL databases; the probes of locks, deadlocks and ended sessions.

A database adds its sessions, its spelling, how a table is captured, and what only it is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tailrace.config import Config
from tailrace.connectors.probe import (
    BUSY,
    KEY,
    KEYED,
    LARGE,
    NONE,
    NOTE,
    QUIET,
    ROWS,
    TYPES,
    VALUE,
    Answer,
    Bench,
    Change,
    Delete,
    Expectation,
    Insert,
    KeyCase,
    Move,
    NotAskedError,
    Probe,
    TypeCase,
    Update,
)
from tailrace.override import override

BLOCKED_TABLES = ("vblocked", "vother")
"""The tables of rows that the probes here make."""
_WAIT_S = 2  # guessed


class Session(Protocol):
    """A connection. Each statement is committed, but for those between `begin` and `rollback`."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, none for one without a result."""

    def together(self, *statements: str) -> None:
        """Run statements in one transaction, where the database allows it."""

    def begin(self) -> None:
        """Begin a transaction that is rolled back."""

    def rollback(self) -> None:
        """Roll it back."""

    def close(self) -> None:
        """Close it; an open transaction is rolled back."""


class SqlBench(Bench):
    """Implements Bench over sessions."""

    row_type: str
    """The types of KEY, VALUE and NOTE, as CREATE TABLE has them behind the names of the columns."""
    add_column = "ADD"
    series: str
    """INSERT INTO {table} of KEY by a series from {first} to {last}."""
    lock_codes: tuple[str, ...]
    deadlock_codes: tuple[str, ...]
    killed_codes: tuple[str, ...]

    def __init__(self, config: Config, schema: str) -> None:
        self.config, self.schema = config, schema
        self._main: Session | None = None
        self.refused: Mapping[str, str] = {}
        self._refused: dict[str, str] = {}

    def session(self) -> Session:
        """A new session."""
        raise NotImplementedError

    def table(self, name: str) -> str:
        """A table of the schema in SQL."""
        raise NotImplementedError

    def column(self, name: str) -> str:
        """A column in SQL."""
        return f'"{name}"'

    def text(self, value: str) -> str:
        """A literal."""
        return "'" + value.replace("'", "''") + "'"

    def key(self, case: KeyCase, key: str) -> str:
        """A literal of a key."""
        return self.text(key)

    def captured(self, *tables: str) -> None:
        """Have the changes of tables captured from now on, and return when they are."""
        raise NotImplementedError

    def limit_locks(self, session: Session, seconds: int) -> None:
        """Have statements of a session wait for a lock so long at most."""
        raise NotImplementedError

    def number(self, session: Session) -> str:
        """What `kill` calls a session."""
        raise NotImplementedError

    def kill(self, number: str) -> str:
        """The statement that ends a session."""
        raise NotImplementedError

    def readers_wait(self) -> bool:
        """Whether readers wait for a row that another transaction has written, as the server's settings say."""
        raise NotImplementedError

    @property
    def main(self) -> Session:
        """The session of most statements."""
        if self._main is None:
            self._main = self.session()
        return self._main

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        for statement in statements:
            self.main.rows(statement)

    @override
    def private(self) -> set[str]:
        names = ("database.hostname", "database.user", "database.password", "database.dbname", "database.names")
        given = [str(self.config.given.get(name, "")) for name in names]
        own = set() if self.schema.lower() == "tailrace_verify" else {self.schema}
        return {each.strip() for value in given for each in (value, *value.split(","))} | own

    @override
    def close(self) -> None:
        if self._main is not None:
            self._main.close()
            self._main = None

    @override
    def prepare(self) -> None:
        self.refused = self._refused = {}
        self.run(self.create_schema())
        made = [ROWS, LARGE, QUIET, BUSY]
        for table in made:
            self.create(table)
        made += [self._create_types(group, cases) for group, cases in self.types.items()]
        keyed = [self._create_keys(f"{KEYED}{place}", case) for place, case in enumerate(self.keys)]
        made += [table for table in keyed if table is not None]
        self.captured(*made)

    def create_schema(self) -> str:
        """The statement that makes the schema."""
        return f"CREATE SCHEMA {self.column(self.schema)}"

    def create(self, table: str) -> None:
        """Make a table of rows."""
        kinds = self.row_type.split(",")
        columns = ", ".join(f"{self.column(name)} {kind}" for name, kind in zip((KEY, VALUE, NOTE), kinds, strict=True))
        self.run(f"CREATE TABLE {self.table(table)} ({columns})")

    def _create_types(self, group: str, cases: Sequence[TypeCase]) -> str:
        table = f"{TYPES}_{group}"
        name = self.table(table)
        self.run(
            f"CREATE TABLE {name} ({self.column(KEY)} {self.row_type.split(',')[0]})", f"INSERT INTO {name} VALUES (1)"
        )
        for case in cases:
            column = self.column(case.name)
            try:
                self.run(f"ALTER TABLE {name} {self.add_column} {column} {case.declared}")
                self.run(f"UPDATE {name} SET {column} = {case.literal}")
            except self.failures.driver_error as error:
                self._refused[case.name] = self.code(error)
        return table

    def _create_keys(self, table: str, case: KeyCase) -> str | None:
        """Make a table of keys; None where the server refuses its type."""
        name = self.table(table)
        try:
            self.run(f"CREATE TABLE {name} ({self.column(KEY)} {case.declared} NOT NULL PRIMARY KEY)")
            self.run(*(f"INSERT INTO {name} VALUES ({self.key(case, key)})" for key in case.keys))
        except self.failures.driver_error as error:
            self._refused[case.name] = self.code(error)
            return None
        return table

    @override
    def properties(self, *tables: str) -> Mapping[str, str]:
        return {
            **self.config.given,
            "table.include.list": ",".join(f"{self.schema}\\.{table}" for table in tables),
            "decimal.handling.mode": "string",
            "binary.handling.mode": "hex",
        }

    @override
    def image(self, written: Any) -> dict[str, Any] | None:
        return None if written is None else dict(written)

    @override
    def release(self, *tables: str) -> None:
        """A pipeline makes nothing."""

    @override
    def commit(self, *changes: Change) -> None:
        self.main.together(*map(self.statement, changes))

    def statement(self, change: Change) -> str:
        """A change as SQL."""
        table, key = self.table(change.table), self.column(KEY)
        if isinstance(change, Insert):
            note = "NULL" if change.note is None else self.text(change.note)
            value = "NULL" if change.value is None else str(change.value)
            return f"INSERT INTO {table} VALUES ({change.key}, {value}, {note})"
        where = f"WHERE {key} = {change.key}"
        if isinstance(change, Delete):
            return f"DELETE FROM {table} {where}"
        if isinstance(change, Move):
            return f"UPDATE {table} SET {key} = {change.new} {where}"
        assert isinstance(change, Update)
        return f"UPDATE {table} SET {self.column(VALUE)} = {change.value} {where}"

    @override
    def fill(self, table: str, first: int, count: int) -> None:
        into = f"INSERT INTO {self.table(table)} ({self.column(KEY)})"
        self.run(f"{into} {self.series.format(first=first, last=first + count - 1, count=count)}")

    @override
    def copy_types(self, group: str) -> None:
        name = self.table(f"{TYPES}_{group}")
        columns = ", ".join(self.column(case.name) for case in self.types[group] if case.name not in self.refused)
        self.run(f"INSERT INTO {name} ({self.column(KEY)}, {columns}) SELECT 2, {columns} FROM {name}")

    @override
    def probes(self) -> Sequence[Probe]:
        """Locks and sessions."""
        waits = self.readers_wait
        end = (Expectation("code", self.killed_codes, _OTHER_CODE), Expectation("is_retried", (True,), _UNRETRIED))
        cut = "What does the driver say when the server ends its session?"
        deadlock = "What does the server say to the victim of a deadlock?"
        dead = (
            Expectation("codes", (list(self.deadlock_codes),), _OTHER_CODE),
            Expectation("is_passing", (True,), _UNRETRIED),
        )
        lock = (
            "Does a reader wait for a row that another transaction has written, and what does it say when it gives up?"
        )
        meaning = "Whether snapshots wait for writers is as the server's settings say."
        settled = (Expectation("is_as_set", (True,), _OTHERWISE_LOCKED),)
        return [
            Probe("drivers.killed", cut, "A pipeline connects again.", self._killed, end),
            Probe("blocking.reader", lock, meaning, lambda: self._reader(waits()), settled),
            Probe("blocking.deadlock", deadlock, "A pipeline that is the victim tries again.", self._deadlock, dead),
        ]

    def _killed(self) -> Answer:
        victim = self.session()
        try:
            try:
                self.run(self.kill(self.number(victim)))
            except self.failures.driver_error as error:
                raise NotAskedError(f"a session cannot be ended by this user (code {self.code(error)})") from error
            code, cut = self._error_of(lambda: victim.rows(self.asking))
        finally:
            victim.close()
        return Answer({"code": code, "is_retried": cut is not None and self.failures.is_transient(cut)})

    asking = "SELECT 1"
    """A statement that asks nothing."""

    def _error_of(self, act: Callable[[], object]) -> tuple[str, BaseException | None]:
        try:
            act()
        except Exception as error:
            return self.code(error), error
        return NONE, None

    def _reader(self, is_set: bool) -> Answer:
        """A reader beside an open transaction."""
        self._blocked()
        writer, reader = self.session(), self.session()
        try:
            writer.begin()
            writer.rows(self.statement(Update(BLOCKED_TABLES[0], 1, 2)))
            self.limit_locks(reader, _WAIT_S)
            begin = time.monotonic()
            code, _ = self._error_of(lambda: reader.rows(f"SELECT * FROM {self.table(BLOCKED_TABLES[0])}"))
            seconds = time.monotonic() - begin
            writer.rollback()
        finally:
            writer.close()
            reader.close()
        facts = {"reader_waits": code != NONE, "is_as_set": (code in self.lock_codes) == is_set, "code": code}
        return Answer(facts, {"seconds": round(seconds, 1), "settings_say": is_set})

    def _blocked(self) -> None:
        """Make the tables, each with a row, unless they are there."""
        try:
            self.run(*(f"SELECT 1 FROM {self.table(table)}" for table in BLOCKED_TABLES))
        except self.failures.driver_error:
            for table in BLOCKED_TABLES:
                self.create(table)
                self.run(self.statement(Insert(table, 1, 1)))

    def _deadlock(self) -> Answer:
        """Two transactions that change a row of each of two tables, in opposite orders: some servers lock tables."""
        self._blocked()
        sessions = [self.session(), self.session()]
        errors: list[BaseException] = []

        def second(session: Session, table: str) -> None:
            try:
                session.rows(self.statement(Update(table, 1, 3)))
            except Exception as error:  # the result
                errors.append(error)

        try:
            for session, table in zip(sessions, BLOCKED_TABLES, strict=True):
                session.begin()
                session.rows(self.statement(Update(table, 1, 3)))
            pairs = zip(sessions, reversed(BLOCKED_TABLES), strict=True)
            threads = [threading.Thread(target=second, args=pair, daemon=True) for pair in pairs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(self.deadline_s)
        finally:
            for session in sessions:
                session.close()
        passing = bool(errors) and all(map(self.failures.is_passing, errors))
        return Answer({"codes": sorted(map(self.code, errors)), "is_passing": passing})


_OTHER_CODE = "The server has another code for this than the connector knows: please send the report."
_UNRETRIED = "A pipeline would end at this error, instead of trying again: please send the report."
_OTHERWISE_LOCKED = "Snapshots wait for writers, or do not, in another way than the server's settings say."
