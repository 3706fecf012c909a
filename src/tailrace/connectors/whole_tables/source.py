"""What a database says of its tables and its log, for a connector that is given tables whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.whole_tables.tables import WholeTable
from tailrace.model.source import SourceBlock
from tailrace.model.table import TableId


class WholeSource(Protocol):
    """One database, as of any position that its log still has. Methods raise SourceError."""

    config: Config
    source: SourceBlock

    @property
    def identity(self) -> str:
        """What identifies the source; a checkpoint belongs to one."""

    def parse(self, text: str) -> Any:
        """The position of a text that a position gave."""

    def log_begin(self) -> Any:
        """The position from which the log is there."""

    def position_now(self) -> Any:
        """The position at which the log ends now."""

    def whole(self, position: Any) -> Mapping[TableId, WholeTable]:
        """All tables as of a position, captured or not, in any order."""

    def source_of(self, position: Any, count: int) -> pa.StructArray:
        """The `source` column of so many rows that were read at a position."""
