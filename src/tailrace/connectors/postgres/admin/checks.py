"""Checks a server before a start and lists every problem at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.connectors.finding import Finding, within_limit
from tailrace.connectors.offset import BEGIN
from tailrace.connectors.ports import Begun
from tailrace.connectors.postgres.admin.check_ddl import ddl_findings
from tailrace.connectors.postgres.admin.check_encoding import encoding_findings
from tailrace.connectors.postgres.admin.check_replica import replica_findings
from tailrace.connectors.postgres.admin.check_tables import CheckedTable, captured_tables, quoted, tables_findings
from tailrace.connectors.postgres.admin.resumable import slot_findings
from tailrace.connectors.postgres.options import DATABASE_USER, PUBLICATION_NAME, SLOT_NAME
from tailrace.connectors.postgres.server import replica_identity
from tailrace.connectors.postgres.server.connect import connect, first_line, remedy_of
from tailrace.connectors.postgres.server.lost_log import WITHOUT_PUBLICATION
from tailrace.connectors.postgres.server.partition_names import Name
from tailrace.connectors.postgres.server.publication import predicted
from tailrace.connectors.postgres.server.published import find
from tailrace.errors import ConfigError, SourceError
from tailrace.model.table import TableId

__all__ = ["Finding", "check"]

OLDEST = 140000

Row = dict[str, Any]


@dataclass(frozen=True)
class _Server:
    """What the checks look at."""

    connection: psycopg.Connection[Row]
    config: Config
    tables: list[CheckedTable]
    begun: Begun | None

    @property
    def has_begun(self) -> bool:
        """Whether the pipeline has a committed position."""
        committed = None if self.begun is None else self.begun[0]
        return committed is not None and committed.get("phase") != BEGIN

    @property
    def names(self) -> set[Name]:
        return {(table.schema, table.table) for table in self.tables}

    def row(self, query: str, *parameters: object) -> Row | None:
        return self.connection.execute(query, parameters).fetchone()

    def setting(self, name: str) -> str:
        row = self.row("SELECT current_setting(%s, true) AS value", name)
        return "" if row is None or row["value"] is None else str(row["value"])


def check(config: Config, begun: Begun | None = None) -> list[Finding]:
    """Every problem of the server, its role, tables, publication and slot; changes nothing. Raises nothing it can list.

    `begun` are the offsets of the newest batches in the pipeline's checkpoint, committed and planned.
    What cannot be looked at (a privilege is missing) is a warning, so that one refusal does not hide the rest. A server
    that does not answer within connection.validation.timeout.ms is a problem, in Debezium's words.
    """
    return within_limit(config, lambda: _findings(config, begun))


def _findings(config: Config, begun: Begun | None) -> list[Finding]:
    try:
        with connect(config, application="tailrace check") as connection:
            return [Finding("connection", True, "the server accepts the role"), *_checked(connection, config, begun)]
    except SourceError as error:
        return [Finding("connection", False, f"{error.where}: {error.what}", error.remedy)]


def _checked(connection: psycopg.Connection, config: Config, begun: Begun | None) -> Iterator[Finding]:
    rows: psycopg.Connection[Row] = connection  # type: ignore[assignment]
    rows.row_factory = dict_row
    checks = [*_CHECKS]
    try:
        tables = captured_tables(rows, config)
    except psycopg.Error as error:
        yield _unknown("tables", error)
        tables, checks = [], [check for check in _CHECKS if check[0] != "tables"]
    server = _Server(rows, config, tables, begun)
    for name, look in checks:
        yield from _looked(name, look, server)


def _looked(name: str, look: Callable[[_Server], Iterator[Finding]], server: _Server) -> list[Finding]:
    try:
        return list(look(server))
    except psycopg.Error as error:
        return [_unknown(name, error)]
    except SourceError as error:
        return [Finding(name, None, f"could not be checked: {error.what}", error.remedy)]


def _unknown(name: str, error: psycopg.Error) -> Finding:
    denied = error.sqlstate == "42501"
    otherwise = remedy_of(error, "see the server's log, and check again")
    remedy = "grant the role what the message names" if denied else otherwise
    return Finding(name, None, f"could not be checked: {first_line(error)}", remedy)


def _version(server: _Server) -> Iterator[Finding]:
    version = server.connection.info.server_version
    shown = f"PostgreSQL {version // 10000}"
    if version < OLDEST:
        yield Finding("version", False, f"{shown} is too old", f"upgrade to PostgreSQL {OLDEST // 10000} or newer")
    else:
        yield Finding("version", True, shown)
    row = server.row("SELECT pg_is_in_recovery() AS standby")
    if row and row["standby"] and version < 160000:
        remedy = "set database.hostname to the primary; standbys decode from PostgreSQL 16 on"
        yield Finding("version", False, "the server is a standby and cannot decode its log", remedy)


def _settings(server: _Server) -> Iterator[Finding]:
    level = server.setting("wal_level")
    remedy = "ALTER SYSTEM SET wal_level = logical, then restart the server (RDS: rds.logical_replication = 1)"
    yield Finding("wal_level", level == "logical", f"wal_level is {level}", None if level == "logical" else remedy)
    yield from encoding_findings(server.connection, server.setting("server_encoding"))


def _role(server: _Server) -> Iterator[Finding]:
    row = server.row(
        """SELECT rolname, rolsuper OR rolreplication OR EXISTS (
               SELECT FROM pg_roles managed
               WHERE managed.rolname IN ('rds_replication', 'rds_superuser', 'rdsadmin')
                 AND pg_has_role(own.oid, managed.oid, 'MEMBER')) AS replicates
           FROM pg_roles own WHERE rolname = current_user"""
    )
    name = server.config[DATABASE_USER] if row is None else row["rolname"]
    if row is not None and row["replicates"]:
        yield Finding("role", True, f"{name} may replicate")
        return
    yield Finding(
        "role",
        False,
        f"Postgres roles LOGIN and REPLICATION are not assigned to user: {name}",
        f"ALTER ROLE {quoted(name)} LOGIN REPLICATION (RDS: GRANT rds_replication TO {quoted(name)})",
    )


def _tables(server: _Server) -> Iterator[Finding]:
    yield from tables_findings(server.tables, server.config)


def _publication(server: _Server) -> Iterator[Finding]:
    connection, config, name = server.connection, server.config, server.config[PUBLICATION_NAME]
    mode = SnapshotMode.of(config)
    if server.has_begun and mode.streams and not mode.at_start and find(connection, name) is None:
        what = f"there is no publication {name}, and the pipeline has begun: changes written without it are lost"
        yield Finding("publication", False, what, WITHOUT_PUBLICATION)
        return
    yield from predicted(connection, config, begun=server.has_begun)


def _identity(server: _Server) -> Iterator[Finding]:
    tables = [TableId(server.config[DATABASE_DBNAME], table.schema, table.table) for table in server.tables]
    try:
        settings = replica_identity.plan(server.connection, server.config, tables)
    except ConfigError as error:
        yield Finding("identity", False, f"{error.where}: {error.what}", "let one entry match the table")
        return
    for setting in settings:
        if setting.is_allowed:
            yield Finding("identity", True, setting.what)
        else:
            yield Finding("identity", False, f"{setting.what}, {replica_identity.OWNERS_ONLY}", setting.remedy)


def _slot(server: _Server) -> Iterator[Finding]:
    yield from slot_findings(server.connection, server.config, server.begun)


def _ddl(server: _Server) -> Iterator[Finding]:
    yield from ddl_findings(server.connection, server.config)


def _replica(server: _Server) -> Iterator[Finding]:
    yield from replica_findings(server.connection, server.config)


def _capacity(server: _Server) -> Iterator[Finding]:
    row = server.row(
        """SELECT current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots) AS slots,
                  current_setting('max_wal_senders')::int - (
                      SELECT count(*) FROM pg_stat_replication) AS senders,
                  EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s) AS exists""",
        server.config[SLOT_NAME],
    )
    assert row is not None  # a SELECT without FROM gives one row
    snapshot = SnapshotMode.of(server.config).at_first
    if row["slots"] < 1 and (snapshot or not row["exists"]):
        why = "a snapshot beside an existing slot needs one" if row["exists"] else "the slot cannot be created"
        remedy = "raise max_replication_slots and restart the server, or drop a slot nobody needs"
        yield Finding("slots", None if row["exists"] else False, f"no replication slot is free: {why}", remedy)
    else:
        yield Finding("slots", True, f"{row['slots']} replication slots are free")
    if row["senders"] < 1 + snapshot:
        remedy = "raise max_wal_senders and restart the server, or stop replication nobody needs"
        what = f"{row['senders']} WAL senders are free, {1 + snapshot} may be needed"
        yield Finding("senders", None if row["senders"] > 0 else False, what, remedy)
    else:
        yield Finding("senders", True, f"{row['senders']} WAL senders are free")


def _retention(server: _Server) -> Iterator[Finding]:
    kept = server.setting("max_slot_wal_keep_size")
    if kept == "-1":
        what = "log is kept for the slot without limit: watch the server's disk while the pipeline is stopped"
        yield Finding("retention", True, what)
    else:
        what = f"max_slot_wal_keep_size is {kept}: a pipeline that lags by more loses its slot"
        yield Finding("retention", None, what, "raise it to the log of the longest stop you expect, or set it to -1")
    idle = server.setting("idle_replication_slot_timeout")
    if idle not in ("", "0"):
        what = f"idle_replication_slot_timeout is {idle}: a pipeline stopped for longer loses its slot"
        yield Finding("retention", None, what, "raise it beyond the longest stop you expect, or set it to 0")


_CHECKS: tuple[tuple[str, Callable[[_Server], Iterator[Finding]]], ...] = (
    ("version", _version),
    ("settings", _settings),
    ("role", _role),
    ("tables", _tables),
    ("identity", _identity),
    ("publication", _publication),
    ("slot", _slot),
    ("ddl", _ddl),
    ("replica", _replica),
    ("capacity", _capacity),
    ("retention", _retention),
)
