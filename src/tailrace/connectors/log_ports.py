"""The protocol Connector: how the planner and the tasks use a database's log.

Positions are opaque here, see connectors/snapshot_ports.py; so is a LogEnd for all but its connector. `Reached` is an
offset as its connector sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.filters import guard
from tailrace.connectors.base import Chunk
from tailrace.connectors.notifications import INITIAL, SKIPPED, Notice
from tailrace.connectors.offset import Reached
from tailrace.connectors.snapshot_ports import OnDemandSnapshots
from tailrace.connectors.snapshots import Fence
from tailrace.errors import SourceError, TailraceError
from tailrace.model.source import SourceBlock
from tailrace.model.structure import Structure
from tailrace.model.table import TableId, TableSchema


class LogEnd(Protocol):
    """Where a server's log ended when it was queried, with what else the connector read then."""

    @property
    def position(self) -> Any:
        """The end: every transaction before it can be read."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Every transaction whose commit had returned to its client before a time lies before a position of the log.

    `before_us` is by the server's clock, in microseconds since 1970 UTC.
    """

    before_us: int
    position: Any


class Lost(Protocol):
    """Log that a pipeline needs and the server no longer has; as a string, what is lost and why."""

    @property
    def is_foreign(self) -> bool:
        """Whether the slot or the like may belong to another pipeline by now, so that this one must not use it."""

    @property
    def is_trusted(self) -> bool:
        """Whether the configuration allows continuing without what is lost."""

    def error(self) -> TailraceError:
        """The error for a pipeline that needs what is lost, with the remedy."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The result of Connector.watch, the check of the captured tables while a pipeline runs.

    `warnings` go into the offset, for `status`. `late` are tables that the log has got only now, each with the reason
    why it is incomplete.
    """

    warnings: tuple[str, ...] = ()
    late: tuple[tuple[str, str], ...] = ()


class Connector(Protocol):
    """One database. Methods may raise SourceError; a server that went away is waited for, as the retry options say.

    A method that takes a config uses the tables as that config captures them, which signals may change. Only
    `changes`, `fence` and `rows` run on executors, on an instance made of the config alone.

    The defaults suit a source whose log has the changes of all tables and that has nothing to remember of it.
    """

    config: Config
    source: SourceBlock
    source_type: pa.StructType
    notices_without_rows: tuple[Notice, ...] = (Notice(INITIAL, SKIPPED),)
    """The notifications for a first snapshot that reads no rows."""
    notices_at_restart: tuple[Notice, ...] = (Notice(INITIAL, SKIPPED),)
    """The notifications for a start that continues with the log."""
    continues_without_rows: bool = False
    """Whether the log can continue at its end, without a snapshot, when a position is lost."""
    skips_whole_changes: bool = False
    """Whether `skipped.operations` applies to changes as the log has them, and not to the two events of a changed key.

    As in Debezium, whose dispatcher skips nothing where the query of the log does (`supportsOperationFiltering`).
    """

    def __init__(self, config: Config) -> None: ...

    @property
    def snapshots(self) -> OnDemandSnapshots:
        """Its tables, and its signal table."""

    @property
    def identity(self) -> str:
        """What a checkpoint belongs to: another database, or another log of it, has another identity."""

    def text(self, position: Any, /) -> str:
        """A position as the database prints it."""

    def parse(self, text: str) -> Any:
        """The inverse of `text`."""

    def within(self, start: Any, end: Any, limit: int) -> Any:
        """How far a batch from `start` reaches: to `end`, or as far before it as about `limit` bytes of log go.

        It is `end` if the database does not tell how much log lies between two positions.
        """
        return end

    def hold(self, application: str) -> None:
        """Lock the log against other runs, from the first call on. Raises SourceError if another run has the lock."""
        return

    def check_start(self, config: Config) -> None:
        """Checks and warnings that are due once at each start."""
        guard(config, self.snapshots.tables(config))

    def watch(self, config: Config) -> Watched:
        """Compare the tables in the log with the captured ones. Raises SourceError if changes are lost."""
        return Watched()

    def tables(self, config: Config) -> list[TableSchema]:
        """The captured tables with their schemas, in snapshot order."""

    def structures(self, config: Config, reached: Reached) -> Mapping[TableId, Structure]:
        """What the catalogue says of each captured table now, in few queries for all; none where it is not watched.

        The log is read up to `reached`.
        """
        return {}

    def older(self, config: Config, reached: Reached, tables: Collection[TableId]) -> Collection[TableId]:
        """Those of the tables that may have rows which the log from `reached` on does not bring: the lists changed.

        Tables whose structures tell it themselves (`unread`) are left out.
        """
        return tables

    def schema(self, config: Config, table: TableId) -> TableSchema | None:
        """A captured table's schema now, with what rows have in columns that were added; None if it is gone."""
        return next((each for each in self.tables(config) if each.id == table), None)

    def log_end(self) -> LogEnd:
        """Where the log ends now. What is planned up to there is compared by `lost` afterwards, never before."""

    def committed(self, end: Any) -> Committed | None:
        """What the query of this end says of commits; None where the server does not tell, or was not asked this time.

        The clock must have been read before the position. Where another program writes the log that is read, the time
        is that up to which it says it has written, and not the clock.
        """
        return None

    def measures(self, reached: Any | None, end: Any) -> Mapping[str, int]:
        """What this database can measure of its log, for Spark's progress; `reached` is None during a first snapshot.

        `lag_bytes`: log between `reached` and `end`. `log_retained_bytes`: log that the server keeps for the pipeline.
        """
        return {}

    def clock_again(self, end: Any) -> LogEnd:
        """The same end with the server's present time, for a batch that ends after the end that was queried."""
        return cast("LogEnd", end)

    def begins(self, reached: Reached) -> Any:
        """Where the log begins after a snapshot that an earlier process took. Raises OffsetError if that is lost."""

    def lost(
        self, reached: Reached, end: Reached | None = None, *, position: Any = None, is_routine: bool = False
    ) -> Lost | None:
        """What is lost of the log from `reached` on, and up to `end` where that is planned; None if nothing is.

        With a `position` nothing is known of the log before it. With `is_routine` what does not change under an open
        connection is compared over a new one alone.
        """

    def give_up(self, reached: Reached) -> None:
        """Drop what keeps the log on the server, so that a lost position stays lost for every later check."""

    def first(self, end: Any, *, reads_tables: bool) -> tuple[Any, Mapping[str, Any]]:
        """Position and `log` of the first offset, which is stored before the log is prepared.

        The position is None unless the log continues from one that is there already. Raises SourceError if the log is
        another pipeline's.
        """
        return None, {}

    def taken_over(self, end: Any) -> tuple[Any, Mapping[str, Any]] | None:
        """What `first` returns, for a pipeline that continues where Debezium stopped (offset.takeover); None otherwise.

        Raises ConfigError for an offset that is not its own, OffsetError for one from which changes would be lost.
        """
        return None

    def again(self, reached: Reached, end: Any) -> Mapping[str, Any]:
        """`log` of the offset that is stored before the tables are read again."""
        return {}

    def advanced(self, config: Config, reached: Reached, start: Any, to: Any, end: Any) -> Mapping[str, Any]:
        """`log` of an offset at position `to`, when the batch from `start` to there is planned.

        `end` is None between the batches of a first snapshot.
        """
        return {}

    def check_first(self, start: Reached, end: Reached, *, is_retry: bool) -> None:
        """Check what must hold before the first batch prepares the log. `is_retry`: this process has done so before."""
        return

    def open_log(self, config: Config, start: Reached, end: Reached) -> None:
        """Prepare the log for a pipeline that reads no tables first. Raises OffsetError for a gap."""
        self.snapshots.open_at_log(config, start, end).close()

    def ranges(self, config: Config, start: Reached, begin: Any, end: Reached, *, is_whole: bool) -> Sequence[Any]:
        """The log from `begin` to the position of `end` for one task or, unless it `is_whole`, several.

        Each has all changes of some tables, in their order, and can be pickled. The parts are the same at every
        call, as a sink identifies a part by its place.
        """

    def execute(self, statement: str) -> None:
        """Run a user-supplied statement."""
        raise SourceError("this source runs no statements", remedy="remove heartbeat.action.query")

    def changes(self, config: Config, wanted: Any) -> Iterator[Chunk]:
        """The changes of a range, the same ones whenever it is read. Raises DecodeError."""

    def fence(self, text: str) -> Fence:
        """The fence of a chunk from its text."""

    def rows(self, config: Config, split: Any) -> Iterator[Chunk]:
        """The rows of a split of a snapshot. Raises DecodeError."""

    def close(self) -> None:
        """Close connections."""
        return
