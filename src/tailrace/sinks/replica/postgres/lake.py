"""Tables of a replica in a schema of a PostgreSQL database: finds, makes and removes them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import psycopg

from tailrace.override import override
from tailrace.sinks.replica.postgres import statements
from tailrace.sinks.replica.postgres.columns import fitted, stored
from tailrace.sinks.replica.postgres.connections import conninfo, transaction
from tailrace.sinks.replica.postgres.copying import read
from tailrace.sinks.replica.postgres.errors import translating
from tailrace.sinks.replica.postgres.ledger import Ledger, State
from tailrace.sinks.replica.postgres.table import TableLocation, TargetTable
from tailrace.sinks.replica.roots import DATABASE
from tailrace.sinks.replica.table import Lake, LakeError, LostRaceError, Mark, Rows


@dataclass(frozen=True)
class DatabaseLake(Lake):
    """Implements Lake for a root `postgresql://host/database/schema`; a folder below is a prefix of the names."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""

    @staticmethod
    def of(root: str, options: Mapping[str, str]) -> DatabaseLake:
        """The lake of a root, or of a folder below one."""
        parts = root.removeprefix(DATABASE).rstrip("/").split("/")
        return DatabaseLake(DATABASE + "/".join(parts[:3]), options, "/".join(parts[3:]))

    @override
    def below(self, folder: str) -> DatabaseLake:
        return DatabaseLake(self.root, self.options, folder)

    @override
    def uri(self, name: str) -> str:
        return f"{self.root}/{self._relation(name)}"

    @override
    def names(self) -> frozenset[str]:
        with transaction(self._conninfo) as connection:
            return self._ledger.names(connection, self.folder)

    @override
    def open(self, name: str) -> TargetTable | None:
        with transaction(self._conninfo) as connection:
            state = self._ledger.load(connection, self.folder, name)
        return None if state is None else TargetTable(self._place(name), state)

    @override
    def create(self, name: str, rows: Rows, mark: Mark, kept_seconds: int | None) -> None:
        """PostgreSQL removes old versions of rows itself (autovacuum)."""
        ledger, relation = self._ledger, self._relation(name)
        with transaction(self._conninfo) as connection:
            ledger.make(connection)
        with transaction(self._conninfo) as connection:
            if ledger.load(connection, self.folder, name) is not None:
                raise LostRaceError(f"{relation} was made by another process meanwhile")
            source, schema = read(connection, "_tailrace_rows", rows, stored(rows.schema))
            state = State(str(uuid.uuid4()), relation, 0, schema, {})
            try:
                connection.execute(statements.create(ledger.of(relation), schema))
            except (psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation) as error:
                raise LakeError(
                    f"there is a table {relation} in the schema {ledger.namespace}, which this replica has not made",
                    "rename or drop it, then run `tailrace retry`; or give the replica another `namespace`",
                ) from error
            connection.execute(statements.insert(ledger.of(relation), schema, source))
            ledger.begin(connection, self.folder, name, state)
            ledger.commit(connection, state, state, mark, "CREATE", keeps=False)

    @override
    def remove(self, name: str) -> None:
        with transaction(self._conninfo) as connection:
            self._ledger.remove(connection, self.folder, name)

    @override
    def look(self, seconds: float) -> None:
        limit = str(max(2, int(seconds)))  # libpq takes no less
        text = conninfo(self.options, connect_timeout=limit, tcp_user_timeout=f"{limit}000")
        with translating(), psycopg.connect(text) as connection:
            connection.execute("SELECT 1")

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self.root.rpartition("/")[2])

    @cached_property
    def _conninfo(self) -> str:
        return conninfo(self.options)

    def _relation(self, name: str) -> str:
        return fitted(f"{self.folder}.{name}" if self.folder else name)

    def _place(self, name: str) -> TableLocation:
        return TableLocation(self._conninfo, self._ledger, self.folder, name, self.uri(name))
