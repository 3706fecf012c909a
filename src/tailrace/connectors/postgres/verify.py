"""Probes of `verify` for PostgreSQL: settings, slots, publications, large values that were not changed, truncates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.server.connect import connect
from tailrace.connectors.postgres.snapshot.server import PostgresFailures
from tailrace.connectors.postgres.verify_types import KEYS, TYPES
from tailrace.connectors.probe import Answer, Expectation, Probe, ProbeObject, Wrong
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.sql_bench import BLOCKED_TABLES, Session, SqlBench
from tailrace.errors import SourceError
from tailrace.override import override

_SETTINGS = (
    *("server_version", "wal_level", "server_encoding", "lc_collate", "max_replication_slots", "max_wal_senders"),
    *("max_slot_wal_keep_size", "idle_replication_slot_timeout", "wal_sender_timeout", "logical_decoding_work_mem"),
    *("default_transaction_isolation", "synchronous_commit", "ssl", "track_commit_timestamp", "block_size"),
)
_PLATFORMS = """
SELECT CASE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_superuser') THEN 'RDS or Aurora'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'azure_pg_admin') THEN 'Azure'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'cloudsqlsuperuser') THEN 'Cloud SQL'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'alloydbsuperuser') THEN 'AlloyDB'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'supabase_admin') THEN 'Supabase'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'neon_superuser') THEN 'Neon'
  ELSE 'none that is known' END, pg_is_in_recovery(), version()
"""
_PATIENCE_S, _LOOK_S = 20.0, 0.02  # guessed
_PEEKED = "vpeeked"
# The table is described again before a truncate by the releases that were tried.
_MESSAGES = ("BRICBUCBUCBDCBRTC", "BRICBUCBUCBDCBTC")
_STABLE = "Does the server tell which server and which history of it this is?"
_ALL_SET = (
    Expectation("has_identifier", (True,), "A pipeline cannot tell this server from another one."),
    Expectation("has_timeline", (True,), "A pipeline cannot tell that the server was restored to an earlier time."),
)
_MAY = (Expectation("may_replicate", (True,), "ALTER ROLE ... REPLICATION (RDS: GRANT rds_replication TO ...)"),)
_LOSS = "A pipeline relies on this, and would be wrong here: please send the report."


class PostgresBench(SqlBench):
    """Implements Bench."""

    failures = PostgresFailures()
    types, keys = TYPES, KEYS
    has_moves, moves_as = True, ("d", "c")
    deadline_s = 60.0
    row_type = "integer PRIMARY KEY,integer,text"
    series = "SELECT * FROM generate_series({first}, {last})"
    # PostgreSQL cancels a statement that waits too long for a lock, as one of lock_not_available.
    lock_codes = ("55P03",)
    deadlock_codes = ("40P01",)
    killed_codes = ("57P01",)
    own_tables = (*BLOCKED_TABLES, _PEEKED)

    @override
    def session(self) -> PostgresSession:
        return PostgresSession(self.config)

    @override
    def table(self, name: str) -> str:
        return f"{self.column(self.schema)}.{self.column(name)}"

    @override
    def captured(self, *tables: str) -> None:
        """Deletes have all old values. A pipeline makes slot and publication by itself."""
        self.run(*(f"ALTER TABLE {self.table(table)} REPLICA IDENTITY FULL" for table in tables))

    @override
    def limit_locks(self, session: Any, seconds: int) -> None:
        session.rows(f"SET lock_timeout = '{seconds}s'")

    @override
    def number(self, session: Any) -> str:
        return str(session.rows("SELECT pg_backend_pid()")[0][0])

    @override
    def kill(self, number: str) -> str:
        return f"SELECT pg_terminate_backend({number})"

    @override
    def readers_wait(self) -> bool:
        """Never."""
        return False

    @override
    def drivers(self) -> Mapping[str, str]:
        import adbc_driver_postgresql

        libpq = psycopg.pq.version()
        return {
            "psycopg": psycopg.__version__,
            "libpq": f"{libpq // 10000}.{libpq % 10000}",
            "adbc_driver_postgresql": adbc_driver_postgresql.__version__,
        }

    @override
    def code(self, error: BaseException) -> str:
        """The SQLSTATE. Of a connection that is refused, libpq passes none on."""
        cause = driver_error_of(error)
        state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
        return state or type(cause).__name__

    @override
    def connect(self, config: Config) -> None:
        with connect(config, application="tailrace verify") as connection:
            connection.execute("SELECT 1")

    @override
    def wrong(self) -> Sequence[Wrong]:
        nobody = {"database.user": "tailrace_verify_nobody", "database.password": "none"}
        return (
            Wrong("unknown_user", nobody, ("28P01", "28000", "OperationalError"), is_retried=False),
            Wrong("closed_port", {"database.port": "1"}, ("OperationalError", "ConnectionTimeout"), is_retried=True),
            Wrong(
                "unknown_database",
                {"database.dbname": "tailrace_verify_none"},
                ("3D000", "28000", "OperationalError"),
                is_retried=False,
            ),
        )

    @override
    def obstacle(self) -> Finding | None:
        level = self.main.rows("SELECT current_setting('wal_level'), pg_is_in_recovery()")[0]
        if level[1]:
            return Finding("version", False, "the server is a standby", "give the URL of the primary, or --read-only")
        if level[0] != "logical":
            remedy = "ALTER SYSTEM SET wal_level = logical, then restart the server (RDS: rds.logical_replication = 1)"
            return Finding("wal_level", False, f"wal_level is {level[0]}", remedy)
        return None

    @override
    def exists(self) -> bool:
        return bool(self.main.rows(f"SELECT FROM pg_namespace WHERE nspname = {self.text(self.schema)}"))

    @override
    def properties(self, *tables: str) -> Mapping[str, str]:
        """Slot and publication have the first table's name."""
        own = f"{self.schema}_{tables[0]}".lower()
        listed = ",".join(f"{self.schema}\\.{table}" for table in tables)
        return {
            **self.config.given,
            "slot.name": own,
            "publication.name": own,
            "publication.autocreate.mode": "filtered",
            "table.include.list": listed,
            "decimal.handling.mode": "string",
            "binary.handling.mode": "hex",
        }

    @override
    def signalled(self, table: str) -> str:
        return f"{self.schema}.{table}"

    @override
    def image(self, written: Any) -> dict[str, Any] | None:
        return None if written is None else dict(written)

    @override
    def release(self, *tables: str) -> None:
        self._drop_slot(f"{self.schema}_{tables[0]}".lower())

    def _drop_slot(self, name: str) -> None:
        """Drop a slot and a publication. A reader process may hold the slot for seconds after its pipeline's end."""
        mine = f"FROM pg_replication_slots WHERE slot_name = {self.text(name)}"
        deadline = time.monotonic() + _PATIENCE_S
        while self.main.rows(f"SELECT {mine}") and time.monotonic() < deadline:
            self.run(f"SELECT pg_terminate_backend(active_pid) {mine} AND active")
            # Active ones are not tried: the server would refuse them.
            self.run(f"SELECT pg_drop_replication_slot(slot_name) {mine} AND NOT active")
            time.sleep(_LOOK_S)
        self.run(f"DROP PUBLICATION IF EXISTS {self.column(name)}")
        if self.main.rows(f"SELECT {mine}"):
            raise SourceError("the slot is in use", where=f"slot {name}", remedy="stop what reads it, and drop it")

    @override
    def undo(self) -> Sequence[ProbeObject]:
        """Slots keep log, so they go first."""
        names = [f"{self.schema}_{table}".lower() for table in self.tables]
        slots = [
            ProbeObject(
                f"SELECT pg_drop_replication_slot('{name}'); DROP PUBLICATION IF EXISTS {self.column(name)}",
                lambda name=name: self._drop_slot(name),  # type: ignore[misc]
            )
            for name in names
        ]
        statements = [f"DROP TABLE IF EXISTS {self.table(table)}" for table in self.tables]
        statements.append(f"DROP SCHEMA IF EXISTS {self.column(self.schema)}")
        return [*slots, *(ProbeObject(each, lambda each=each: self.run(each)) for each in statements)]  # type: ignore[misc]

    @override
    def probes(self) -> Sequence[Probe]:
        settings = "Which version is this, and how is it set?"
        expected = (Expectation("wal_level", ("logical",), "No log can be read before wal_level is logical."),)
        messages = "What does the log say of an insert, updates, a new key, a delete and a truncate?"
        sent = (
            Expectation("messages", _MESSAGES, _LOSS),
            Expectation("untouched", ("u",), "Large values that an update has not touched may be read as null."),
        )
        return [
            Probe("identity.server", settings, "Behaviour depends on it.", self._identity, expected, writes=False),
            Probe("identity.stable", _STABLE, "A checkpoint stays valid.", self._stable, _ALL_SET, writes=False),
            Probe(
                "rights.role", "What may the role do?", "A pipeline needs REPLICATION.", self._role, _MAY, writes=False
            ),
            Probe("capture.messages", messages, "Each change has the message it should have.", self._messages, sent),
            *super().probes(),
        ]

    def _identity(self) -> Answer:
        listed = ", ".join(f"current_setting({self.text(each)}, true)" for each in _SETTINGS)
        values = dict(zip(_SETTINGS, self.main.rows(f"SELECT {listed}")[0], strict=True))
        platform, standby, version = self.main.rows(_PLATFORMS)[0]
        about = {**values, "platform": platform, "is_standby": standby, "version": version}
        return Answer({"wal_level": values["wal_level"]}, about)

    def _stable(self) -> Answer:
        row = self.main.rows(
            "SELECT system_identifier <> 0, pg_control_checkpoint() IS NOT NULL FROM pg_control_system()"
        )[0]
        return Answer({"has_identifier": row[0], "has_timeline": row[1]})

    def _role(self) -> Answer:
        names = ("rolsuper", "rolreplication", "rolbypassrls", "rolcreatedb")
        row = self.main.rows(
            f"SELECT {', '.join(names)}, has_database_privilege(current_database(), 'CREATE') "
            "FROM pg_roles WHERE rolname = current_user"
        )[0]
        about = dict(zip((*names, "may_create_schema"), row, strict=True))
        return Answer({"may_replicate": about["rolsuper"] or about["rolreplication"] or self._is_managed()}, about)

    def _is_managed(self) -> bool:
        rows = self.main.rows(
            "SELECT FROM pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(current_user, oid, 'MEMBER')"
        )
        return bool(rows)

    def _messages(self) -> Answer:
        """The messages of pgoutput, by their first bytes, and what it says of a large value in the second update."""
        table, name = self.table(_PEEKED), f"{self.schema}_{_PEEKED}".lower()
        self.run(
            f"CREATE TABLE {table} (id integer PRIMARY KEY, v integer, note text)",
            f"ALTER TABLE {table} ALTER note SET STORAGE EXTERNAL",
            f"CREATE PUBLICATION {self.column(name)} FOR TABLE {table}",
        )
        try:
            self.run(
                f"SELECT pg_create_logical_replication_slot({self.text(name)}, 'pgoutput')",
                f"INSERT INTO {table} VALUES (1, 1, repeat('long', 2000))",
                f"UPDATE {table} SET v = 2",
                f"UPDATE {table} SET id = 2",
                f"DELETE FROM {table}",
                f"TRUNCATE {table}",
            )
            options = f"'proto_version', '1', 'publication_names', {self.text(name)}"
            peek = f"SELECT data FROM pg_logical_slot_peek_binary_changes({self.text(name)}, NULL, NULL, {options})"
            messages = [bytes(row[0]) for row in self.main.rows(peek)]
        finally:
            self._drop_slot(name)
        updates = [each for each in messages if each[:1] == b"U"]
        return Answer({"messages": "".join(chr(each[0]) for each in messages), "untouched": _last_kind(updates[0])})


def _last_kind(update: bytes) -> str:
    """How an update's message has the last column of the new row: t is text, n null, u unchanged."""
    place = 1 + 4 + 1 + 2
    kind = ""
    while place < len(update):
        kind = chr(update[place])
        place += 1 if kind in "nu" else 5 + int.from_bytes(update[place + 1 : place + 5], "big")
    return kind


class PostgresSession(Session):
    """Implements Session."""

    def __init__(self, config: Config) -> None:
        self._connection = connect(config, application="tailrace verify")

    @override
    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description is not None else []

    @override
    def together(self, *statements: str) -> None:
        self.begin()
        for statement in statements:
            self.rows(statement)
        self.rows("COMMIT")

    @override
    def begin(self) -> None:
        self.rows("BEGIN")

    @override
    def rollback(self) -> None:
        self.rows("ROLLBACK")

    @override
    def close(self) -> None:
        self._connection.close()
