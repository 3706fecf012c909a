"""The protocols by which the algorithms of snapshot/ use a database (decision 26).

Positions are opaque here (`Any` in signatures): only their connector interprets them, others compare them. A
method that takes a config reads the tables as that config captures them, which signals may change. The defaults suit a
source whose log has the changes of all tables, and which has no signal table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Key
from tailrace.connectors.notifications import Notice
from tailrace.connectors.offset import Reached
from tailrace.connectors.signal import Mark, Signal
from tailrace.connectors.snapshots import PagingKey, SnapshotPlace, Unread
from tailrace.errors import SourceError
from tailrace.model.table import TableId, TableSchema


class Failures(Protocol):
    """Classifies errors of a database and its driver. The defaults suit a source that is not reached over a network."""

    driver_error: type[Exception]
    """The base class of what the driver raises."""

    def is_transient(self, error: BaseException) -> bool:
        """Whether the server is starting, restarting or out of reach, so that another try is worth it."""
        return False

    def is_refused(self, error: BaseException) -> bool:
        """Whether a wrong configuration has this transient error, too: it passes only for who was let in before."""
        return False

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection failed, rather than the request."""
        return False

    def is_passing(self, error: BaseException) -> bool:
        """Whether the same request may succeed later, although nobody changes it, a table or a privilege."""
        return False

    def line(self, error: BaseException) -> str:
        """The error in one line."""
        return str(error).partition("\n")[0]

    @contextmanager
    def translated(self, doing: str) -> Iterator[None]:
        """Convert errors of the driver within the block to SourceErrors that name the operation `doing`."""
        try:
            yield
        except self.driver_error as error:
            raise SourceError(f"{doing}: {self.line(error)}") from error


class SnapshotHandle(Protocol):
    """One state of the database that several tasks can read, kept readable until it is closed."""

    @property
    def position(self) -> Any:
        """The snapshot's position in the log: the log from there on has every change that the rows lack."""

    def is_valid(self, config: Config) -> bool:
        """Whether tasks can still read under it. Raises SourceError."""

    def close(self) -> None:
        """Release the snapshot."""


class SnapshotSplit(Protocol):
    """What one task reads of a snapshot. It is picklable, and otherwise opaque: only its connector reads it."""

    @property
    def bytes(self) -> int:
        """Its approximate size."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tables that it reads, or that it reports to be empty."""

    @property
    def moment(self) -> object:
        """The snapshot that it reads; its string form is a unique name."""

    @property
    def resume_point(self) -> SnapshotPlace | None:
        """Where its table continues when everything before this split is read (`left` aside); None: it begins."""

    def announced(self, notices: tuple[Notice, ...]) -> SnapshotSplit:
        """The split with more notices before its first row."""


class Cuts(Protocol):
    """Cuts tables into splits, over one connection to the database. snapshot/splits.py decides what is asked for.

    Splits are of the class TableSplit, or of one that has its fields.
    """

    is_chunked: bool = False
    """Whether notices call each split a chunk, also that of a table that is not cut."""
    marks_tables: bool = True
    """Whether the first row of the snapshot and those at the edges of each table have a marker, beside the last row."""
    lists_tables: bool = True
    """Whether notices list the tables of the whole snapshot."""

    def tables(self) -> list[TableId]:
        """The captured tables, in snapshot order."""

    def to_read(self) -> list[TableId]:
        """Those that a first snapshot reads, in the order in which it reads them."""

    def in_order(self, tables: list[TableId]) -> list[TableId]:
        """Tables that a signal asks for, in the order in which they are read."""
        return tables

    def prepare(self, tables: Sequence[TableId]) -> None:
        """Called once with all tables that are read, before one of them is cut."""
        return

    def splits(self, table: TableId, resumed: SnapshotPlace | None) -> Sequence[Any] | None:
        """The splits of a table in order, or of what it has behind the place; None for a table that is not read.

        A table without rows has a split that tells so, or none and is given to `without_rows`.
        """

    def has_rows(self, split: Any) -> bool:
        """Whether a split has rows."""

    def count(self, split: Any) -> int | None:
        """The rows of the whole table of a split, for notices; None where they do not have that number."""
        return None

    def without_rows(self, tables: Sequence[TableId], notices: tuple[Notice, ...]) -> Sequence[Any]:
        """What tells that tables have no rows, and sends notices that no split of a table could take."""
        return []

    def unit(self, table: TableId) -> str:
        """What of the snapshot the table belongs to: each unit has a first and a last row, and notices of its own."""
        return ""

    def units(self) -> Sequence[str]:
        """All units, in the order in which they are read."""
        return ("",)


class Snapshots(Protocol):
    """Reads whole tables as of one snapshot."""

    failures: Failures

    def tables(self, config: Config) -> list[TableId]:
        """The captured tables."""

    def sizes(self, config: Config) -> list[tuple[str, int]]:
        """The tables that a first snapshot reads, in order, with their sizes in bytes (0: not known)."""

    def open_at_log(self, config: Config, start: Reached, end: Reached) -> SnapshotHandle:
        """Prepare the log for the batch from `start` to `end`, and open a snapshot where that log begins."""

    def open(self, config: Config, application: str, *, once: bool = False) -> SnapshotHandle:
        """Open a snapshot at an exact position of the log. With `once` a failure is not retried."""
        return self.open_now(config)

    def open_now(self, config: Config) -> SnapshotHandle:
        """Open a snapshot of the current state for a bounded read, without preparing a log."""

    def cut(
        self,
        config: Config,
        handle: Any,
        wanted: Mapping[str, str | None] | None,
        place: SnapshotPlace | None,
        plan: Callable[[Any], list[Any]],
    ) -> Sequence[Any]:
        """The SnapshotSplits that `plan` makes of Cuts under the snapshot.

        `plan` is called again, with other Cuts, if the connection is lost. The Cuts know what is read: `wanted` are the
        tables that a signal asks for, each with its SELECT or condition if it has one, `place` is where a first
        snapshot resumes. Raises SnapshotGone if the handle can no longer be read under.
        """

    def verified(self, config: Config, handle: Any, place: SnapshotPlace) -> SnapshotPlace:
        """The place, with its first table begun again if that was emptied, rewritten or given another key since."""
        return place


class Page(Protocol):
    """A table that is read in chunks by a key."""

    @property
    def key_text(self) -> str:
        """The key's columns with their types. If the text has changed, a stored key no longer applies."""

    def check(self) -> None:
        """Raise an error if the condition of the rows is no single expression."""

    def estimate(self) -> int:
        """The server's estimate of the number of rows."""

    def maximum(self) -> PagingKey | None:
        """The last key, None without rows."""

    def after(
        self, last: PagingKey | None, maximum: PagingKey, size: int
    ) -> tuple[pa.StructArray, PagingKey | None, int]:
        """Images of about `size` next rows up to `maximum`; the key of the last one; their number."""


class ChunkTable(Protocol):
    """A table whose columns and key are not altered while a chunk of it is read."""

    @property
    def schema(self) -> TableSchema:
        """Its schema at this moment."""

    def page(self, condition: str | None, surrogate: str | None) -> Page:
        """The table by the key of the signal or of the events. Raises Unread."""

    def paged_by(self, surrogate: str | None) -> tuple[str, ...]:
        """The columns of a page: the signal's, or the key. Raises Unread for a table without."""
        names = (surrogate,) if surrogate else self.schema.key
        if not names:
            raise Unread("it has no key; name a surrogate-key in the signal", "NO_PRIMARY_KEY")
        return names

    def fence(self) -> str:
        """The Fence of what is read from here on, as text; called before the rows are read."""

    def rows_of(self, keys: Sequence[Key]) -> tuple[pa.StructArray, pa.StructArray]:
        """Images of the rows that exist for some keys, and of the keys without a row. Raises Unread."""

    def end(self) -> Any:
        """The position up to which the log has what the rows may lack; called after the rows are read."""

    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row, of those that old images in the log contain."""
        return self.schema.identity

    def source(self, count: int, end: Any) -> pa.StructArray:
        """The `source` column of so many rows of a chunk that reaches to `end`."""


class ChunkSession(Protocol):
    """A connection that reads chunks."""

    def window(self, table: TableId) -> AbstractContextManager[None]:
        """Write the marks that open and close the window of a chunk of the table, if the configuration wants them."""
        return nullcontext()

    def table(self, table: TableId, name: str, condition: str | None) -> AbstractContextManager[ChunkTable]:
        """The table, if it is present. Raises Unread, SourceError for what the server refuses within the block."""


class OnDemandSnapshots(Snapshots, Protocol):
    """What signals need in addition: a signal table in the database, chunks, tables added and removed."""

    faulty_status: str = "UNKNOWN_SCHEMA"
    """The status in notifications of a table that the lists exclude, as the reference engine has it."""
    takes_surrogate_keys: bool = True
    """Whether a signal may name a column to read a table by."""

    def new_signals(self, handled: tuple[Mark, ...]) -> tuple[list[Signal], tuple[Mark, ...]]:
        """The signals in the signal table that are not handled yet, in order, and the marks of all.

        Raises NotSignals (signal_source.py) for a table of another form, SourceError for one that cannot be read.
        """
        return [], ()

    def chunks(self, config: Config) -> AbstractContextManager[ChunkSession | None]:
        """A session for one chunk; None while a change that was read from the log may not be visible yet."""

    def shown(self, part: str) -> str:
        """A part of a chunk's key as notifications show it."""
        return part

    def existing(self, tables: Sequence[TableId]) -> list[TableId]:
        """Those of the tables that exist, captured or not."""

    def include(self, config: Config, tables: Sequence[TableId]) -> None:
        """Add these tables to the log."""
        return

    def exclude(self, config: Config, tables: Sequence[TableId]) -> None:
        """Remove these tables from the log."""
        return

    def unseen_until(self) -> Any:
        """A token for the changes of tables just included that the log may lack; None if there can be none."""
        return None

    def has_ended(self, token: Any) -> bool:
        """Whether all changes that a token stands for are in the log by now."""
        return True
