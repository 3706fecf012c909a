"""The folder as the planner and the tasks use it: its log, and its tables as of a line."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tailrace.config import Config
from tailrace.connectors.base import Chunk
from tailrace.connectors.whole_tables.connector import LogRange, WholeTablesConnector
from tailrace.connectors.whole_tables.tables import WholeTable
from tailrace.model.table import TableId
from tailrace_folder import rows
from tailrace_folder.log import Line, Log
from tailrace_folder.options import FOLDER_PATH


class FolderConnector(WholeTablesConnector):
    """Implements Connector. A position is a Line."""

    source, source_type = rows.SOURCE, rows.SOURCE_TYPE
    parse = staticmethod(Line.from_text)

    @property
    def identity(self) -> str:
        return self.config[FOLDER_PATH]

    def log_begin(self) -> Line:
        return Log.of(self.config).begin

    def position_now(self) -> Line:
        return Log.of(self.config).end()

    def within(self, start: Line, end: Line, limit: int) -> Line:
        """At least one line."""
        last, size = start, 0
        for line, _, length in Log.of(self.config).lines(start):
            size += length
            if size > limit and last != start:
                break
            last = line
        return min(end, last)

    def whole(self, position: Line) -> dict[TableId, WholeTable]:
        return {id_: rows.whole(each) for id_, each in Log.of(self.config).tables(position).items()}

    def source_of(self, position: Line, count: int) -> pa.StructArray:
        return pa.array([{"place": position.to_text()}] * count, rows.SOURCE_TYPE)

    def changes(self, config: Config, wanted: LogRange) -> Iterator[Chunk]:
        yield rows.changes(config, wanted.start, wanted.position)
