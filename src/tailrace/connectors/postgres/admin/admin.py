"""Implements the port Admin for PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME, DATABASE_HOSTNAME
from tailrace.connectors.debezium_offset import OffsetEntry, findings
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin, Begun, Position, SourceState, TableOverview
from tailrace.connectors.postgres import takeover
from tailrace.connectors.postgres.admin import checks, operations, problems, resumable, source_now
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import DATABASE_USER, PUBLICATION_AUTOCREATE_MODE, PUBLICATION_NAME, SLOT_NAME
from tailrace.connectors.postgres.position import format_lsn, parse_lsn
from tailrace.connectors.postgres.server import publication
from tailrace.connectors.postgres.snapshot.selects import grants
from tailrace.model.table import TableId
from tailrace.override import override


class PostgresAdmin(Admin):
    """Implements Admin. Each method makes a connection of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config

    @override
    def checks(self, begun: Begun | None = None) -> list[Finding]:
        has_begun = begun is not None and begun[0] is not None
        of_offset = findings(self._config, has_begun, lambda: format_lsn(takeover.last_sent(self._config) or 0))
        return [*checks.check(self._config, begun), *of_offset]

    @override
    def overview(self) -> list[TableOverview]:
        return operations.tables(self._config)

    @override
    def comments(self) -> dict[TableId, str]:
        return operations.comments(self._config)

    @override
    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        statements = grants(self._config, list(tables))
        what = f"{self._config[DATABASE_USER]} may not read the table, so its rows would never come"
        return Finding("select", False, what, "; ".join(statements))

    @override
    def position(self, offset: Mapping[str, Any]) -> Position | None:
        return operations.position(offset)

    @override
    def state(self, pipeline: str | None = None) -> SourceState:
        return operations.state(self._config, pipeline)

    @override
    def problems(self, *, begun: bool) -> list[Finding]:
        return problems.problems(self._config, begun=begun)

    @override
    def as_debezium(self, position: Position) -> list[OffsetEntry]:
        return takeover.entries_of(self._config, parse_lsn(position.to_text()))

    @override
    def resumable(self, begun: Begun) -> Finding | None:
        return resumable.obstacle(self._config, *begun)

    @override
    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """Tables are added to the publication."""
        return publication.publish(self._config, tables)

    @override
    def unextendable(self, tables: Sequence[TableId]) -> list[Finding]:
        return publication.obstacles(self._config, tables)

    @override
    def permitted(self) -> dict[str, str]:
        return {} if publication.by_hand(self._config) is None else {"publication.autocreate.mode": "disabled"}

    @override
    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        """The publication, and the rights to read."""
        hidden = [table.id for table in self.overview() if table.id in tables and not table.is_readable]
        return [*(publication.by_hand(self._config) or []), *(f"{grant};" for grant in grants(self._config, hidden))]

    @override
    def extended(self) -> str:
        return f"the publication {self._config[PUBLICATION_NAME]}"

    @override
    def owned(self) -> str:
        config = self._config
        place = f"{config[DATABASE_DBNAME]} at {config[DATABASE_HOSTNAME]}"
        is_kept = config[PUBLICATION_AUTOCREATE_MODE] == "disabled"
        publication = "" if is_kept else f" and publication {config[PUBLICATION_NAME]}"
        return f"slot {config[SLOT_NAME]}{publication} of database {place}"

    @override
    def drop(self, begun: Begun | None, *, force: bool = False) -> list[str]:
        return operations.drop(self._config, begun, force=force)

    @override
    def drop_at_stop(self, begun: Begun) -> None:
        operations.drop_at_stop(self._config, begun)

    @override
    def install_ddl(self) -> str:
        event_triggers.install(self._config)
        return "DDL triggers tailrace_ddl_end and tailrace_ddl_drop made, with the schema tailrace_ddl"

    @override
    def now(self) -> AbstractContextManager[source_now.PostgresNow]:
        return source_now.present(self._config)
