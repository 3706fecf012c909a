"""The modes of a replica's tables: the newest rows, every version of a row, or a log of changes; and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa

Kind = Literal["latest", "history", "changes"]
Metadata = Literal["commit_time", "position", "op", "transaction", "sequence", "valid_from", "valid_to", "unchanged"]
LATEST: Final = "latest"
HISTORY: Final = "history"
CHANGES: Final = "changes"

STAMP = pa.timestamp("us", "UTC")
# The columns that a mode adds to the source's: their usual names by what they hold.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    LATEST: {},
    HISTORY: {
        "valid_from": "valid_from",
        "valid_to": "valid_to",
        "op": "_op",
        "commit_time": "_commit_time",
        "transaction": "_transaction",
        "sequence": "_sequence",
    },
    CHANGES: {
        "op": "_op",
        "commit_time": "_commit_time",
        "transaction": "_transaction",
        "sequence": "_sequence",
        "unchanged": "_unchanged",
    },
}
_TYPES = {"valid_from": STAMP, "valid_to": STAMP, "commit_time": STAMP, "unchanged": pa.list_(pa.string())}


@dataclass(frozen=True)
class Mode:
    """What the tables keep; `columns` are the names of those that the mode adds, by what they hold."""

    kind: Kind = "latest"
    columns: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(kind: Kind, names: Mapping[str, str]) -> Mode:
        """A mode, whose columns have the usual names where none are given."""
        return Mode(kind, {**COLUMNS[kind], **names} if COLUMNS[kind] else {})

    @property
    def is_latest(self) -> bool:
        """Whether the tables are kept equal to their sources."""
        return self.kind == LATEST

    @property
    def fields(self) -> list[pa.Field]:
        """The columns that the mode adds."""
        return [pa.field(name, _TYPES.get(what, pa.string())) for what, name in self.columns.items()]

    @property
    def end(self) -> str | None:
        """The column that is null in current rows alone; None where all rows are."""
        return self.columns.get("valid_to")

    def schema(self, fields: pa.Schema) -> pa.Schema:
        """The columns of a table whose source has some fields."""
        return pa.schema([*fields, *self.fields])
