"""What an operator asks of a server with change tables outside a running pipeline: the part that all have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from tailrace.config import Config
from tailrace.connectors.change_tables.connector import ChangeTableConnector
from tailrace.connectors.change_tables.dialect import Server
from tailrace.connectors.change_tables.position import Reading
from tailrace.connectors.change_tables.source_now import ChangeTableNow
from tailrace.connectors.finding import Finding
from tailrace.connectors.offset import position_of
from tailrace.connectors.ports import Begun, SourceNow
from tailrace.connectors.shared_log import SharedLogAdmin
from tailrace.errors import SourceError
from tailrace.model.table import TableId


class ChangeTableAdmin(SharedLogAdmin):
    """Implements Admin. Each method makes a connection of its own."""

    connector: ClassVar[type[ChangeTableConnector]]

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._dialect = self.connector.dialect

    def checks(self, begun: Begun | None = None) -> list[Finding]:
        """See Admin.checks."""
        dialect = self._dialect
        try:
            with (
                dialect.failures.translated("the server cannot be asked"),
                closing(dialect.connect(self.config, "tailrace check", "")) as connection,
            ):
                found = list(self.found(connection))
        except SourceError as error:
            return [Finding("connection", False, str(error.what), error.remedy)]
        lost = None if begun is None else self.resumable(begun)
        return found if lost is None else [*found, lost]

    def found(self, connection: Any) -> Iterator[Finding]:
        """What is checked over a connection. May raise the driver's errors."""
        raise NotImplementedError

    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        """See Admin.unreadable."""
        names = ", ".join(map(str, tables))
        return Finding("select", False, f"the user may not read {names}", "GRANT SELECT ON <table> TO <user>")

    def position(self, offset: Mapping[str, Any]) -> Reading | None:
        """See Admin.position."""
        found = position_of(offset)
        return None if found is None else Reading.from_text(found)

    @contextmanager
    def now(self) -> Iterator[SourceNow]:
        """See Admin.now."""
        dialect = self._dialect
        with (
            dialect.failures.translated("the source cannot be read"),
            closing(dialect.connect(self.config, "tailrace reconcile", "")) as one,
        ):
            yield ChangeTableNow(dialect, one, self.config)

    @contextmanager
    def server(self) -> Iterator[Server]:
        """A server that is asked, for the time of a block."""
        server = self._dialect.server(self.config, "tailrace admin")
        try:
            yield server
        finally:
            server.close()
