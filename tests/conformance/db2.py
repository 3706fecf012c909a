"""Db2 in the conformance suite, by the stand-in of the project's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import pytest

from tailrace.model.table import TableId
from tailrace.model.table_id import SCHEMA_TABLE
from tailrace.override import override
from tests.conformance import hostile_sql
from tests.conformance.subject import (
    DECIDED_ONCE,
    KEY,
    NO_PRIVILEGE,
    NOTE,
    SECRET,
    UNREACHABLE,
    VALUE,
    WRONG_PASSWORD,
    Change,
    Delete,
    Insert,
    Row,
    Source,
    Subject,
    Update,
)

if TYPE_CHECKING:
    from tests.servers.db2.client import Session
    from tests.servers.db2.server import Db2

PASSWORD = f"{SECRET}-Right-1"
POOR = "poor"
# The user of the documentation.
CDC = "CDC"
REGISTER = "ASNCDC.IBMSNAP_REGISTER"
REGISTERED = f"SELECT SOURCE_TABLE FROM {REGISTER} WHERE SOURCE_OWNER = '{{}}'"


class Db2Source(Source):
    """A schema in which every table is registered."""

    signals = "signals"

    def __init__(self, server: Db2, schema: str) -> None:
        self.server, self.schema = server, schema
        self._writers = threading.local()
        self._opened: list[Session] = []
        self.run(
            f"CREATE SCHEMA {schema}",
            f'CREATE TABLE {schema}."signals" '
            "(id VARCHAR(42) NOT NULL PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048))",
        )
        server.capture((schema, "signals"))

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each in a transaction of its own; the rows of the last one."""
        return [self._session.rows(statement) for statement in statements][-1]

    @property
    def _session(self) -> Session:
        if not hasattr(self._writers, "session"):
            self._writers.session = self.server.connect()
            self._opened.append(self._writers.session)
        session: Session = self._writers.session
        return session

    def close(self) -> None:
        """Close the connections, and remove the tables."""
        for session in self._opened:
            session.close()
        self.server.clear(self.schema)

    @override
    def properties(self, pipeline: str) -> dict[str, str]:
        return {
            "database.hostname": self.server.host,
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.password": PASSWORD,
            "database.dbname": self.server.database,
            "schema.include.list": self.schema,
            "driver.securityMechanism": "3",
            # Tables without a key are exact in a replica only if nobody writes while they are read.
            "snapshot.isolation.mode": "exclusive",
        }

    @override
    def id(self, table: str) -> TableId:
        return TableId(self.server.database, self.schema, table, SCHEMA_TABLE)

    def name(self, table: str) -> str:
        """A table's name in SQL."""
        return f'{self.schema}."{table}"'

    @override
    def create(self, *tables: str, has_key: bool = True) -> None:
        key = "NOT NULL PRIMARY KEY" if has_key else ""
        for table in tables:
            columns = f'"{KEY}" INTEGER {key}, "{VALUE}" INTEGER, "{NOTE}" VARCHAR(400)'
            self.run(f"CREATE TABLE {self.name(table)} ({columns})")
            if not has_key:
                # Not unique, so no key: without it writers would wait for each other's rows.
                self.run(f'CREATE INDEX {self.schema}."ix_{table}" ON {self.name(table)} ("{KEY}")')
        self.server.capture(*((self.schema, table) for table in tables))

    @override
    def commit(self, *changes: Change) -> None:
        """What the server ends for a lock is repeated, as applications do."""
        statements = [self._statement(change) for change in changes]
        for attempt in range(5):
            try:
                return self._session.transaction(*statements)
            except Exception as error:  # noqa: PERF203  # the loop is the retrying
                if "SQLSTATE=40001" not in str(error) or attempt == 4:
                    raise

    @override
    def roll_back(self, *changes: Change) -> None:
        self._session.roll_back(*map(self._statement, changes))

    @override
    def truncate(self, table: str) -> None:
        """Db2 refuses it for tables whose changes are captured."""
        raise NotImplementedError

    @override
    def add_column(self, table: str, name: str) -> None:
        """As Debezium's documentation tells, with the registration inactive meanwhile."""
        mine = f"SOURCE_OWNER = '{self.schema}' AND SOURCE_TABLE = '{table}'"
        self.run(f"UPDATE {REGISTER} SET STATE = 'I' WHERE {mine}")
        self.server.services("reinit")
        self.run(f'ALTER TABLE {self.name(table)} ADD COLUMN "{name}" INTEGER')
        self.run(f'ALTER TABLE ASNCDC."CDC_{self.schema}_{table}" ADD COLUMN "{name}" INTEGER')
        self.run(f"UPDATE {REGISTER} SET STATE = 'A' WHERE {mine}")
        self.server.services("reinit")

    @override
    def move_key(self, table: str) -> None:
        name = self.name(table)
        self.run(f"ALTER TABLE {name} DROP PRIMARY KEY", f'ALTER TABLE {name} ALTER COLUMN "{VALUE}" NOT NULL')
        self.run(f'ALTER TABLE {name} ADD PRIMARY KEY ("{VALUE}")')

    @override
    def signal(self, id_: str, kind: str, data: str) -> None:
        self.run(f"INSERT INTO {self.name('signals')} VALUES ({_value(id_)}, {_value(kind)}, {_value(data)})")

    @override
    def clear_signals(self) -> None:
        self.run(f"DELETE FROM {self.name('signals')}")

    @override
    def hostile(self, kind: str, table: str, victim: str) -> list[str]:
        delete = f"DELETE FROM {self.name(victim)}"
        if kind == "incremental":
            return hostile_sql.conditions(delete) + hostile_sql.odd_conditions(delete)
        return hostile_sql.selects(self.name(table), delete) + hostile_sql.odd_selects(self.name(table), delete)

    @override
    def harmless(self, kind: str, table: str, key: int) -> str:
        condition = f'"{KEY}" = {key}'
        return condition if kind == "incremental" else f"SELECT * FROM {self.name(table)} WHERE {condition}"

    @override
    def settle(self) -> None:
        """Until the capture program has come so far."""
        self.server.settle()

    @override
    def rows(self, table: str) -> list[Row]:
        found = self.run(
            f"SELECT COLNAME FROM SYSCAT.COLUMNS WHERE TABSCHEMA = '{self.schema}' AND TABNAME = '{table}' "
            "ORDER BY COLNO"
        )
        names = [row[0] for row in found]
        listed = ", ".join(f'"{name}"' for name in names)
        return [dict(zip(names, row, strict=True)) for row in self.run(f"SELECT {listed} FROM {self.name(table)}")]

    @override
    def lose_position(self, pipeline: str) -> None:
        """Capture is ended and begun again."""
        tables = [row[0] for row in self.run(REGISTERED.format(self.schema))]
        for table in tables:
            self.server.release(self.schema, table)
        self.server.capture(*((self.schema, table) for table in tables))

    @contextmanager
    @override
    def fault(self, kind: str) -> Iterator[dict[str, str]]:
        if kind == WRONG_PASSWORD:
            yield {"database.password": f"{SECRET}-Wrong-1"}
        elif kind == UNREACHABLE:
            yield {"database.port": "1"}
        else:
            assert kind == NO_PRIVILEGE
            yield {"database.user": POOR}

    @override
    def url(self) -> tuple[str, dict[str, str]]:
        server = self.server
        place = f"{server.host}:{server.port}/{server.database}"
        return f"db2://{server.user}@{place}?securityMechanism=3", {"DB2_PASSWORD": PASSWORD}

    def _statement(self, change: Change) -> str:
        """A change as SQL."""
        table = self.name(change.table)
        if isinstance(change, Insert):
            names, values = ", ".join(f'"{name}"' for name in change.row), ", ".join(map(_value, change.row.values()))
            return f"INSERT INTO {table} ({names}) VALUES ({values})"
        if isinstance(change, Delete):
            return f'DELETE FROM {table} WHERE "{KEY}" = {change.key}'
        assert isinstance(change, Update)
        values = ", ".join(f'"{name}" = {_value(value)}' for name, value in change.values.items())
        return f'UPDATE {table} SET {values} WHERE "{KEY}" = {change.key}'


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


class Db2Subject(Subject):
    """The stand-in for Db2."""

    connector = "db2"
    is_killed = False  # make crash kills its pipelines
    cannot: ClassVar[Mapping[str, str]] = {
        "a_new_column_is_in_the_events_after_it": "rows that are not read yet get the new column with their table",
        "a_truncate_is_an_event": "TRUNCATE is not captured",
        "a_truncate_empties_a_replica": "TRUNCATE is not captured",
        "status_and_drop_know_what_a_pipeline_has_created": "a pipeline creates nothing on the server",
        "the_checkpoint_of_another_source_is_an_error": "the sources here are schemas of one database",
    }

    # SQL Server has its log by the same code, on a stand-in that starts faster.
    long = DECIDED_ONCE | frozenset(
        {
            *("a_pipeline_begins_with_more_signals_than_are_read", "more_signals_than_are_read_never_stop_a_pipeline"),
            "a_pipeline_continues_where_another_program_stopped",
            *("a_signal_table_that_is_none_never_stops_a_pipeline", "an_id_is_used_again_once_its_row_is_gone"),
            *(
                "a_hostile_signal_is_given_up_and_writes_nothing",
                "an_offset_from_which_changes_would_be_lost_is_refused",
                "a_paused_snapshot_resumes_and_a_stopped_one_ends",
            ),
            *("a_mode_reads_the_tables_at_its_first_start", "a_restart_resumes_as_its_mode_says"),
            "a_snapshot_of_several_batches_resumes_where_it_was",
            *(
                "a_table_is_added_under_load",
                "a_table_is_added_by_a_blocking_snapshot",
                "a_table_is_removed_under_load",
            ),
            *("a_snapshot_under_load_leaves_a_replica_equal", "reconcile_finds_and_repairs_wrong_rows"),
            *("kafka_has_each_event_once", "a_stream_has_rows_in_each_shape"),
            "a_fault_is_an_error_with_its_remedy[unreachable]",
            *(
                "a_signal_for_a_table_outside_the_lists_reads_nothing_of_it",
                "a_signal_of_an_unknown_table_does_no_harm",
            ),
            *("a_signal_has_a_table_read[source-blocking]", "a_bounded_read_is_the_tables_as_of_now"),
            *("a_replica_that_was_deleted_is_read_again", "the_checkpoint_of_another_source_is_an_error"),
            *("a_wrong_property_is_named", "a_plug_in_that_is_not_there_is_named"),
            "when_needed_reads_the_tables_again_if_the_position_is_lost",
        }
    )

    @override
    def start(self, request: pytest.FixtureRequest) -> None:
        self.server: Db2 = request.getfixturevalue("db2")

    @contextmanager
    @override
    def source(self) -> Iterator[Source]:
        source = Db2Source(self.server, f"C{uuid4().hex[:8].upper()}")
        try:
            yield source
        finally:
            source.close()
