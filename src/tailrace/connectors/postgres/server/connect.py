"""Opens connections to PostgreSQL with the same settings everywhere, and translates the server's errors.

A refusal is recognised by its SQLSTATE, since the server's messages are in the server's language. For a login that
fails there are texts as well: libpq passes on the server's message and drops its SQLSTATE, see refusal.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME, DATABASE_HOSTNAME, DATABASE_PORT
from tailrace.connectors.ahead import Patience
from tailrace.connectors.postgres.options import (
    DATABASE_CONNECT_TIMEOUT,
    DATABASE_INITIAL_STATEMENTS,
    DATABASE_LOGIN_TIMEOUT,
    DATABASE_PASSWORD,
    DATABASE_QUERY_TIMEOUT_MS,
    DATABASE_SOCKET_TIMEOUT,
    DATABASE_SSLCERT,
    DATABASE_SSLKEY,
    DATABASE_SSLMODE,
    DATABASE_SSLPASSWORD,
    DATABASE_SSLROOTCERT,
    DATABASE_TCP_KEEP_ALIVE,
    DATABASE_USER,
)
from tailrace.connectors.postgres.server.refusal import state_of_refusal
from tailrace.connectors.postgres.server.silence import Connection, Limit, Watch
from tailrace.errors import SourceError

# Both roads to a value (the log's text and COPY's text) must print alike, whatever the role's or database's settings.
SESSION_SETTINGS = {
    "DateStyle": "ISO",
    "IntervalStyle": "iso_8601",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "lc_monetary": "C",
}
# What holds an exported snapshot is quiet in its transaction for as long as the snapshot is read.
HOLDING_SETTINGS = {"idle_in_transaction_session_timeout": "0"}
# The same for a limit that exists from PostgreSQL 17 on, which older servers refuse as a parameter of a connection.
_UNLIMITED_TRANSACTIONS = (
    "SELECT set_config('transaction_timeout', '0', false) "
    "WHERE current_setting('transaction_timeout', true) IS NOT NULL"
)
# After about a minute without a sign of life from the other host a connection is given up, on either side: the server
# then frees what it held for a client that is gone. Milliseconds, seconds.
_UNACKNOWLEDGED_MS, _PROBE_AFTER_S, _PROBE_EACH_S, _PROBES = 60_000, 30, 10, 3
ALIVE_SETTINGS = {
    "tcp_user_timeout": str(_UNACKNOWLEDGED_MS),
    "tcp_keepalives_idle": str(_PROBE_AFTER_S),
    "tcp_keepalives_interval": str(_PROBE_EACH_S),
    "tcp_keepalives_count": str(_PROBES),
}
# A walsender whose reader is held up by a slow sink in the middle of a stretch should not give up after a minute.
REPLICATION_SETTINGS = {"wal_sender_timeout": "120000"}

_ROOT = "set database.sslrootcert to the file with the certificate of the authority"
# By words of a failed connection, which has no SQLSTATE: libpq's own, and those of a server that speaks English.
_REMEDIES = (
    ("password authentication failed", "set database.user and database.password to a role that may log in"),
    ("no password supplied", "set database.password"),
    ("is not permitted to log in", "ALTER ROLE <database.user> LOGIN"),
    ("no pg_hba.conf entry", "allow this host and role in the server's pg_hba.conf (replication connections as well)"),
    ("does not support SSL", "set ssl = on at the server, or set database.sslmode to prefer or disable"),
    (
        "does not match host name",
        "set database.hostname to a name that the server's certificate has, or database.sslmode to verify-ca, which "
        "compares no names",
    ),
    ("certificate verify failed", f"{_ROOT} that signed the server's certificate"),
    ("root certificate", f"{_ROOT}, or to system for those that this machine trusts"),
    ("certificate required", "set database.sslcert and database.sslkey: the server asks for a client's certificate"),
    ("certificate", "check database.sslmode, database.sslrootcert, database.sslcert and database.sslkey"),
    ("does not exist", "check database.dbname and database.user; `psql -l` lists the databases"),
    ("Connection refused", "check database.hostname and database.port, and that the server runs"),
    ("could not translate host name", "check database.hostname"),
    ("failed to resolve host", "check database.hostname"),
    ("timeout", "check database.hostname, database.port and the firewall between"),
    ("must be superuser or replication role", "ALTER ROLE <database.user> REPLICATION"),
    ("permission denied to start WAL sender", "ALTER ROLE <database.user> REPLICATION"),
)

# The same, of a server that is starting, stopping or out of reach for a moment: worth another try.
_TRANSIENT = (
    "Connection refused",
    "starting up",
    "shutting down",
    "timeout",
    "server closed the connection",
    "due to administrator command",
    "because of crash of another server process",
    "no connection to the server",
    "could not receive data from server",
    "SSL SYSCALL error",
    "SSL connection has been closed",
    "Connection reset",
    "Broken pipe",
    "connection is lost",
    "connection is closed",
    "not yet accepting",
    "in recovery",
    "No such file or directory",
)


def planner_application(application: str) -> str:
    """The name of a planner's connection, by which a reader sees that its pipeline still runs."""
    return f"{application} planner"


def parameters(config: Config, *, replication: bool = False, application: str | None = None) -> dict[str, Any]:
    """libpq's parameters of a connection."""
    settings = {**SESSION_SETTINGS, **HOLDING_SETTINGS, **(REPLICATION_SETTINGS if replication else {})}
    if config[DATABASE_TCP_KEEP_ALIVE]:
        settings |= ALIVE_SETTINGS
    wanted = {
        "host": config[DATABASE_HOSTNAME],
        "port": config[DATABASE_PORT],
        "user": config[DATABASE_USER],
        "password": config[DATABASE_PASSWORD],
        "dbname": config[DATABASE_DBNAME],
        "sslmode": config[DATABASE_SSLMODE],
        "sslcert": config[DATABASE_SSLCERT],
        "sslkey": config[DATABASE_SSLKEY],
        "sslpassword": config[DATABASE_SSLPASSWORD],
        "sslrootcert": config[DATABASE_SSLROOTCERT],
        "keepalives": int(config[DATABASE_TCP_KEEP_ALIVE]),
        "keepalives_idle": _PROBE_AFTER_S,
        "keepalives_interval": _PROBE_EACH_S,
        "keepalives_count": _PROBES,
        "tcp_user_timeout": _UNACKNOWLEDGED_MS,
        "connect_timeout": _connect_seconds(config),
        "client_encoding": "UTF8",
        "application_name": application or "tailrace",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        "replication": "database" if replication else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _connect_seconds(config: Config) -> int:
    """The limit of connecting, logging in included; 0 is none."""
    given = (config[DATABASE_CONNECT_TIMEOUT], config[DATABASE_LOGIN_TIMEOUT])
    return min((seconds for seconds in given if seconds), default=0)


def connect(config: Config, *, replication: bool = False, application: str | None = None) -> Connection:
    """An autocommit connection in the settings that values are read under; it gives up a server that went silent.

    Raises SourceError with what the server said and the remedy; `__cause__` is psycopg's error.
    """
    given = parameters(config, replication=replication, application=application)
    try:
        with ExitStack() as opened:
            connection = Connection.connect(autocommit=True, prepare_threshold=None, **given)
            opened.callback(connection.close)
            connection.patience = patience(config, "pid", connection.info.backend_pid)
            if replication:
                connection.execute(_UNLIMITED_TRANSACTIONS.encode())
            else:
                # A pooler in between gives its clients numbers of its own.
                (number,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (None,)
                connection.patience = patience(config, "pid", number)
                for statement in initial_statements(config):
                    connection.execute(statement.encode())
            opened.pop_all()
            return connection
    except psycopg.Error as error:
        cause = _with_state(error, given)
        raise connection_error(config, cause) from cause


def _with_state(error: psycopg.Error, given: dict[str, Any]) -> psycopg.Error:
    """The error of a failed connection, with the SQLSTATE of the server if its words are not known."""
    if error.sqlstate or _remedy_by_words(error):
        return error
    state = state_of_refusal(given, str(error))
    return error_of(state, str(error)) if state is not None and state in _LOGIN_STATES else error


def patience(config: Config, column: str, value: object) -> Patience:
    """How long to wait for an answer over the connection whose server process pg_stat_activity has so."""
    seconds = config[DATABASE_SOCKET_TIMEOUT]
    return Limit(seconds) if seconds else Watch(parameters(config), column, value)


def initial_statements(config: Config) -> list[str]:
    """What a connection begins with."""
    # `;;` is a literal semicolon (Debezium's documentation of database.initial.statements).
    given = (config[DATABASE_INITIAL_STATEMENTS] or "").replace(";;", "\0").split(";")
    own = [statement.replace("\0", ";") for statement in given if statement.strip()]
    timeout = config[DATABASE_QUERY_TIMEOUT_MS]
    return [_UNLIMITED_TRANSACTIONS, f"SET statement_timeout = {timeout}", *own]


def connection_error(config: Config, error: Exception) -> SourceError:
    """What a connection's refusal means."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    remedy = _LOGIN_STATES.get(state or "") or _remedy_by_words(error) or "see the server's log"
    return SourceError(f"cannot connect: {first_line(error)}", where=address(config), remedy=remedy)


def _remedy_by_words(error: Exception) -> str | None:
    return next((text for sign, text in _REMEDIES if sign in first_line(error)), None)


def address(config: Config) -> str:
    """The database, as errors name it."""
    return f"{config[DATABASE_HOSTNAME]}:{config[DATABASE_PORT]}/{config[DATABASE_DBNAME]}"


def refused(table: str, said: str, state: str | None) -> SourceError:
    """A table's rows that cannot be read; `state` is the SQLSTATE, None for a lost connection."""
    wrong = _SELECTS if (state or "").startswith(_WRONG) else "the server's log says what ended the read"
    remedy = _ROW_REMEDIES.get(state or "", wrong).format(table=table)
    return SourceError(f"the snapshot cannot read the table: {said}", where=table, remedy=remedy)


# Values that an expression cannot take, and what is wrong in the statement itself.
_WRONG = ("22", "42")
_SELECTS = (
    "correct the SELECT of the table: additional-conditions of the signal, or snapshot.select.statement.overrides; "
    "without one, the value that the message names"
)
# The server says "out of shared memory" of its table of locks, and "out of memory" of itself.
_NO_MEMORY = (
    "raise max_locks_per_transaction and restart the server, as a snapshot locks every table that it reads (or capture "
    "fewer tables); if the message does not name shared memory, give the server more memory"
)
# What the server says of a text that it cannot send as UTF-8: in a database in SQL_ASCII it converts nothing, and other
# encodings have bytes that stand for no character.
NOT_UTF8 = (
    psycopg.errors.CharacterNotInRepertoire.sqlstate,
    psycopg.errors.UntranslatableCharacter.sqlstate,
)
_ROW_REMEDIES = {
    psycopg.errors.InsufficientPrivilege.sqlstate: "GRANT SELECT ON {table} TO database.user",
    psycopg.errors.OutOfMemory.sqlstate: _NO_MEMORY,
    **dict.fromkeys(NOT_UTF8, "fix the values that are not valid UTF-8, or exclude the column"),
}


def error_of(state: str, message: str) -> psycopg.Error:
    """psycopg's error for a SQLSTATE that another client library reported."""
    try:
        return psycopg.errors.lookup(state)(message)
    except KeyError:
        return psycopg.DatabaseError(message)


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Turn what the server refuses within the block into a SourceError: what was being done, its words, the remedy."""
    try:
        yield
    except psycopg.Error as error:
        raise SourceError(f"{doing}: {first_line(error)}", remedy=remedy_of(error, "see the server's log")) from error


def remedy_of(error: psycopg.Error, otherwise: str) -> str:
    """How to fix a refusal, whatever was asked."""
    return _STATES.get(error.sqlstate or "", otherwise)


_STATES = {
    **dict.fromkeys(NOT_UTF8, "rename the table, column or label whose name is not valid UTF-8"),
    "28000": "ALTER ROLE <database.user> LOGIN, and allow this host and role in the server's pg_hba.conf",
    "28P01": "set database.user and database.password to a role that may log in",
    "3D000": "check database.dbname; `psql -l` lists the databases",
    "42501": "GRANT database.user what it lacks; `tailrace check` lists it all",
    "53100": "free disk space on the server",
    "53200": _NO_MEMORY,
    "57014": "raise database.query.timeout.ms",
    "53300": "raise max_connections (for replication: max_wal_senders; for one role: its CONNECTION LIMIT), or use "
    "fewer connections",
    "57P03": "wait until the server accepts connections",
    "53400": "raise max_replication_slots, or drop slots nobody needs (SELECT * FROM pg_replication_slots)",
}

# Of a connection alone, whose settings the server can refuse.
_LOGIN_STATES = {
    **_STATES,
    "0A000": "copy the database into one with ENCODING UTF8, if the server cannot convert its encoding",
}


def first_line(error: BaseException) -> str:
    """The first line of a driver's message, without the address it repeats."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].removeprefix("ERROR:").strip()


def is_transient(error: BaseException) -> bool:
    """Whether a failed connection is worth another try (server starting, restarting or out of reach)."""
    cause = error.__cause__ if isinstance(error, SourceError) else error
    if not isinstance(cause, psycopg.OperationalError):
        return False
    if cause.sqlstate:
        # 08: connection; 57P: shut down, crash, cannot connect now; 53300: too many connections.
        return cause.sqlstate[:2] == "08" or cause.sqlstate[:3] == "57P" or cause.sqlstate == "53300"
    return any(sign in str(cause) for sign in _TRANSIENT)


def is_lost(error: BaseException) -> bool:
    """Whether it is the connection that failed, and not what was asked over it."""
    cause = error.__cause__ if isinstance(error, SourceError) else error
    return is_transient(error) or (isinstance(cause, psycopg.OperationalError) and not cause.sqlstate)


# SQLSTATEs, or their classes, that may go away by themselves: connection, rollback, resources, object in use, operator
# intervention, input/output, a transaction that took too long, internal error.
_PASSING = ("08", "40", "53", "55", "57", "58", "25P03", "25P04", "XX000")


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed later, although nobody changes it, a table or a privilege."""
    cause = error.__cause__ if isinstance(error, SourceError) else error
    if not isinstance(cause, psycopg.Error) or isinstance(cause, psycopg.errors.QueryCanceled):
        return False
    return is_lost(cause) or (cause.sqlstate or "").startswith(_PASSING)
