"""Opens snapshots where the log of change tables begins, or at the present moment."""

from __future__ import annotations

import uuid
from dataclasses import replace

from tailrace.config import Config
from tailrace.connectors.change_tables.dialect import Dialect
from tailrace.connectors.change_tables.moment import Moment
from tailrace.connectors.change_tables.position import LsnPosition
from tailrace.connectors.offset import Reached
from tailrace.connectors.shared_log import BEGINS
from tailrace.connectors.sql_tables.snapshots import Handle, SqlSnapshots
from tailrace.connectors.sql_tables.tables import Connection
from tailrace.override import override


class ChangeTableSnapshots(SqlSnapshots):
    """Implements OnDemandSnapshots."""

    dialect: Dialect

    @override
    def open_at_log(self, config: Config, start: Reached, end: Reached) -> Handle:
        """The log begins where the offset says."""
        begins = LsnPosition.from_text(end.log[BEGINS])
        return Handle(self.server.ask(lambda connection: self._at(connection, begins)), tells_structures=True)

    @override
    def open_now(self, config: Config) -> Handle:
        return Handle(replace(self.server.ask(lambda connection: self.moment(connection, config)), last=()))

    @override
    def moment(self, connection: Connection, config: Config) -> Moment:
        """With the last change that was captured in each database."""
        end = self.dialect.log_end(connection, config)
        moment, catalog = self._at(connection, end), self.dialect.catalog(connection, config)
        last = []
        for database, lsn in end.lsns:
            change = self.dialect.last_change(connection, catalog.instances(database), lsn)
            if change is not None:
                last.append((database, change))
        return replace(moment, last=tuple(last))

    def _at(self, connection: Connection, position: LsnPosition) -> Moment:
        return Moment(position, self.dialect.now_us(connection), uuid.uuid4().hex)
