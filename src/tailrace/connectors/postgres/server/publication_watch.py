"""Compares the publication with the configuration while a pipeline runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.postgres.catalog.tables import Catalog
from tailrace.connectors.postgres.options import PUBLICATION_AUTOCREATE_MODE, REPLICA_IDENTITY_AUTOSET_VALUES
from tailrace.connectors.postgres.server.partition_names import Name
from tailrace.connectors.postgres.server.publication import ADDED_LATE, ensure
from tailrace.connectors.postgres.server.published import LOCKED, at_once, verify, warning

log = logging.getLogger(__name__)

# A look is a few queries of the catalog, too much for every batch; at 1,000 tables it takes 15 ms of CPU time.
INTERVAL_SECONDS, REPEAT_SECONDS = 5.0, 600.0
# Bounds what an offset holds; the log has the whole text.
_MOST, _LONGEST = 10, 500


class PublicationWatch:
    """For one planner process. `ask` runs a query on its control connection."""

    def __init__(self, ask: Callable[[Callable[[psycopg.Connection], Any]], Any]) -> None:
        self._ask = ask
        self._has_adapted = False
        self._looked: float | None = None
        self._logged: float | None = None
        self._warnings: tuple[str, ...] = ()
        self._operations: frozenset[str] = frozenset()

    def adapt(self, config: Config) -> tuple[Name, ...]:
        """At the first call, add the tables that the filters name by now to a filtered publication, as Debezium does.

        Replica identities are set likewise. Returns the tables that were added; what they held before is not sent.
        Raises SourceError.
        """
        added: tuple[Name, ...] = ()
        is_filtered = config[PUBLICATION_AUTOCREATE_MODE] == "filtered"
        if not self._has_adapted and (is_filtered or config[REPLICA_IDENTITY_AUTOSET_VALUES]):
            added = self._ask(
                lambda connection: ensure(connection, config, Catalog(connection, config).tables(), create=False)
            )
        self._has_adapted = True
        for schema, table in added:
            log.warning("%s.%s %s", schema, table, ADDED_LATE)
        return added

    def look(self, config: Config) -> tuple[str, ...]:
        """Warnings, for an offset; the server is queried when the interval is over. Raises SourceError for losses.

        While a published table is locked, the warnings stay as they were, and one more says so.
        """
        now = time.monotonic()
        if self._looked is None or now >= self._looked + INTERVAL_SECONDS:
            warnings = self._ask(lambda connection: self._verified(connection, config))
            if warnings != self._warnings or self._logged is None or now >= self._logged + REPEAT_SECONDS:
                self._logged = now
                for line in warnings:
                    log.warning("%s", line)
            self._looked, self._warnings = now, warnings
        return tuple(line[:_LONGEST] for line in self._warnings[:_MOST])

    def _verified(self, connection: psycopg.Connection, config: Config) -> tuple[str, ...]:
        try:
            with at_once(connection):
                warnings, self._operations = verify(connection, config, self._operations)
                return warnings
        except psycopg.errors.LockNotAvailable:
            locked = warning(LOCKED)
            return (*(text for text in self._warnings if text != locked), locked)
