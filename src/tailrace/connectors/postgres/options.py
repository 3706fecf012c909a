"""The properties of the PostgreSQL connector: each is an object, by which a Config gives its value."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import shared
from tailrace.config.kinds import (
    COUNT,
    DIGITS,
    FLAG,
    IDENTITIES,
    INT,
    LONG,
    LONG_COUNT,
    PATTERNS,
    POSITIVE_INT,
    TEXT,
    choice,
    matching,
    optional,
)
from tailrace.config.option import JVM, Alias, Option, OptionStatus, OptionTable
from tailrace.config.options import databases
from tailrace.config.plugin_groups import LOCKS, QUERIES

CONNECT, REFUSED = OptionStatus.CONNECT, OptionStatus.REFUSED

_CLASS = "io.debezium.connector.postgresql.PostgresConnector"
_STRUCT_MAKER = "io.debezium.connector.postgresql.PostgresSourceInfoStructMaker"
_NO_WAIT = "a confirmation is sent without waiting for an answer"
_CORES = "tables are read in ranges of 64 MB, as many at once as Spark has cores"
_PGOUTPUT = "set plugin.name=pgoutput, which every PostgreSQL since 10 has; it gives the same events"
_WAL2JSON = ("wal2json", "wal2json_streaming", "wal2json_rds", "wal2json_rds_streaming")
_OWN = "Entry point of the group"
_SSL = "set database.sslmode=verify-full and database.sslrootcert: they check the server's certificate"
_SLOT = matching(
    "text",
    r"[a-z0-9_]{1,63}",
    "Valid replication slot name must contain only digits, lowercase characters and underscores with length <= 63",
)

CONNECTION = (
    Option("connector.class", choice(_CLASS), _CLASS, "Kept so that a Debezium configuration works as it is."),
    databases.DATABASE_HOSTNAME,
    databases.DATABASE_PORT,
    DATABASE_USER := Option(
        "database.user", TEXT, None, "Role to log in as; needs LOGIN and REPLICATION.", required=True
    ),
    DATABASE_PASSWORD := Option("database.password", optional(TEXT), None, "Password of that role.", secret=True),
    databases.DATABASE_DBNAME,
    DATABASE_SSLMODE := Option(
        "database.sslmode",
        choice("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
        "prefer",
        "How the connection is encrypted and checked.",
        protects=True,
    ),
    DATABASE_SSLCERT := Option("database.sslcert", optional(TEXT), None, "File with the client's certificate."),
    DATABASE_SSLKEY := Option("database.sslkey", optional(TEXT), None, "File with the client's key."),
    DATABASE_SSLPASSWORD := Option("database.sslpassword", optional(TEXT), None, "Password of that key.", secret=True),
    DATABASE_SSLROOTCERT := Option("database.sslrootcert", optional(TEXT), None, "File with the root certificates."),
    Option("database.sslfactory", optional(TEXT), None, "Java class.", REFUSED, _SSL),
    Option(
        "database.ssl",
        optional(choice("false", refused={"true": _SSL})),
        None,
        "The Java driver's switch for TLS.",
        CONNECT,
        "database.sslmode decides",
    ),
    DATABASE_TCP_KEEP_ALIVE := Option(
        "database.tcpKeepAlive",
        FLAG,
        "true",
        "TCP keep-alive probes; with them each side notices within a minute that the other host is gone.",
    ),
    DATABASE_CONNECT_TIMEOUT := Option(
        "database.connectTimeout", COUNT, "10", "Time limit for connecting, in seconds; 0 is no limit."
    ),
    DATABASE_LOGIN_TIMEOUT := Option(
        "database.loginTimeout", COUNT, "0", "The same as database.connectTimeout; the lower of the two is used."
    ),
    DATABASE_SOCKET_TIMEOUT := Option(
        "database.socketTimeout",
        COUNT,
        "0",
        "Seconds of silence after which a connection is given up, whatever the server does; 0: once the server does "
        "nothing for it.",
    ),
    DATABASE_INITIAL_STATEMENTS := Option(
        "database.initial.statements",
        optional(TEXT),
        None,
        "Statements run on each new connection except the replication one; `;` separates, `;;` is a literal semicolon.",
    ),
    DATABASE_QUERY_TIMEOUT_MS := Option(
        "database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."
    ),
    Option(
        "database.connection.factory.class",
        optional(TEXT),
        None,
        "Java class.",
        REFUSED,
        "Java classes cannot be loaded; remove it and set database.hostname and its companions",
    ),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, "the driver here is libpq"),
)

REPLICATION = (
    PLUGIN_NAME := Option(
        "plugin.name",
        choice("pgoutput", refused={"decoderbufs": _PGOUTPUT, **dict.fromkeys(_WAL2JSON, _PGOUTPUT)}),
        "pgoutput",
        "Output plug-in of the slot.",
    ),
    SLOT_NAME := Option("slot.name", _SLOT, "debezium", "Replication slot; created if it is missing."),
    SLOT_DROP_ON_STOP := Option(
        "slot.drop.on.stop",
        FLAG,
        "false",
        "Drop the slot when `tailrace run` is stopped or ends: changes until the next start are lost. Refused in a "
        "query of your own.",
        aliases=(Alias("slot.drop_on_stop"),),
    ),
    SLOT_TAKEOVER := Option(
        "slot.takeover",
        FLAG,
        "false",
        "Use the slot though this pipeline's checkpoint did not create it, or another program has moved it. A snapshot "
        "moves it; with snapshot.mode=no_data the log is read from its confirmed position on.",
    ),
    SLOT_FAILOVER := Option(
        "slot.failover", FLAG, "false", "Create the slot as a failover slot (PostgreSQL 17, primary)."
    ),
    SLOT_STREAM_PARAMS := Option("slot.stream.params", optional(TEXT), None, "Parameters of the stream, `k=v;k=v`."),
    SLOT_MAX_RETRIES := Option("slot.max.retries", COUNT, "6", "Attempts to get a slot that is in use."),
    SLOT_RETRY_DELAY_MS := Option("slot.retry.delay.ms", LONG_COUNT, "10000", "Pause between them."),
    PUBLICATION_NAME := Option("publication.name", TEXT, "dbz_publication", "Publication to stream."),
    PUBLICATION_AUTOCREATE_MODE := Option(
        "publication.autocreate.mode",
        choice("all_tables", "disabled", "filtered", "no_tables"),
        "all_tables",
        "What is done about a missing publication.",
    ),
    PUBLISH_VIA_PARTITION_ROOT := Option(
        "publish.via.partition.root", FLAG, "false", "Changes of a partition as the root's; at creation only."
    ),
    REPLICA_IDENTITY_AUTOSET_VALUES := Option(
        "replica.identity.autoset.values", IDENTITIES, None, "Replica identities to set."
    ),
    OFFSET_MISMATCH_STRATEGY := Option(
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
    LSN_FLUSH_MODE := Option(
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
    STATUS_UPDATE_INTERVAL_MS := Option(
        "status.update.interval.ms", POSITIVE_INT, "10000", "Pause between status updates to the server."
    ),
    XMIN_FETCH_INTERVAL_MS := Option(
        "xmin.fetch.interval.ms", LONG_COUNT, "0", "Above 0: `source.xmin` is filled; 0: it is not."
    ),
    INTERNAL_CREATE_SLOT_COMMAND_TIMEOUT := Option(
        "internal.create.slot.command.timeout",
        INT,
        "90",
        "Time limit for creating slot and publication, in seconds; a slot is retried slot.max.retries times. "
        "0 or less is no limit.",
    ),
    MESSAGE_PREFIX_INCLUDE_LIST := Option(
        "message.prefix.include.list", PATTERNS, None, "Prefixes of logical messages to capture.", protects=True
    ),
    MESSAGE_PREFIX_EXCLUDE_LIST := Option(
        "message.prefix.exclude.list",
        PATTERNS,
        None,
        "Prefixes of logical messages to leave out.",
        excluded_by="message.prefix.include.list",
        protects=True,
    ),
    Option("internal.log.position.check.enable", FLAG, "true", "Check the stored position.", CONNECT, "always done"),
)

OLD, NEWER = "1.7", "3.7"
COMPATIBILITY = Option(
    "compat.version",
    choice("current", OLD, NEWER),
    "current",
    "Shape of records: of Debezium 3.6; of 3.7, whose geometric types are structs; or of 1.7 "
    "(schema.name.adjustment.mode is avro then, unless it is given, and extended.headers.enabled false).",
)

TYPES = (
    INTERVAL_HANDLING_MODE := Option(
        "interval.handling.mode", choice("numeric", "string"), "numeric", "How INTERVAL appears."
    ),
    HSTORE_HANDLING_MODE := Option("hstore.handling.mode", choice("json", "map"), "json", "How HSTORE appears."),
    MONEY_FRACTION_DIGITS := Option(
        "money.fraction.digits", DIGITS, "2", "Digits of MONEY after the point; below 2 it is rounded half up."
    ),
    INCLUDE_UNKNOWN_DATATYPES := Option(
        "include.unknown.datatypes", FLAG, "false", "Send types without a mapping as the bytes of their text."
    ),
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
        optional(choice(_STRUCT_MAKER, otherwise=JVM)),
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
    SNAPSHOT_LOCKING_MODE := Option(
        "snapshot.locking.mode",
        choice("none", "shared", "custom"),
        "none",
        "Locks that are held until the snapshot is read; shared keeps tables from being altered.",
    ),
    SNAPSHOT_LOCKING_MODE_CUSTOM_NAME := Option(
        "snapshot.locking.mode.custom.name", optional(TEXT), None, f"{_OWN} `{LOCKS}`, for `custom`."
    ),
    SNAPSHOT_LOCK_TIMEOUT_MS := Option(
        "snapshot.lock.timeout.ms", LONG, "10000", "Time limit for each of these locks; 0 or less is none."
    ),
    SNAPSHOT_QUERY_MODE := Option(
        "snapshot.query.mode", choice("select_all", "custom"), "select_all", "How tables are read."
    ),
    SNAPSHOT_QUERY_MODE_CUSTOM_NAME := Option(
        "snapshot.query.mode.custom.name", optional(TEXT), None, f"{_OWN} `{QUERIES}`, for `custom`."
    ),
    databases.SNAPSHOT_SELECT_STATEMENT_OVERRIDES,
    databases.SNAPSHOT_SELECT_STATEMENT_OVERRIDES_TABLE,
    replace(
        databases.SNAPSHOT_FETCH_SIZE,
        default="10240",
        help="Rows of a round trip.",
        status=CONNECT,
        note="rows are streamed by COPY",
    ),
    replace(databases.LEGACY_SNAPSHOT_MAX_THREADS, status=CONNECT, note=_CORES),
    replace(
        databases.SNAPSHOT_TABLES_ORDER_BY_ROW_COUNT,
        help="Order of tables by how many rows they are thought to have.",
    ),
    Option("snapshot.new.tables", optional(TEXT), None, "Obsolete.", CONNECT, "it is obsolete"),
)

REPLICA = (
    ROWS_FOR_REPLICA := Option(
        "rows.for.replica",
        FLAG,
        "false",
        "Rows for a sink that keeps tables: generated columns that the log lacks are computed, a table is read without "
        "those that inherit from it, of a partitioned table and its partitions the half that the log names is "
        "captured, and a table whose changes the publication lacks is incomplete, and ends no run. A replica's default "
        "is true.",
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
