"""Implements the port Admin for PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME, DATABASE_HOSTNAME
from tailrace.connectors.debezium_offset import Entry, findings
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin, Begun, Position, SourceState, TableOverview
from tailrace.connectors.postgres import takeover
from tailrace.connectors.postgres.admin import checks, operations, resumable, source_now
from tailrace.connectors.postgres.ddl import event_triggers
from tailrace.connectors.postgres.options import DATABASE_USER, PUBLICATION_AUTOCREATE_MODE, PUBLICATION_NAME, SLOT_NAME
from tailrace.connectors.postgres.position import format_lsn, parse_lsn
from tailrace.connectors.postgres.server import publication, published
from tailrace.connectors.postgres.snapshot.selects import grants
from tailrace.model.table import TableId


class PostgresAdmin(Admin):
    """Implements Admin. Each method makes a connection of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def checks(self, begun: Begun | None = None) -> list[Finding]:
        """See Admin.checks."""
        has_begun = begun is not None and begun[0] is not None
        found = findings(self._config, has_begun, lambda: format_lsn(takeover.last_sent(self._config) or 0))
        return [*checks.check(self._config, begun), *found]

    def overview(self) -> list[TableOverview]:
        """See Admin.overview."""
        return operations.tables(self._config)

    def comments(self) -> dict[TableId, str]:
        """See Admin.comments."""
        return operations.comments(self._config)

    def unreadable(self, tables: Sequence[TableId]) -> Finding:
        """See Admin.unreadable."""
        statements = grants(self._config, list(tables))
        what = f"{self._config[DATABASE_USER]} may not read the table, so its rows would never come"
        return Finding("select", False, what, "; ".join(statements))

    def position(self, offset: Mapping[str, Any]) -> Position | None:
        """See Admin.position."""
        return operations.position(offset)

    def state(self, pipeline: str | None = None) -> SourceState:
        """See Admin.state."""
        return operations.state(self._config, pipeline)

    def problems(self, *, begun: bool) -> list[Finding]:
        """See Admin.problems."""
        return published.problems(self._config, begun=begun)

    def as_debezium(self, position: Position) -> list[Entry]:
        """See Admin.as_debezium."""
        return takeover.entries_of(self._config, parse_lsn(position.to_text()))

    def resumable(self, begun: Begun) -> Finding | None:
        """See Admin.resumable."""
        return resumable.obstacle(self._config, *begun)

    def extend(self, tables: Sequence[TableId]) -> list[str]:
        """See Admin.extend: tables are added to the publication."""
        return publication.publish(self._config, tables)

    def unextendable(self, tables: Sequence[TableId]) -> list[Finding]:
        """See Admin.unextendable."""
        return publication.obstacles(self._config, tables)

    def permitted(self) -> dict[str, str]:
        """See Admin.permitted."""
        return {} if publication.by_hand(self._config) is None else {"publication.autocreate.mode": "disabled"}

    def preparation(self, tables: Sequence[TableId]) -> list[str]:
        """See Admin.preparation: the publication, and the rights to read."""
        hidden = [table.id for table in self.overview() if table.id in tables and not table.is_readable]
        return [*(publication.by_hand(self._config) or []), *(f"{grant};" for grant in grants(self._config, hidden))]

    def extended(self) -> str:
        """See Admin.extended."""
        return f"the publication {self._config[PUBLICATION_NAME]}"

    def owned(self) -> str:
        """See Admin.owned."""
        config = self._config
        place = f"{config[DATABASE_DBNAME]} at {config[DATABASE_HOSTNAME]}"
        is_kept = config[PUBLICATION_AUTOCREATE_MODE] == "disabled"
        publication = "" if is_kept else f" and publication {config[PUBLICATION_NAME]}"
        return f"slot {config[SLOT_NAME]}{publication} of database {place}"

    def drop(self, begun: Begun | None, *, force: bool = False) -> list[str]:
        """See Admin.drop."""
        return operations.drop(self._config, begun, force=force)

    def drop_at_stop(self, begun: Begun) -> None:
        """See Admin.drop_at_stop."""
        operations.drop_at_stop(self._config, begun)

    def install_ddl(self) -> str:
        """See Admin.install_ddl."""
        event_triggers.install(self._config)
        return "DDL triggers tailrace_ddl_end and tailrace_ddl_drop made, with the schema tailrace_ddl"

    def now(self) -> AbstractContextManager[source_now.PostgresNow]:
        """See Admin.now."""
        return source_now.present(self._config)
