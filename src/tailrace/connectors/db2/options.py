"""The properties of the Db2 connector: each is an object, by which a Config gives its value."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import shared
from tailrace.config.kinds import COUNT, FLAG, LONG, TEXT, choice, optional
from tailrace.config.option import Option, OptionStatus, OptionTable
from tailrace.config.options import databases
from tailrace.connectors.change_tables.options import READS, SCHEMA_CHANGES, VALUES

CONNECT, REFUSED = OptionStatus.CONNECT, OptionStatus.REFUSED
CLASS = "io.debezium.connector.db2.Db2Connector"
LUW, ZOS = "LUW", "ZOS"
CURRENT, OLD = "current", "1.9"
COMMIT, PROCESSING = "commit", "processing"
# Control tables and change tables may be in the schema of the tables that they are for: see Catalog.tables.
SYSTEM_SCHEMAS = "SYS.*|NULLID|(?i:ASNCDC.*)"
_DRIVER = "the driver here is IBM's CLI driver"
_DESCRIBED = "change tables are described by the catalog, so no history of schemas is kept"
_STREAMED = "rows are streamed, and a change table is read once for each range"

CONNECTION = (
    Option("connector.class", optional(choice(CLASS)), None, "Class of the connector."),
    databases.DATABASE_HOSTNAME,
    replace(databases.DATABASE_PORT, default="50000"),
    DATABASE_USER := Option("database.user", optional(TEXT), None, "User."),
    DATABASE_PASSWORD := Option("database.password", optional(TEXT), None, "Its password.", secret=True),
    databases.DATABASE_DBNAME,
    DATABASE_QUERY_TIMEOUT_MS := Option(
        "database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."
    ),
    DRIVER_SECURITY_MECHANISM := Option(
        "driver.securityMechanism",
        optional(choice("3", "4", "7", "9", "11", "13")),
        None,
        "How the password is sent: 3 in the clear, 7 and 9 encrypted, 13 with the data encrypted as well, 11 Kerberos.",
    ),
    DRIVER_SSL_CONNECTION := Option("driver.sslConnection", FLAG, "false", "Use TLS.", protects=True),
    DRIVER_SSL_CERT_LOCATION := Option(
        "driver.sslCertLocation", optional(TEXT), None, "File of the certificate that the server's must be signed with."
    ),
    DRIVER_LOGIN_TIMEOUT := Option("driver.loginTimeout", COUNT, "15", "Time limit for connecting, in seconds."),
    Option("driver.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
)
CHANGES = (
    DB2_PLATFORM := Option(
        "db2.platform",
        choice(LUW, ZOS, otherwise="LUW and ZOS can be read; Db2 for i has no change tables, but journals"),
        LUW,
        "Db2 for Linux, UNIX and Windows, or for z/OS.",
    ),
    CDC_CONTROL_SCHEMA := Option("cdc.control.schema", TEXT, "ASNCDC", "Schema of the control tables."),
    CDC_CHANGE_TABLES_SCHEMA := Option(
        "cdc.change.tables.schema", TEXT, "ASNCDC", "Schema of change tables whose registration names none."
    ),
    Option("z.stop.lsn.ignore", FLAG, "false", "Stop.", CONNECT, "CD_OLD_SYNCHPOINT is never taken for an end"),
    SOURCE_TIMESTAMP_MODE := Option(
        "source.timestamp.mode",
        choice(COMMIT, PROCESSING),
        COMMIT,
        "Time in `source`: of the commit, from IBMSNAP_UOW, or of reading, as the reference engine has it.",
    ),
    STREAMING_QUERY_TIMESPAN_SECONDS := Option(
        "streaming.query.timespan.seconds",
        COUNT,
        "0",
        "A micro-batch reads the commits of so many seconds, by their times in IBMSNAP_UOW; 0: all that are captured.",
    ),
    Option("query.fetch.size", COUNT, "10000", "Rows of a page.", CONNECT, _STREAMED),
)
SNAPSHOT = (
    shared.snapshot_mode("recovery", meaning=" `recovery` continues, and begins nothing."),
    *(each for each in shared.SNAPSHOT if each.name != "snapshot.mode"),
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, _DESCRIBED),
    SNAPSHOT_ISOLATION_MODE := Option(
        "snapshot.isolation.mode",
        choice("repeatable_read", "exclusive", "read_committed", "read_uncommitted"),
        "repeatable_read",
        "Isolation level of reads of tables: RS, RS under a table lock, CS, UR.",
    ),
    SNAPSHOT_LOCKING_MODE := Option(
        "snapshot.locking.mode",
        choice("exclusive", "none", refused={"custom": "use exclusive or none"}),
        "exclusive",
        "Whether the isolation mode `exclusive` locks tables.",
    ),
    SNAPSHOT_LOCK_TIMEOUT_MS := Option(
        "snapshot.lock.timeout.ms",
        LONG,
        "10000",
        "Time limit for a lock, in whole seconds; 0: fail at once, -1: no limit. Repeated as errors.max.retries says.",
    ),
    *READS,
    SCHEMA_CHANGES,
)
SHAPES = (
    COMPAT_VERSION := Option(
        "compat.version", choice(CURRENT, OLD), CURRENT, "Shape of records: of today, or of Debezium 1.9."
    ),
    replace(
        databases.STORE_ONLY_CAPTURED_TABLES_DDL,
        default="true",
        help="Structures of captured tables only.",
        status=CONNECT,
        note="at the start the structures of captured tables are sent, whatever it says",
    ),
)
_OWN = {option.name for option in (*SNAPSHOT, *CHANGES)}
OPTIONS = OptionTable(
    {
        "Connection": CONNECTION,
        "Spark": (*shared.spark("use streaming.query.timespan.seconds"), *SHAPES),
        "Change tables": CHANGES,
        "Filters": shared.FILTERS,
        "Snapshot": SNAPSHOT,
        "Values": VALUES,
        "Masks and propagation": shared.MASKS,
        "Dates and times out of range": shared.OUT_OF_RANGE,
        "Topics": shared.TOPICS,
        "Converters and transforms": shared.CONVERTERS,
        "Signals, notifications, heartbeats": tuple(each for each in shared.SIGNALS if each.name not in _OWN),
        "Operation": shared.RUNTIME,
    }
)
