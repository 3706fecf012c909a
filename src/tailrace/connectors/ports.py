"""The protocols by which commands and pipelines use a database: its package, its administration, its current rows.

`connectors/registry.py` finds the package of a connector; `connectors/log_ports.py` has the protocol for the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.option import Option
from tailrace.config.options.databases import DATABASE_HOSTNAME, DATABASE_PORT
from tailrace.config.resolve import Check
from tailrace.connectors.base import Key
from tailrace.connectors.debezium_offset import OffsetEntry
from tailrace.connectors.finding import Finding
from tailrace.connectors.log_ports import Connector
from tailrace.connectors.probe import Bench
from tailrace.connectors.snapshots import PagingKey
from tailrace.errors import ConfigError, SourceError
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableId, TableSchema

Begun = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""The offsets of the newest batches of a checkpoint, committed and planned; None where there is none."""


class Position(Protocol):
    """A position in a log, a value. Only its connector knows what it is made of; others compare, order and print it."""

    def __lt__(self, other: Any, /) -> bool:
        """Whether this position is before another one of the same log."""

    def to_text(self) -> str:
        """The position as the database prints it."""

    def distance(self, other: Any, /) -> int | None:
        """Bytes of log from `other` to here, negative if `other` is later; None if the database has no such measure."""
        return None


@dataclass(frozen=True)
class TableOverview:
    """A table that can be captured; `rows` is the server's estimate, `has_key` whether it has a primary key.

    `is_partitioned`: it consists of other tables, and each of them has `is_partition`. `is_readable`: the configured
    user may read its rows. `remark` is printed beside the table in a new pipeline file.
    """

    id: TableId
    rows: int
    bytes: int
    has_key: bool
    is_partitioned: bool = False
    is_partition: bool = False
    is_readable: bool = True
    remark: str = ""

    @property
    def name(self) -> str:
        """The name as filters see it."""
        return str(self.id)

    @property
    def written(self) -> str:
        """The name as signals take it."""
        return self.id.written

    @property
    def spellings(self) -> tuple[str, ...]:
        """All forms in which a person may write the name: each part with quotes or without."""
        return tuple(".".join(parts) for parts in product(*((part, _quoted(part)) for part in self.id.parts)))


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


@dataclass(frozen=True)
class Detail:
    """A line that only this database has in the status of a pipeline; `is_fine` is False for what needs attention."""

    label: str
    text: str
    is_fine: bool = True


@dataclass(frozen=True)
class SourceState:
    """The state of a server's log and of a pipeline that reads it.

    `idle` says why the pipeline seems not to run, None if it runs or if the server cannot know. `reads_snapshot`: the
    pipeline's first snapshot is being read. `details` are for people, `fields` the same for `--json`.
    """

    log_end: Position
    idle: str | None = None
    reads_snapshot: bool = False
    details: tuple[Detail, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewSource:
    """The source of a new pipeline, as a URL describes it.

    `name` is a name for the pipeline, `database` what the URL points at. `properties` are complete; a secret is a
    reference to the environment variable that `variables` names. `secrets` are those that the URL contains, `prompts`
    the texts of prompts for the others.
    """

    name: str
    database: str
    properties: Mapping[str, str]
    secrets: Mapping[str, str]
    variables: Mapping[str, str]
    prompts: Mapping[str, str]


class SourceNow(Protocol):
    """The captured tables as of one moment, for comparing. The log up to `horizon` has every change that it shows."""

    @property
    def horizon(self) -> Position:
        """A position at or after the last change that is seen here."""

    def tables(self) -> list[TableId]:
        """The captured tables, in snapshot order."""

    def followed(self) -> list[TableId]:
        """The captured tables that a replica should have, in snapshot order."""

    def table(self, table: TableId) -> TableSchema:
        """A table's schema at this moment; ask for it before its rows. Raises SourceError if the table is gone."""

    def obstacle(self, table: TableSchema, key: Sequence[str]) -> str | None:
        """Why a table cannot be compared with a replica of this key, None if it can."""
        return None

    def left_out(self, table: TableSchema) -> Sequence[str]:
        """The captured columns that are in no event, as their types have no mapping."""
        return ()

    def excluded(self, table: TableSchema) -> Sequence[str]:
        """The columns that the configuration leaves out."""
        return ()

    def unlogged(self, table: TableSchema) -> Sequence[str]:
        """The columns that the log does not have, so that a replica has no values of them, or old ones."""
        return ()

    def rows(self, table: TableSchema) -> Iterator[pa.Table]:
        """All rows in native types, a few MB at a time. Raises SourceError, DecodeError."""

    def page(
        self, table: TableSchema, after: PagingKey | None, until: PagingKey | None, size: int
    ) -> tuple[pa.Table, PagingKey | None]:
        """About `size` rows in native types, in the order of the table's key: those behind a key and up to another.

        None: from the first, to the last row. With the key of the last row that is given, None without a row. Only
        tables whose key is of whole numbers are read so, as files have the same order; the default suits a source that
        has none.
        """
        raise SourceError("the source has no tables that are read in parts", where=str(table.id))

    def texts(self, keys: pa.Table) -> list[Key]:
        """Keys in native types as texts for a query of their rows."""

    def understood(self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]) -> Iterator[pa.Table]:
        """The keys as the source reads them, in their order; null if a text is no value of its column."""

    def rows_of(
        self, table: TableSchema, names: Sequence[str], wanted: Sequence[Key]
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """The rows of some keys in native types, and a text that identifies each row's version."""


class Admin(Protocol):
    """What commands need of one source, outside a running pipeline. Every method may raise SourceError.

    The defaults suit a source whose log has the changes of all tables, whatever is captured.
    """

    def checks(self, begun: Begun | None = None) -> list[Finding]:
        """Every problem of the server for this configuration; changes nothing and raises nothing that it can list.

        `begun` is None if the checkpoint is not known.
        """

    def overview(self) -> list[TableOverview]:
        """The database's own tables, captured or not, by name."""

    def comments(self) -> dict[TableId, str]:
        """The comments of tables, captured or not, where the database has such."""
        return {}

    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        """Why the rows of these tables cannot be read, and how to permit it; for tables that are not readable."""
        what = f"{', '.join(map(str, tables))} cannot be read"
        return Finding("privileges", False, what, "give the pipeline's user the right to read them")

    def position(self, offset: Mapping[str, Any]) -> Position | None:
        """The position in the log that an offset has; None if it has none yet. Needs no connection."""

    def state(self, pipeline: str | None = None) -> SourceState:
        """The end of the log and the server's state of the pipeline; `pipeline` is the name in its offsets."""

    def problems(self, *, begun: bool) -> list[Finding]:
        """What keeps changes of captured tables from the pipeline at this moment."""
        return []

    def as_debezium(self, position: Position) -> list[OffsetEntry]:
        """A position as the offsets of the Debezium connector that continues there. Raises ConfigError without one."""
        raise ConfigError("Debezium has no such connector", remedy="read the tables again with the other program")

    def resumable(self, begun: Begun) -> Finding | None:
        """What keeps a stopped pipeline from resuming: an error, or a warning if it resumes with a gap."""

    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """Add tables to the log; returns the names of those for which something had to be changed."""
        return []

    def unextendable(self, tables: Sequence[TableId]) -> list[Finding]:
        """What would make `extend` fail for these tables, as far as that can be seen before anything is changed."""
        return []

    def permitted(self) -> dict[str, str]:
        """The properties under which a new pipeline starts with the privileges that the user has."""
        return {}

    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        """Statements and commands for an administrator that let the log have the changes of tables; none if it has."""
        return []

    def extended(self) -> str:
        """What `extend` adds tables to, in words."""
        return "the log"

    def owned(self) -> str | None:
        """What `drop` removes and from which database, in words; None if a pipeline leaves nothing on the server."""
        return None

    def drop(self, begun: Begun | None, *, force: bool = False) -> list[str]:
        """Remove what the pipeline created on the server; a line for each object.

        Unless forced, what the checkpoint did not create is an error.
        """

    def drop_at_stop(self, begun: Begun) -> None:
        """Remove what the package's `stop_property` says is to be removed when the pipeline stops."""
        return

    def install_ddl(self) -> str:
        """Install what reports schema changes; a line that says what was installed. Raises ConfigError if needless."""
        raise ConfigError("the log has schema changes as it is", remedy="leave --ddl out")

    def now(self) -> AbstractContextManager[SourceNow]:
        """The captured tables as of now."""


class ConnectorPackage(Protocol):
    """One database: its properties, its connector and its administration."""

    include_list: str = "table.include.list"
    """The property that lists the captured tables."""
    exclude_list: str = "table.exclude.list"
    """The property that lists the tables that are not captured."""
    stop_property: Option[bool] | None = None
    """The flag that has objects on the server removed when a pipeline stops; a query cannot observe its own stop."""
    replica_properties: Mapping[str, str] = MappingProxyType({})
    """Properties that a replica needs, unless the configuration says otherwise."""

    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        """The checked configuration. Raises ConfigError naming every problem, those that `checks` find among them."""
        ...

    def with_columns(self, properties: Mapping[str, str], row: pa.StructType) -> Mapping[str, str]:
        """The properties of a query of shape `table` whose images are of that type.

        The default suits a database that knows the columns of its tables.
        """
        return properties

    def address(self, config: Config) -> str:
        """The server's host and port, for names of datasets."""
        return f"{config[DATABASE_HOSTNAME]}:{config[DATABASE_PORT]}"

    def source_block(self, config: Config) -> SourceBlock:
        """The `source` block of its events."""
        return self.connector(config).source

    def connector(self, config: Config) -> Connector:
        """What plans and reads. It connects on first use."""
        ...

    def admin(self, config: Config) -> Admin:
        """The Admin for commands. It connects on first use."""
        ...

    def new_source(self, url: str) -> NewSource:
        """The source that a URL describes. Raises ConfigError, never with a secret."""
        ...

    def bench(self, config: Config, schema: str) -> Bench:
        """What `verify` makes and asks in a schema of its own. Raises ConfigError without one."""
        raise ConfigError("this connector has no probes", remedy="use `tailrace check`")

    def capturing(self, tables: Sequence[TableOverview]) -> dict[str, str | list[str]]:
        """The properties of a new pipeline that captures these tables and no others."""
        return {self.include_list: [re.escape(table.id.filtered) for table in tables]}
