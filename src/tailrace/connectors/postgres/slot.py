"""The replication slot: made, described, taken over from a dead reader of the same pipeline, dropped."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres.connect import first_line
from tailrace.connectors.postgres.position import format_lsn, parse_lsn
from tailrace.errors import ConfigError, SourceError

log = logging.getLogger(__name__)

PLUGIN = "pgoutput"
_TAKEOVER_SECONDS = 10.0


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

    @property
    def is_lost(self) -> bool:
        """Whether the server has invalidated it, for the reason it gives from PostgreSQL 17 on."""
        return self.wal_status == "lost"


def find(connection: psycopg.Connection, name: str) -> Slot | None:
    """The slot of that name, None when there is none."""
    row = connection.execute(
        "SELECT s.slot_name, s.plugin, s.database, s.confirmed_flush_lsn::text, s.active_pid, a.application_name, "
        "s.wal_status, to_jsonb(s) ->> 'invalidation_reason' FROM pg_replication_slots s "
        "LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = %s",
        [name],
    ).fetchone()
    if row is None:
        return None
    plugin, database, confirmed, *rest = row[1:]
    return Slot(name, plugin, database, None if confirmed is None else parse_lsn(confirmed), *rest)


def existing(connection: psycopg.Connection, config: Config) -> Slot | None:
    """The configured slot if it exists. Raises SourceError when it is of another kind."""
    name, database = config.text("slot.name"), config.text("database.dbname")
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


def usable(connection: psycopg.Connection, config: Config) -> Slot | None:
    """The configured slot for a pipeline that begins; one that the server has invalidated is dropped."""
    slot = existing(connection, config)
    if slot is None or not slot.is_lost:
        return slot
    log.warning("slot %s is made anew, as the server had invalidated it", slot.name)
    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot.name])
    return None


def xmin(connection: psycopg.Connection, config: Config) -> int | None:
    """The oldest transaction whose catalog rows the slot holds back (pg_replication_slots.catalog_xmin)."""
    row = connection.execute(
        "SELECT catalog_xmin::text::int8 FROM pg_replication_slots WHERE slot_name = %s", [config.text("slot.name")]
    ).fetchone()
    return None if row is None else row[0]


def create(connection: psycopg.Connection, config: Config) -> tuple[int, str]:
    """Create the configured slot on a replication connection; returns its position and the snapshot it exports.

    The snapshot lives until the connection's next command. Raises SourceError.
    """
    return _create(connection, config, config.text("slot.name"), temporary=False)


def create_temporary(connection: psycopg.Connection, config: Config) -> tuple[int, str]:
    """Create a slot that goes with the connection, for the exact position of an exported snapshot."""
    return _create(
        connection, config, f"{config.text('slot.name')[:40]}_snapshot_{connection.info.backend_pid}", temporary=True
    )


def _create(connection: psycopg.Connection, config: Config, name: str, *, temporary: bool) -> tuple[int, str]:
    options = "SNAPSHOT 'export'" if connection.info.server_version >= 150000 else "EXPORT_SNAPSHOT"
    if config.flag("slot.failover") and not temporary and connection.info.server_version >= 170000:
        options += ", FAILOVER"
    if connection.info.server_version >= 150000:
        options = f"({options})"
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL {} {}").format(
        sql.Identifier(name), sql.SQL("TEMPORARY" if temporary else ""), sql.SQL(PLUGIN), sql.SQL(options)
    )
    retries = config.number("slot.max.retries")
    while True:
        try:
            row = _within_limit(connection, config, command)
            assert row is not None
            return parse_lsn(row[1]), str(row[2])
        except psycopg.Error as error:  # noqa: PERF203  # the loop is the retrying
            if retries <= 0 or not isinstance(error, psycopg.errors.QueryCanceled):
                raise SourceError(
                    f"cannot create the slot: {first_line(error)}", where=f"slot {name}", remedy=_remedy(error)
                ) from error
            retries -= 1
            log.warning("slot %s could not be created in time; trying again", name)
            time.sleep(config.number("slot.retry.delay.ms") / 1000)


def _within_limit(connection: psycopg.Connection, config: Config, command: sql.Composed) -> tuple[Any, ...] | None:
    """The command's row, cancelled after internal.create.slot.command.timeout seconds (0 or less: never).

    The server does not apply statement_timeout to commands of replication, so the client has to cancel it.
    """
    seconds = config.number("internal.create.slot.command.timeout")
    if seconds <= 0:
        return connection.execute(command).fetchone()
    timer = threading.Timer(seconds, _cancel, [connection])
    timer.daemon = True
    timer.start()
    try:
        return connection.execute(command).fetchone()
    finally:
        timer.cancel()


def _cancel(connection: psycopg.Connection) -> None:
    try:
        connection.cancel_safe()
    except psycopg.Error as error:
        log.warning("creating the slot takes too long, and cannot be cancelled: %s", first_line(error))


def _remedy(error: psycopg.Error) -> str:
    if error.sqlstate == "53400":
        return "raise max_replication_slots, or drop slots nobody needs (SELECT * FROM pg_replication_slots)"
    if error.sqlstate == "55000":
        return "set wal_level = logical in postgresql.conf and restart the server"
    if error.sqlstate == "42501":
        return "ALTER ROLE <database.user> REPLICATION"
    remedy = "end long open transactions, which keep a slot from being made (SELECT * FROM pg_stat_activity)"
    return f"{remedy}, or raise internal.create.slot.command.timeout" if error.sqlstate == "57014" else remedy


def advance(connection: psycopg.Connection, config: Config, lsn: int) -> None:
    """Move the idle slot forward to a snapshot's position."""
    connection.execute(
        "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [config.text("slot.name"), format_lsn(lsn)]
    )


def free(connection: psycopg.Connection, config: Config, application: str) -> Slot | None:
    """The configured slot once nobody reads it, None when there is none.

    A dead reader of this very pipeline (same application name) is ended, or one that was still making the slot when its
    client died; a stranger is waited for as slot.max.retries and slot.retry.delay.ms say, then named in a SourceError.
    """
    retries = config.number("slot.max.retries")
    slot = existing(connection, config)
    while slot is not None and slot.active_pid is not None:
        if slot.holder in (application, snapshot_application(application)):
            _end(connection, slot)
        elif retries <= 0:
            raise _taken(slot)
        else:
            retries -= 1
            log.warning("%s; waiting for it", _taken(slot).what)
            time.sleep(config.number("slot.retry.delay.ms") / 1000)
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
    """End the backend of a reader of this pipeline that is no more, and wait until it has let go."""
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
    given = config.optional("slot.stream.params") or ""
    pairs = [pair.partition("=") for pair in given.split(";") if pair.strip()]
    if any(not sign for _, sign, _ in pairs):
        raise ConfigError("pairs of name=value, separated by `;`, are expected", where="slot.stream.params")
    return {name.strip(): value.strip() for name, _, value in pairs}
