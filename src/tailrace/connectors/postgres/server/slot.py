"""Creates, describes and drops the replication slot, and ends a dead reader of the same pipeline that holds it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.options import (
    INTERNAL_CREATE_SLOT_COMMAND_TIMEOUT,
    SLOT_FAILOVER,
    SLOT_MAX_RETRIES,
    SLOT_NAME,
    SLOT_RETRY_DELAY_MS,
    SLOT_STREAM_PARAMS,
    SLOT_TAKEOVER,
)
from tailrace.connectors.postgres.position import LogClaim, format_lsn, parse_lsn
from tailrace.connectors.postgres.server.connect import first_line
from tailrace.connectors.postgres.server.slot_wait import WAIT_SECONDS, Blocker, after, tell_wait
from tailrace.errors import ConfigError, SourceError
from tailrace.model.quantity import size
from tailrace.override import override

log = logging.getLogger(__name__)

PLUGIN = "pgoutput"
_TAKEOVER_SECONDS = 10.0  # guessed
# PostgreSQL tells since 17 how long a slot has been idle.
_SLOT = """
SELECT s.plugin, s.database, s.confirmed_flush_lsn::text, s.active_pid, a.application_name, s.wal_status,
       to_jsonb(s) ->> 'invalidation_reason',
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
        - s.confirmed_flush_lsn)::bigint,
       (to_jsonb(s) ->> 'inactive_since')::timestamptz(0)::text
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = %s
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as pg_replication_slots shows it; LSNs are None before the slot is ready."""

    name: str
    plugin: str
    database: str
    confirmed: int | None
    active_pid: int | None
    holder: str | None
    wal_status: str | None
    reason: str | None = None
    behind: int | None = None
    since: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the server has invalidated it, for the reason it gives from PostgreSQL 17 on."""
        return self.wal_status == "lost"

    @override
    def __str__(self) -> str:
        """Whose it may be: who reads it, how far it is confirmed, how long nobody has read it."""
        if self.active_pid is not None:
            parts = [f"process {self.active_pid}, application {self.holder!r}, reads it"]
        else:
            parts = ["nobody reads it now" + ("" if self.since is None else f", the last one did until {self.since}")]
        if self.confirmed is not None:
            behind = "" if self.behind is None else f", {size(self.behind)} behind the end of the log"
            parts.append(f"its confirmed position is {format_lsn(self.confirmed)}{behind}")
        return "; ".join(parts)


def find(connection: psycopg.Connection[Any], name: str) -> Slot | None:
    """The slot of that name, None when there is none."""
    row = connection.cursor(row_factory=tuple_row).execute(_SLOT, [name]).fetchone()
    if row is None:
        return None
    plugin, database, confirmed, *rest = row
    return Slot(name, plugin, database, None if confirmed is None else parse_lsn(confirmed), *rest)


def existing(connection: psycopg.Connection, config: Config) -> Slot | None:
    """The configured slot if it exists. Raises SourceError when it is of another kind."""
    name, database = config[SLOT_NAME], config[DATABASE_DBNAME]
    slot = find(connection, name)
    if slot is None:
        return None
    if slot.plugin != PLUGIN or slot.database != database:
        raise SourceError(
            f"the slot is for plugin {slot.plugin} and database {slot.database}",
            where=f"slot {name}",
            remedy=f"set another slot.name, or drop it: SELECT pg_drop_replication_slot('{name}')",
        )
    return slot


def usable(connection: psycopg.Connection, config: Config, claim: LogClaim) -> Slot | None:
    """The configured slot for a snapshot, None if it is to be created; one that the server has invalidated is dropped.

    Raises SourceError for one that is not this pipeline's by its claim.
    """
    slot = check_owned(connection, config, claim)
    if slot is None or not slot.is_lost:
        return slot
    log.warning("slot %s is created again, as the server had invalidated it", slot.name)
    drop(connection, slot)
    return None


def check_owned(connection: psycopg.Connection, config: Config, claim: LogClaim | None) -> Slot | None:
    """The configured slot, None if there is none. Raises SourceError for one that the pipeline does not own."""
    slot = existing(connection, config)
    if slot is not None and not owned(config, slot, claim):
        raise foreign(slot)
    return slot


def owned(config: Config, slot: Slot, claim: LogClaim | None) -> bool:
    """Whether the pipeline may move and drop the slot: its checkpoint (claim None: it has none) created it, or
    slot.takeover says so.
    """
    return config[SLOT_TAKEOVER] or (claim is not None and claim.owns(slot.confirmed))


def check_unread(connection: psycopg.Connection, config: Config) -> None:
    """Raises SourceError for a slot that has been read: it is not one that a first batch created a moment ago."""
    slot = existing(connection, config)
    query = "SELECT total_txns > 0 FROM pg_stat_replication_slots WHERE slot_name = %s"
    if slot is not None and not config[SLOT_TAKEOVER]:
        row = connection.execute(query, [slot.name]).fetchone()
        if row is not None and row[0]:
            raise foreign(slot)


def foreign(slot: Slot) -> SourceError:
    """A slot that the pipeline's checkpoint did not create, with what is known of whose it is."""
    state = f" ({slot.reason})" if slot.reason else ""
    invalid = f"; the server has invalidated it{state}" if slot.is_lost else ""
    return SourceError(
        f"the slot exists already, and this pipeline's checkpoint did not create it: {slot}{invalid}",
        where=f"slot {slot.name}",
        remedy=f"set slot.name to a name of this pipeline's own. {REMEDY_FOREIGN}",
    )


REMEDY_FOREIGN = (
    "If nobody else needs the slot, slot.takeover=true lets this pipeline have it: a snapshot moves it to its own "
    "position, snapshot.mode=no_data continues from its confirmed one. Or drop it: `tailrace drop --force`"
)


def drop(connection: psycopg.Connection, slot: Slot) -> None:
    """Drop a slot that nobody reads."""
    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot.name])


def xmin(connection: psycopg.Connection, config: Config) -> int | None:
    """The oldest transaction whose catalog rows the slot holds back (pg_replication_slots.catalog_xmin)."""
    row = connection.execute(
        "SELECT catalog_xmin::text::int8 FROM pg_replication_slots WHERE slot_name = %s", [config[SLOT_NAME]]
    ).fetchone()
    return None if row is None else row[0]


def restart(connection: psycopg.Connection, config: Config) -> int | None:
    """From where on the slot keeps the log (pg_replication_slots.restart_lsn)."""
    row = connection.execute(
        "SELECT restart_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [config[SLOT_NAME]]
    ).fetchone()
    return None if row is None or row[0] is None else parse_lsn(row[0])


def create(connection: psycopg.Connection, config: Config) -> tuple[int, str]:
    """Create the configured slot on a replication connection; returns its position and the snapshot it exports.

    The snapshot lives until the connection's next command. Raises SourceError.
    """
    return _create(connection, config, config[SLOT_NAME], config[SLOT_MAX_RETRIES], temporary=False)


def create_temporary(connection: psycopg.Connection, config: Config, *, once: bool = False) -> tuple[int, str]:
    """Create a slot that goes with the connection, for the exact position of an exported snapshot.

    With `once` it is not tried again: the caller does that.
    """
    name = f"{config[SLOT_NAME][:40]}_snapshot_{connection.info.backend_pid}"
    return _create(connection, config, name, 0 if once else config[SLOT_MAX_RETRIES], temporary=True)


def _create(
    connection: psycopg.Connection, config: Config, name: str, retries: int, *, temporary: bool
) -> tuple[int, str]:
    options = "SNAPSHOT 'export'" if connection.info.server_version >= 150000 else "EXPORT_SNAPSHOT"
    if config[SLOT_FAILOVER] and not temporary and connection.info.server_version >= 170000:
        options += ", FAILOVER"
    if connection.info.server_version >= 150000:
        options = f"({options})"
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL {} {}").format(
        sql.Identifier(name), sql.SQL("TEMPORARY" if temporary else ""), sql.SQL(PLUGIN), sql.SQL(options)
    )
    while True:
        blockers: list[Blocker] = []
        try:
            row = _within_limit(connection, config, command, blockers)
            assert row is not None
            return parse_lsn(row[1]), str(row[2])
        except psycopg.Error as error:
            if retries <= 0 or not isinstance(error, psycopg.errors.QueryCanceled):
                waits = f"; it waited for {', '.join(each.what for each in blockers)}" if blockers else ""
                remedy = _remedy(error, blockers)
                raise SourceError(
                    f"cannot create the slot: {first_line(error)}{waits}", where=f"slot {name}", remedy=remedy
                ) from error
            retries -= 1
            log.warning("slot %s could not be created in time; trying again", name)
            time.sleep(config[SLOT_RETRY_DELAY_MS] / 1000)


def _within_limit(
    connection: psycopg.Connection, config: Config, command: sql.Composed, blockers: list[Blocker]
) -> tuple[Any, ...] | None:
    """The command's row, cancelled after internal.create.slot.command.timeout seconds (0 or less: never).

    The server does not apply statement_timeout to commands of replication, so the client has to cancel it. What it
    waits for meanwhile is added to `blockers`.
    """
    seconds, process = config[INTERNAL_CREATE_SLOT_COMMAND_TIMEOUT], connection.info.backend_pid
    with (
        after(seconds, lambda: _cancel(connection)),
        after(WAIT_SECONDS, lambda: blockers.extend(tell_wait(config, process, "making the slot"))),
    ):
        return connection.execute(command).fetchone()


def _cancel(connection: psycopg.Connection) -> None:
    try:
        connection.cancel_safe()
    except psycopg.Error as error:
        log.warning("creating the slot takes too long, and cannot be cancelled: %s", first_line(error))


def _remedy(error: psycopg.Error, blockers: Sequence[Blocker]) -> str:
    if error.sqlstate == "53400":
        return "raise max_replication_slots, or drop slots nobody needs (SELECT * FROM pg_replication_slots)"
    if error.sqlstate == "55000":
        return "set wal_level = logical in postgresql.conf and restart the server"
    if error.sqlstate == "42501":
        return "ALTER ROLE <database.user> REPLICATION"
    remedy = "; ".join(blocker.remedy for blocker in blockers) or (
        "end long open transactions, which keep a slot from being made (SELECT * FROM pg_stat_activity; SELECT * FROM "
        "pg_prepared_xacts)"
    )
    return f"{remedy}, or raise internal.create.slot.command.timeout" if error.sqlstate == "57014" else remedy


def advance(connection: psycopg.Connection, config: Config, lsn: int) -> None:
    """Move the idle slot forward to a snapshot's position."""
    connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [config[SLOT_NAME], format_lsn(lsn)])


def free(connection: psycopg.Connection, config: Config, application: str) -> Slot | None:
    """The configured slot once nobody reads it, None when there is none.

    A dead reader of this very pipeline (same application name) is ended, or one that was still making the slot when its
    client died; a stranger is waited for as slot.max.retries and slot.retry.delay.ms say, then named in a SourceError.
    """
    retries = config[SLOT_MAX_RETRIES]
    slot = existing(connection, config)
    while slot is not None and slot.active_pid is not None:
        if slot.holder in (application, snapshot_application(application)):
            _end(connection, slot)
        elif retries <= 0:
            raise _taken(slot)
        else:
            retries -= 1
            log.warning("%s; waiting for it", _taken(slot).what)
            time.sleep(config[SLOT_RETRY_DELAY_MS] / 1000)
        slot = existing(connection, config)
    return slot


def snapshot_application(application: str) -> str:
    """The name of the connection that makes a pipeline's slot and exports its snapshot."""
    return f"{application} snapshot"


def _taken(slot: Slot) -> SourceError:
    return SourceError(
        f"the slot is held by process {slot.active_pid}, application {slot.holder!r}",
        where=f"slot {slot.name}",
        remedy="stop that reader, or give this pipeline a slot.name of its own",
    )


def _end(connection: psycopg.Connection, slot: Slot) -> None:
    """Terminate the backend of a dead reader of this pipeline, and wait until it has released the slot."""
    log.info("ending process %s, which still holds slot %s for this pipeline", slot.active_pid, slot.name)
    connection.execute("SELECT pg_terminate_backend(%s)", [slot.active_pid])
    deadline = time.monotonic() + _TAKEOVER_SECONDS
    while time.monotonic() < deadline:
        now = find(connection, slot.name)
        if now is None or now.active_pid != slot.active_pid:
            return
        time.sleep(0.02)
    raise _taken(slot)


def stream_parameters(config: Config) -> dict[str, str]:
    """`slot.stream.params` (`k=v;k=v`) as options of START_REPLICATION. Raises ConfigError."""
    given = config[SLOT_STREAM_PARAMS] or ""
    pairs = [pair.partition("=") for pair in given.split(";") if pair.strip()]
    if any(not sign for _, sign, _ in pairs):
        raise ConfigError("pairs of name=value, separated by `;`, are expected", where="slot.stream.params")
    return {name.strip(): value.strip() for name, _, value in pairs}


def last_read(connection: psycopg.Connection, application: str) -> int:
    """The last transaction that the reader has read whole (0: unknown)."""
    row = connection.execute(
        "SELECT max(write_lsn)::text FROM pg_stat_replication WHERE application_name = %s", [application]
    ).fetchone()
    return 0 if row is None or row[0] is None else parse_lsn(row[0])
