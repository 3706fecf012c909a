"""Looks at a server before anything is started on it, and lists every problem at once, each with its remedy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tailrace.config import Config
from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres import ddl
from tailrace.connectors.postgres.connect import connect, first_line
from tailrace.connectors.postgres.lineages import ComesAs, Name, first_of, lineages, published, unheard
from tailrace.connectors.postgres.modes import SnapshotMode
from tailrace.connectors.postgres.preflight_tables import (
    CapturedTable,
    captured_tables,
    listed,
    quoted,
    tables_findings,
)
from tailrace.connectors.postgres.standing import Begun, slot_findings
from tailrace.errors import SourceError

__all__ = ["Finding", "check"]

OLDEST = 140000

Row = dict[str, Any]


@dataclass(frozen=True)
class _Server:
    """What the checks look at."""

    connection: psycopg.Connection[Row]
    config: Config
    tables: list[CapturedTable]
    begun: Begun | None

    @property
    def logged(self) -> list[CapturedTable]:
        """Those that a publication can hold."""
        return [table for table in self.tables if not table.unlogged]

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
    limit = config.number("connection.validation.timeout.ms")
    found: queue.Queue[list[Finding] | BaseException] = queue.Queue()
    threading.Thread(target=_into, args=(found, config, begun), name="tailrace-check", daemon=True).start()
    try:
        findings = found.get(timeout=limit / 1000)
    except queue.Empty:
        remedy = "see why the server is slow to answer, or raise connection.validation.timeout.ms"
        return [Finding("connection", False, f"Connection validation timed out after {limit} ms", remedy)]
    if isinstance(findings, BaseException):
        raise findings
    return findings


def _into(found: queue.Queue[list[Finding] | BaseException], config: Config, begun: Begun | None) -> None:
    try:
        found.put(_findings(config, begun))
    except BaseException as error:  # raised by who waits for it
        found.put(error)


def _findings(config: Config, begun: Begun | None) -> list[Finding]:
    try:
        with connect(config, application="tailrace check") as connection:
            return [Finding("connection", True, "the server accepts the role"), *_checked(connection, config, begun)]
    except SourceError as error:
        return [Finding("connection", False, f"{error.where}: {error.what}", error.remedy)]


def _checked(connection: psycopg.Connection, config: Config, begun: Begun | None) -> Iterator[Finding]:
    rows: psycopg.Connection[Row] = connection  # type: ignore[assignment]
    rows.row_factory = dict_row
    try:
        tables = captured_tables(rows, config)
    except psycopg.Error as error:
        yield _unknown("tables", error)
        tables = []
    server = _Server(rows, config, tables, begun)
    for name, look in _CHECKS:
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
    remedy = "grant the role what the message names" if denied else "see the server's log, and check again"
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
    encoding = server.setting("server_encoding")
    utf8 = encoding == "UTF8"
    remedy = "move the data into a database created with ENCODING 'UTF8'"
    yield Finding("encoding", utf8, f"the database is in {encoding}", None if utf8 else remedy)


def _role(server: _Server) -> Iterator[Finding]:
    row = server.row(
        """SELECT rolname, rolsuper OR rolreplication OR EXISTS (
               SELECT FROM pg_roles managed
               WHERE managed.rolname IN ('rds_replication', 'rds_superuser', 'rdsadmin')
                 AND pg_has_role(own.oid, managed.oid, 'MEMBER')) AS replicates
           FROM pg_roles own WHERE rolname = current_user"""
    )
    name = server.config.text("database.user") if row is None else row["rolname"]
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
    name, mode = server.config.text("publication.name"), server.config.text("publication.autocreate.mode")
    row = server.row(
        """SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate,
                  pg_has_role(pubowner, 'USAGE') AS owned, pubviaroot FROM pg_publication WHERE pubname = %s""",
        name,
    )
    if row is None:
        yield from _missing_publication(server, name, mode)
    elif mode == "filtered" and row["puballtables"]:
        remedy = f"DROP PUBLICATION {quoted(name)}, or set publication.autocreate.mode=all_tables"
        yield Finding("publication", False, f"{name} is FOR ALL TABLES, but filtered is asked for", remedy)
    else:
        yield from _existing_publication(server, name, mode, row)


def _missing_publication(server: _Server, name: str, mode: str) -> Iterator[Finding]:
    tables, via_root = server.logged, server.config.flag("publish.via.partition.root")
    lost = list(_unheard(server, name, _planned(server, mode, via_root), is_there=False))
    statement = _creating(name, tables, via_root or bool(lost))
    if mode == "disabled":
        what = "Publication autocreation is disabled, please create one and restart the connector."
        yield Finding("publication", False, f"{name}: {what}", statement if tables else None)
        return
    may = server.row(
        """SELECT current_user AS role, current_database() AS database,
                  has_database_privilege(current_database(), 'CREATE') AS creates,
                  (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super"""
    )
    assert may is not None  # a SELECT without FROM gives one row
    problems = []
    if not may["creates"]:
        grant = f"GRANT CREATE ON DATABASE {quoted(may['database'])} TO {quoted(may['role'])}"
        problems.append(Finding("publication", False, f"{may['role']} may not create the publication {name}", grant))
    if mode == "all_tables" and not may["super"]:
        what = f"only a superuser may create {name} FOR ALL TABLES"
        remedy = f"as a superuser: {statement}; or set publication.autocreate.mode=filtered" if tables else None
        problems.append(Finding("publication", False, what, remedy))
    foreign = [table for table in tables if not table.owned]
    if mode == "filtered" and foreign:
        what = f"{may['role']} does not own {listed(foreign)}, which the publication {name} would hold"
        problems.append(Finding("publication", False, what, f"as the owner: {statement}"))
    yield from problems or [Finding("publication", True, f"{name} will be created ({mode})")]
    if mode != "no_tables":
        yield from lost


def _creating(name: str, tables: Sequence[CapturedTable], via_root: bool) -> str:
    """The statement that makes a publication of these tables."""
    option = " WITH (publish_via_partition_root = true)" if via_root else ""
    return f"CREATE PUBLICATION {quoted(name)} FOR TABLE {', '.join(table.quoted for table in tables)}{option}"


def _unheard(server: _Server, name: str, comes_as: ComesAs, *, is_there: bool = True) -> Iterator[Finding]:
    if SnapshotMode.of(server.config).streams:
        yield from unheard(name, lineages(server.connection), server.names, comes_as, is_there=is_there)


def _planned(server: _Server, mode: str, via_root: bool) -> ComesAs:
    """How changes of partitions will come by a publication that is made or adapted at the start."""
    if not via_root:
        return lambda line: line[-1]
    return (lambda line: line[0]) if mode == "all_tables" else first_of(server.names)


def _existing_publication(server: _Server, name: str, mode: str, row: Row) -> Iterator[Finding]:
    yield Finding("publication", True, f"{name} exists")
    operations = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
    wanted = [word for op, word in operations.items() if op not in server.config.names("skipped.operations")]
    lacking = [word for word in wanted if not row[f"pub{word}"]]
    if lacking:
        remedy = f"ALTER PUBLICATION {quoted(name)} SET (publish = '{', '.join(wanted)}')"
        yield Finding("publication", None, f"{name} does not publish {', '.join(lacking)}", remedy)
    sent, found = published(server.connection, name), lineages(server.connection)
    comes_as = _planned(server, mode, row["pubviaroot"]) if mode == "filtered" else first_of(sent)
    yield from _unheard(server, name, comes_as)
    sent |= {part for line in found if sent.intersection(line) for part in line}
    # Of a partitioned table that has no partitions yet nothing could be sent.
    silent = {(table.schema, table.table) for table in server.tables if table.is_partitioned}.difference(*found)
    missing = [table for table in server.logged if (table.schema, table.table) not in sent | silent]
    if not missing:
        return
    what = f"{name} lacks {listed(missing)}: no changes of these would come"
    if mode == "filtered" and row["owned"] and all(table.owned for table in missing):
        yield Finding("publication", True, f"{name} lacks {listed(missing)}, which will be added")
        return
    named = server.config.names("table.include.list") or server.config.names("schema.include.list")
    remedy = f"ALTER PUBLICATION {quoted(name)} ADD TABLE {', '.join(table.quoted for table in missing)}"
    yield Finding("publication", False if named else None, what, remedy)


def _slot(server: _Server) -> Iterator[Finding]:
    yield from slot_findings(server.connection, server.config, server.begun)


def _ddl(server: _Server) -> Iterator[Finding]:
    is_there = server.row(ddl.PRESENT) is not None
    yield Finding("ddl", True, "DDL triggers tell schema changes" if is_there else "no DDL triggers: `init --ddl`")


def _capacity(server: _Server) -> Iterator[Finding]:
    row = server.row(
        """SELECT current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots) AS slots,
                  current_setting('max_wal_senders')::int - (
                      SELECT count(*) FROM pg_stat_replication) AS senders,
                  EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s) AS exists""",
        server.config.text("slot.name"),
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
    ("publication", _publication),
    ("slot", _slot),
    ("ddl", _ddl),
    ("capacity", _capacity),
    ("retention", _retention),
)
