"""Protocols of a table format for replicas: the rules of replicas rely on nothing else.

A table is one version of what is stored. Methods that write make a newer version, which the same object has then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from tailrace.sinks.replica.fold import Net
from tailrace.sinks.replica.reshape import Reshaping

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


class LakeError(Exception):
    """A table cannot be read or written, and neither the storage nor a catalog that is away is the reason.

    `remedy`: None where nothing better than the usual one is known.
    """

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what)
        self.remedy = remedy


class LostRaceError(LakeError):
    """Another process has written the table meanwhile: nothing is written, and it may be tried on the newer version."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a commit says: its record, and an application with a number that ascends (None: it brings no changes)."""

    app: str | None
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a table: the version that it made, the text of its mark, when it was made (ms since 1970).

    `writer` and `operation` are for people. `keeps_rows`: whatever it did, the rows are the same. `restores`: an older
    version was put back.
    """

    version: int
    text: str | None
    at: int
    operation: str
    writer: str
    keeps_rows: bool
    restores: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a column of whole numbers, both inclusive; None: there is none. A null is within them."""

    column: str
    least: int | None
    most: int | None


class Table(Protocol):
    """A table of a replica. Methods raise LakeError, and OSError for a storage or catalog that does not answer."""

    @property
    def uri(self) -> str:
        """Where it lies, for people."""

    @property
    def id(self) -> str:
        """What tells it from another table in its place."""

    @property
    def version(self) -> int:
        """The number of its version; it ascends."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns in Arrow types."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""

    def count(self) -> int:
        """How many rows it has, without reading them."""

    def scan(self, bounds: Bounds | None = None) -> pa.RecordBatchReader:
        """Its rows as a stream; types are those of `schema` but for views of strings and bytes.

        With bounds files without such rows are left out where their statistics tell it: others may come as well.
        """

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """The types that columns of these have once they are stored."""

    def commits(self) -> Iterator[Commit]:
        """The commits that are still listed, the newest first."""

    def written(self, app: str) -> int | None:
        """The number of the newest mark of an application, None for one that has written nothing."""

    def set_property(self, name: str, text: str, mark: Mark) -> None:
        """Set a property, which changes no rows."""

    def append(self, rows: pa.Table, mark: Mark) -> None:
        """Add rows of its columns in one commit."""

    def overwrite(self, rows: Rows, mark: Mark, *, reshapes: bool) -> None:
        """Replace all rows in one commit; and its columns by those of the rows, if it `reshapes`."""

    def reshape(self, shape: Reshaping, mark: Mark) -> None:
        """Rename and drop columns in one commit."""

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Add columns, null in the rows that are there."""

    def widen(self, schema: pa.Schema, mark: Mark) -> bool:
        """Give columns wider types without rewriting a row; False where the format cannot, and nothing is done."""

    def merge(self, net: Net, rows: pa.Table, mark: Mark) -> int:
        """Apply a net effect by its key in one commit: `rows` are its rows in the types of the table's columns.

        A row that keeps values is changed, and not inserted if the table lacks it. Returns how many rows were put.
        """

    def succeed(self, key: Sequence[str], end: str, ends: pa.Table, versions: pa.Table, mark: Mark) -> None:
        """End the current rows of keys and add others in one commit; those are current that are null in `end`.

        `ends` has the columns of the key and `end`, `versions` those of the table, in its types.
        """

    def merge_bag(self, net: Net, added: pa.Table, mark: Mark) -> None:
        """Take rows away that equal the images of a net effect without a key, and add others, in one commit."""

    def maintenance(self) -> Maintenance:
        """Its files, to join them and to remove old ones."""


class Maintenance(Protocol):
    """The files of a table. Methods raise what those of Table raise."""

    @property
    def live(self) -> Mapping[str, int]:
        """The files of the newest version, with their bytes."""

    def others(self) -> Mapping[str, int]:
        """Other data files that lie where the table's do, with their bytes."""

    def small(self, size: int) -> int:
        """How many files of less than so many bytes there are that can be joined with another."""

    @property
    def is_crowded(self) -> bool:
        """Whether there are more replaced versions than the format can list in each commit."""

    @property
    def kept_seconds(self) -> int | None:
        """For how long replaced versions are kept by the table's properties, None where these do not say it."""

    def keep(self, seconds: int, mark: Mark) -> None:
        """Store in the table's properties for how long replaced versions are kept."""

    def join(self, size: int, mark: Mark) -> None:
        """Join small files to files of about so many bytes."""

    def old(self) -> Sequence[str]:
        """The data files that no version needs which is to be kept, by the table's properties."""

    def remove(self, mark: Mark) -> None:
        """Remove versions that need not be kept, with their files."""


class Lake(Protocol):
    """A place with tables, by their names. Methods raise what those of Table raise."""

    def below(self, folder: str) -> Lake:
        """The lake in a folder of this one."""

    def names(self) -> frozenset[str]:
        """The names of what is there; not all need be tables."""

    def uri(self, name: str) -> str:
        """Where a table lies, for people."""

    def open(self, name: str) -> Table | None:
        """A table as it is now, None where there is none."""

    def create(self, name: str, rows: Rows, mark: Mark, kept_seconds: int | None) -> None:
        """Make a table of some rows in one commit; `kept_seconds`: None leaves its maintenance to others."""

    def remove(self, name: str) -> None:
        """Remove a table with all its files, if there is one."""

    def look(self, seconds: float) -> None:
        """Raise if it does not answer within so many seconds."""
