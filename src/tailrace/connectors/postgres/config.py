"""The properties of the PostgreSQL connector, and the checks that concern several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.entrypoints import LOCKS, QUERIES
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import (
    ADDRESS,
    COUNT,
    DIGITS,
    FLAG,
    IDENTITIES,
    INT,
    LONG,
    LONG_COUNT,
    NAMES,
    PATTERNS,
    PORT,
    POSITIVE_INT,
    TEXT,
    choice,
    matching,
    split_list,
)
from tailrace.config.masks import check_hashes
from tailrace.config.option import Alias, Option, OptionTable, Status
from tailrace.config.overrides import check_overrides
from tailrace.config.processors import check_processors
from tailrace.config.resolve import Check, Config
from tailrace.connectors.registry import elsewhere
from tailrace.model.table_id import TableNaming

CONNECT, REFUSED = Status.CONNECT, Status.REFUSED

_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
_STRUCT_MAKER = "io.debezium.connector.postgresql.PostgresSourceInfoStructMaker"
_NO_WAIT = "a confirmation is sent without waiting for an answer"
_CORES = "tables are read in ranges of 64 MB, as many at once as Spark has cores"
_PGOUTPUT = "set plugin.name=pgoutput, which every PostgreSQL since 10 has; it gives the same events"
_WAL2JSON = ("wal2json", "wal2json_streaming", "wal2json_rds", "wal2json_rds_streaming")
_DRIVER_HEARTBEAT_MS = 600_000
_OWN = "Entry point of the group"
_SSL = "set database.sslmode=verify-full and database.sslrootcert: they check the server's certificate"
_SLOT = matching(
    "text",
    r"[a-z0-9_]{1,63}",
    "Valid replication slot name must contain only digits, lowercase characters and underscores with length <= 63",
)

CONNECTION = (
    Option("connector.class", choice(_CLASS), _CLASS, "Kept so that a Debezium configuration works as it is."),
    Option("database.hostname", ADDRESS, None, "Server's host.", required=True),
    Option("database.port", PORT, "5432", "Server's port."),
    Option("database.user", TEXT, None, "Role to log in as; needs LOGIN and REPLICATION.", required=True),
    Option("database.password", TEXT, None, "Password of that role.", secret=True),
    Option("database.dbname", TEXT, None, "Database to capture.", required=True),
    Option(
        "database.sslmode",
        choice("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
        "prefer",
        "How the connection is encrypted and checked.",
        protects=True,
    ),
    Option("database.sslcert", TEXT, None, "File with the client's certificate."),
    Option("database.sslkey", TEXT, None, "File with the client's key."),
    Option("database.sslpassword", TEXT, None, "Password of that key.", secret=True),
    Option("database.sslrootcert", TEXT, None, "File with the root certificates."),
    Option("database.sslfactory", TEXT, None, "Java class.", REFUSED, _SSL),
    Option(
        "database.ssl",
        choice("false", refused={"true": _SSL}),
        None,
        "The Java driver's switch for TLS.",
        CONNECT,
        "database.sslmode decides",
    ),
    Option(
        "database.tcpKeepAlive",
        FLAG,
        "true",
        "TCP keep-alive probes; with them each side notices within a minute that the other host is gone.",
    ),
    Option("database.connectTimeout", COUNT, "10", "Time limit for connecting, in seconds; 0 is no limit."),
    Option("database.loginTimeout", COUNT, "0", "The same as database.connectTimeout; the lower of the two is used."),
    Option(
        "database.socketTimeout",
        COUNT,
        "0",
        "Seconds of silence after which a connection is given up, whatever the server does; 0: once the server does "
        "nothing for it.",
    ),
    Option(
        "database.initial.statements",
        TEXT,
        None,
        "Statements run on each new connection except the replication one; `;` separates, `;;` is a literal semicolon.",
    ),
    Option("database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."),
    Option(
        "database.connection.factory.class",
        TEXT,
        None,
        "Java class.",
        REFUSED,
        "Java classes cannot be loaded; remove it and set database.hostname and its companions",
    ),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, "the driver here is libpq"),
)

REPLICATION = (
    Option(
        "plugin.name",
        choice("pgoutput", refused={"decoderbufs": _PGOUTPUT, **dict.fromkeys(_WAL2JSON, _PGOUTPUT)}),
        "pgoutput",
        "Output plug-in of the slot.",
    ),
    Option("slot.name", _SLOT, "debezium", "Replication slot; created if it is missing."),
    Option(
        "slot.drop.on.stop",
        FLAG,
        "false",
        "Drop the slot when `tailrace run` is stopped or ends: changes until the next start are lost. Refused in a "
        "query of your own.",
        aliases=(Alias("slot.drop_on_stop"),),
    ),
    Option(
        "slot.takeover",
        FLAG,
        "false",
        "Use the slot though this pipeline's checkpoint did not create it, or another program has moved it. A snapshot "
        "moves it; with snapshot.mode=no_data the log is read from its confirmed position on.",
    ),
    Option("slot.failover", FLAG, "false", "Create the slot as a failover slot (PostgreSQL 17, primary)."),
    Option("slot.stream.params", TEXT, None, "Parameters of the stream, `k=v;k=v`."),
    Option("slot.max.retries", COUNT, "6", "Attempts to get a slot that is in use."),
    Option("slot.retry.delay.ms", LONG_COUNT, "10000", "Pause between them."),
    Option("publication.name", TEXT, "dbz_publication", "Publication to stream."),
    Option(
        "publication.autocreate.mode",
        choice("all_tables", "disabled", "filtered", "no_tables"),
        "all_tables",
        "What is done about a missing publication.",
    ),
    Option("publish.via.partition.root", FLAG, "false", "Changes of a partition as the root's; at creation only."),
    Option("replica.identity.autoset.values", IDENTITIES, None, "Replica identities to set."),
    Option(
        "offset.mismatch.strategy",
        choice("no_validation", "trust_offset", "trust_slot", "trust_greater_lsn"),
        "no_validation",
        "When the slot has moved beyond the offset: an error, or with trust_slot and trust_greater_lsn a warning.",
        aliases=(
            Alias(
                "internal.slot.seek.to.known.offset.on.start",
                {"true": "trust_offset", "false": "no_validation"},
            ),
        ),
    ),
    Option(
        "lsn.flush.mode",
        choice("connector", "manual", "connector_and_driver"),
        "connector",
        "Who confirms positions to the server; manual: nobody here. connector_and_driver sends a heartbeat every ten "
        "minutes, unless heartbeat.interval.ms or provide.transaction.metadata is set.",
        aliases=(Alias("flush.lsn.source", {"true": "connector", "false": "manual"}),),
    ),
    Option("lsn.flush.timeout.ms", LONG_COUNT, "30000", "Time limit for a confirmation.", CONNECT, _NO_WAIT),
    Option(
        "lsn.flush.timeout.action", choice("fail", "warn", "ignore"), "fail", "What to do beyond it.", CONNECT, _NO_WAIT
    ),
    Option("status.update.interval.ms", POSITIVE_INT, "10000", "Pause between status updates to the server."),
    Option("xmin.fetch.interval.ms", LONG_COUNT, "0", "Above 0: `source.xmin` is filled; 0: it is not."),
    Option(
        "internal.create.slot.command.timeout",
        INT,
        "90",
        "Time limit for creating slot and publication, in seconds; a slot is retried slot.max.retries times. "
        "0 or less is no limit.",
    ),
    Option("message.prefix.include.list", PATTERNS, None, "Prefixes of logical messages to capture.", protects=True),
    Option(
        "message.prefix.exclude.list",
        PATTERNS,
        None,
        "Prefixes of logical messages to leave out.",
        excluded_by="message.prefix.include.list",
        protects=True,
    ),
    Option("internal.log.position.check.enable", FLAG, "true", "Check the stored position.", CONNECT, "always done"),
)

COMPATIBILITY = Option(
    "compat.version",
    choice("current", "1.7"),
    "current",
    "Shape of records: today's, or that of Debezium 1.7 (schema.name.adjustment.mode is avro then, unless it is given, "
    "and extended.headers.enabled false).",
)

TYPES = (
    Option("interval.handling.mode", choice("numeric", "string"), "numeric", "How INTERVAL appears."),
    Option("hstore.handling.mode", choice("json", "map"), "json", "How HSTORE appears."),
    Option("money.fraction.digits", DIGITS, "2", "Digits of MONEY after the point; below 2 it is rounded half up."),
    Option("include.unknown.datatypes", FLAG, "false", "Send types without a mapping as the bytes of their text."),
    Option(
        "schema.refresh.mode",
        choice("columns_diff", "columns_diff_exclude_unchanged_toast"),
        "columns_diff",
        "When schemas are read again.",
        CONNECT,
        "the log announces each schema",
    ),
    Option(
        "sourceinfo.struct.maker",
        choice(_STRUCT_MAKER, otherwise=shared.JVM),
        None,
        "Java class.",
        CONNECT,
        "there is one",
    ),
)

SNAPSHOT = (
    *shared.SNAPSHOT,
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, "the log has the schemas"),
    Option(
        "snapshot.isolation.mode",
        choice("serializable", "repeatable_read", "read_committed", "read_uncommitted"),
        "serializable",
        "Isolation of the snapshot's transaction.",
        CONNECT,
        "the slot's exported snapshot is used",
    ),
    Option(
        "snapshot.locking.mode",
        choice("none", "shared", "custom"),
        "none",
        "Locks that are held until the snapshot is read; shared keeps tables from being altered.",
    ),
    Option("snapshot.locking.mode.custom.name", TEXT, None, f"{_OWN} `{LOCKS}`, for `custom`."),
    Option("snapshot.lock.timeout.ms", LONG, "10000", "Time limit for each of these locks; 0 or less is none."),
    Option("snapshot.query.mode", choice("select_all", "custom"), "select_all", "How tables are read."),
    Option("snapshot.query.mode.custom.name", TEXT, None, f"{_OWN} `{QUERIES}`, for `custom`."),
    Option("snapshot.select.statement.overrides", NAMES, None, "Tables to read by your own SELECT.", protects=True),
    Option("snapshot.select.statement.overrides.<table>", TEXT, None, "The SELECT of that table.", protects=True),
    Option("snapshot.fetch.size", COUNT, "10240", "Rows of a round trip.", CONNECT, "rows are streamed by COPY"),
    Option("legacy.snapshot.max.threads", FLAG, "false", "One table a reader.", CONNECT, _CORES),
    Option(
        "snapshot.tables.order.by.row.count",
        choice("disabled", "ascending", "descending"),
        "disabled",
        "Order of tables by how many rows they are thought to have.",
    ),
    Option("snapshot.new.tables", TEXT, None, "Obsolete.", CONNECT, "it is obsolete"),
)

REPLICA = (
    Option(
        "rows.for.replica",
        FLAG,
        "false",
        "Rows for a sink that keeps tables: generated columns that the log lacks are computed, a table is read without "
        "those that inherit from it, and of a partitioned table and its partitions the half that the log names is "
        "captured. A replica's default is true.",
    ),
)

OPTIONS = OptionTable(
    {
        "Connection": CONNECTION,
        "Spark": shared.SPARK,
        "Replication": REPLICATION,
        "Filters": shared.FILTERS,
        "Snapshot": SNAPSHOT,
        "Replicas": REPLICA,
        "Values": (COMPATIBILITY, *shared.VALUES, *TYPES),
        "Masks and propagation": shared.MASKS,
        "Dates and times out of range": shared.OUT_OF_RANGE,
        "Topics": shared.TOPICS,
        "Converters and transforms": shared.CONVERTERS,
        "Signals, notifications, heartbeats": shared.SIGNALS,
        "Operation": shared.RUNTIME,
    }
)

NAMING = TableNaming(
    default_schema="public",
    system_schemas="pg_catalog|information_schema|pg_toast.*|pg_temp.*",
    system_tables=("spatial_ref_sys",),
)

_CHECKS = (
    shared.check_together,
    check_signal_table,
    check_hashes,
    check_processors,
    check_overrides,
)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a PostgreSQL connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", "current")).strip() == "1.7":
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    converters = split_list(from_mapping(properties).get("converters", ""))
    return _with_heartbeats(
        resolution.resolve(properties, _with_settings(converters), (*_CHECKS, *checks), NAMING, elsewhere)
    )


def _with_heartbeats(config: Config) -> Config:
    """Where the driver confirms positions, there are heartbeats (PostgresConnectorConfig)."""
    has_others = config.number("heartbeat.interval.ms") or config.flag("provide.transaction.metadata")
    if config.text("lsn.flush.mode") != "connector_and_driver" or has_others:
        return config
    return replace(config, values={**config.values, "heartbeat.interval.ms": _DRIVER_HEARTBEAT_MS})


def _with_settings(converters: list[str]) -> OptionTable:
    """The table with the settings of converters of one's own, whose names only the configuration knows."""
    own = tuple(Option(f"{name}.*", TEXT, None, "Settings of the converter.") for name in converters)
    return OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
