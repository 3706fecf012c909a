"""The terms of `tailrace verify`: a probe asks a server something, and says what is expected and what it means.

What a probe finds is `found`, which is compared with expectations and with other servers' reports, and `about`: times,
versions and settings, which differ from server to server. Neither has names, addresses or values of the server's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.snapshot_ports import Failures

NONE = "none"
"""The code of no error."""
KEY, VALUE, NOTE = "id", "v", "note"
"""The columns of the tables of rows: two integers, the first of them the key, and a text that may be null."""

ROWS, LARGE, QUIET, BUSY, TYPES, KEYED = "vrows", "vlarge", "vquiet", "vbusy", "vtypes", "vkeys"
"""The tables that are made in every database; TYPES has a group behind it, KEYED a number."""


@dataclass(frozen=True)
class Expectation:
    """What a probe should find under the name `fact`: one of `wanted` or, with `most`, a number up to it.

    `otherwise` is what something else means for the person who runs the command.
    """

    fact: str
    wanted: tuple[Any, ...] = ()
    otherwise: str = ""
    most: float | None = None

    def holds(self, facts: Mapping[str, Any]) -> bool:
        """Whether it does."""
        value = facts.get(self.fact, ...)
        if self.most is not None:
            return isinstance(value, int | float) and value <= self.most
        return value in self.wanted

    @property
    def shown(self) -> Any:
        """As a report has it."""
        if self.most is not None:
            return f"at most {self.most:g}"
        return self.wanted[0] if len(self.wanted) == 1 else {"any of": list(self.wanted)}


@dataclass(frozen=True)
class Answer:
    """What a probe found: behaviour in `found`, times, versions and settings in `about`. Both are ready for JSON."""

    found: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


class NotAskedError(Exception):
    """A probe that this server does not allow, or that has no meaning for it; the text says why, without names."""


@dataclass(frozen=True)
class Probe:
    """One question to a server; `name` is `<subject>.<what>`.

    Without expectations its answer is not known beforehand. `meaning` is what it is asked for, and what an answer as
    expected means. `writes` if it needs the command's own tables, or does what an administrator would notice.
    """

    name: str
    question: str
    meaning: str
    ask: Callable[[], Answer]
    expected: tuple[Expectation, ...] = ()
    writes: bool = True


@dataclass(frozen=True)
class ProbeObject:
    """One object of the command's own: `drop` removes it if it is there, `command` is what a person would run."""

    command: str
    drop: Callable[[], None]


@dataclass(frozen=True)
class Insert:
    """A new row."""

    table: str
    key: int
    value: int | None = None
    note: str | None = None


@dataclass(frozen=True)
class Update:
    """A new value of the row with that key."""

    table: str
    key: int
    value: int


@dataclass(frozen=True)
class Move:
    """A new key of the row with that key."""

    table: str
    key: int
    new: int


@dataclass(frozen=True)
class Delete:
    """The row with that key goes."""

    table: str
    key: int


Change = Insert | Update | Move | Delete


@dataclass(frozen=True)
class TypeCase:
    """A column of the table of types: how it is declared, the value in the database's language, and in an event.

    `logged` is what the log's event has where that is not the same. `name` says what is tried.
    """

    name: str
    declared: str
    literal: Any
    event: Any
    logged: Any = ...

    @property
    def in_log(self) -> Any:
        """What an event of the log has."""
        return self.event if self.logged is ... else self.logged


@dataclass(frozen=True)
class KeyCase:
    """A table with such a key: `name` says what is tried, `declared` is its type, or its collation without types."""

    name: str
    declared: str
    keys: Sequence[Any]


@dataclass(frozen=True)
class Wrong:
    """A connection that must fail: by these properties, with one of these codes. `is_retried`: a pipeline waits."""

    name: str
    properties: Mapping[str, str]
    codes: tuple[str, ...]
    is_retried: bool


class Bench(Protocol):
    """One database, for `verify`: makes and changes tables in a schema of the command's own, and drops them.

    Methods raise the driver's errors. Nothing is made before `prepare`.
    """

    config: Config
    """The connection, with the properties given."""
    schema: str
    failures: Failures
    types: Mapping[str, Sequence[TypeCase]]
    """By the name of their group, which has a table of its own: where one group fails, another may not."""
    keys: Sequence[KeyCase]
    refused: Mapping[str, str]
    """The code with which the server refused a type, by the name of its case; known once `prepare` is done."""
    own_tables: Sequence[str]
    """The tables of probes of this database alone."""
    has_moves: bool
    """Whether a key can be changed."""
    moves_as: Sequence[str]
    """The operations of the events of a changed key."""
    deadline_s: float
    """How long a change may take until it can be read, before it is given up."""

    @property
    def tables(self) -> list[str]:
        """All tables that may have been made."""
        keyed = [f"{KEYED}{place}" for place in range(len(self.keys))]
        return [ROWS, LARGE, QUIET, BUSY, *(f"{TYPES}_{group}" for group in self.types), *keyed, *self.own_tables]

    def private(self) -> Iterable[str]:
        """Words that no report may have: addresses, names, secrets. Needs no connection."""

    def drivers(self) -> Mapping[str, str]:
        """The client libraries and their versions."""

    def code(self, error: BaseException) -> str:
        """Number and class of an error, in the database's terms, without its text; the class's name without them."""

    def connect(self, config: Config) -> None:
        """Open a connection by these properties, ask something, and close it."""

    def wrong(self) -> Sequence[Wrong]:
        """Connections that must fail: of a user that there is not, to a closed port, to a database there is not."""

    def obstacle(self) -> Finding | None:
        """What keeps all that writes from being tried, None if nothing does."""

    def exists(self) -> bool:
        """Whether there is a schema of the command's name."""

    def prepare(self) -> None:
        """Make the schema, the tables of rows (KEY, VALUE, NOTE), of types and of keys, and have them captured.

        A table of types has a row with the key 1, a table of keys has the rows of its case. What the server refuses of
        their declarations is in `refused`.
        """

    def commit(self, *changes: Change) -> None:
        """Make changes in one transaction."""

    def fill(self, table: str, first: int, count: int) -> None:
        """Insert so many rows into a table of rows, by ascending keys, in one transaction."""

    def properties(self, *tables: str) -> Mapping[str, str]:
        """The properties of a pipeline that captures these tables, with the connection."""

    def signalled(self, table: str) -> str:
        """A table's name as signals take it."""

    def release(self, *tables: str) -> None:
        """Drop what a pipeline over these tables has made on the server."""

    def image(self, written: Any) -> dict[str, Any] | None:
        """A row image of an event by column."""

    def copy_types(self, group: str) -> None:
        """Add the row 2 to the table of a group, with the values of row 1."""

    def probes(self) -> Sequence[Probe]:
        """What is asked of this database alone."""

    def undo(self) -> Sequence[ProbeObject]:
        """All that the command may have made, in the order in which it is dropped."""

    def close(self) -> None:
        """Close connections."""
