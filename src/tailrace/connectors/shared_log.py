"""The part of Connector for logs that the server keeps for all readers: the position is only in the offset."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

from tailrace.config import Config
from tailrace.connectors.debezium_offset import findings
from tailrace.connectors.finding import Finding, within_limit
from tailrace.connectors.log_ports import Connector, Lost
from tailrace.connectors.lost_log_remedies import NEW_CHECKPOINT
from tailrace.connectors.offset import Reached, fields, position_of, readable
from tailrace.connectors.ports import Admin, Begun, Position
from tailrace.errors import OffsetError, SourceError
from tailrace.override import override

BEGINS = "begins"
"""In `log` of an offset: where the log begins that the first snapshot does not have."""


@dataclass(frozen=True)
class LogGap(Lost):
    """Implements Lost: there is nothing on the server to take over or to continue without."""

    cause: OffsetError
    is_foreign = False
    is_trusted = False

    @override
    def __str__(self) -> str:
        return self.cause.what

    @override
    def error(self) -> OffsetError:
        return self.cause


class SharedLogConnector(Connector):
    """Implements what a Connector has to remember of such a log."""

    continues_without_rows = True

    def __init__(self, config: Config) -> None:
        self.config = config

    @override
    def begins(self, reached: Reached) -> Any:
        """The offset says it, as nothing on the server does."""
        lost = self.lost(reached)
        if lost is not None:
            raise lost.error()
        return self.parse(reached.log[BEGINS])

    @override
    def first(self, end: Any, *, reads_tables: bool) -> tuple[Any, Mapping[str, Any]]:
        """The position at which the tables are read is chosen here."""
        return None, {BEGINS: self.text(end.position)}

    @override
    def again(self, reached: Reached, end: Any) -> Mapping[str, Any]:
        return self.first(end, reads_tables=True)[1]

    @override
    def open_log(self, config: Config, start: Reached, end: Reached) -> None:
        """There is nothing to prepare."""
        lost = self.lost(end)
        if lost is not None:
            raise lost.error()

    @override
    def give_up(self, reached: Reached) -> None:
        """Nothing keeps the log."""

    def needed(self, reached: Reached, position: Any) -> Any:
        """The position from which `lost` checks the log; None before the first snapshot."""
        begins = reached.log.get(BEGINS)
        return position or reached.position or (None if begins is None else self.parse(begins))


class SharedLogAdmin(Admin):
    """Implements what commands ask of a pipeline that has nothing on the server."""

    connector: ClassVar[type[Connector]]

    def __init__(self, config: Config) -> None:
        self.config = config

    def server_findings(self) -> list[Finding]:
        """What is checked of the server. Raises SourceError if it cannot be queried."""
        raise NotImplementedError

    @override
    def checks(self, begun: Begun | None = None) -> list[Finding]:
        return within_limit(self.config, lambda: self._checked(begun))

    def _checked(self, begun: Begun | None) -> list[Finding]:
        try:
            checked = self.server_findings()
        except SourceError as error:
            return [Finding("connection", False, str(error.what), error.remedy)]
        lost = None if begun is None else self.resumable(begun)
        has_begun = begun is not None and begun[0] is not None
        checked += findings(self.config, has_begun, self.taken_position)
        return checked if lost is None else [*checked, lost]

    def taken_position(self) -> str | None:
        """The position of Debezium's that a first start continues from, as text. Raises ConfigError, OffsetError."""
        return None

    @override
    def position(self, offset: Mapping[str, Any]) -> Position | None:
        text = position_of(offset)
        with readable():
            return None if text is None else self.connector(self.config).parse(text)

    @override
    def resumable(self, begun: Begun) -> Finding | None:
        """What the connector says is lost since the older of the offsets."""
        offset = next((offset for offset in begun if offset is not None), None)
        if offset is None:
            return None
        with closing(self.connector(self.config)) as connector:
            try:
                kind = connector.source.connector
                lost = connector.lost(Reached(**fields(offset, kind, connector.identity, connector.parse)))
                error = None if lost is None else lost.error()
            except (OffsetError, SourceError) as wrong:
                error = wrong
        return None if error is None else Finding("position", False, error.what, error.remedy)

    @override
    def drop(self, begun: Begun | None, *, force: bool = False) -> list[str]:
        return [f"a pipeline leaves nothing on the server; to read the tables again, {NEW_CHECKPOINT}"]
