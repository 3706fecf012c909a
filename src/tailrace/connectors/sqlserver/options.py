"""The properties of the SQL Server connector: each is an object, by which a Config gives its value."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import shared
from tailrace.config.kinds import (
    COUNT,
    FLAG,
    LONG,
    PATTERNS,
    TEXT,
    choice,
    optional,
)
from tailrace.config.option import Alias, Option, OptionStatus, OptionTable
from tailrace.config.options import databases
from tailrace.connectors.change_tables.options import READS, SCHEMA_CHANGES, VALUES
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableNaming

CURRENT, OLD = "current", "2.3"
CONNECT, REFUSED = OptionStatus.CONNECT, OptionStatus.REFUSED
CLASS = "io.debezium.connector.sqlserver.SqlServerConnector"
NAMING = TableNaming(
    DATABASE_SCHEMA_TABLE,
    default_schema="dbo",
    system_schemas="cdc|sys|INFORMATION_SCHEMA",
    system_tables=("systranschemas",),
    has_brackets=True,
)
AGENT_QUERY = (
    "SELECT CASE WHEN dss.[status]=4 THEN 1 ELSE 0 END AS isRunning FROM #db.sys.dm_server_services dss "
    "WHERE dss.[servicename] LIKE N'SQL Server Agent (%';"
)
_STREAMED = "rows are streamed, and a change table is read once for each range"
_DESCRIBED = "capture instances describe the rows of their change tables, so no history of schemas is kept"
_DRIVER = "the driver here is FreeTDS"
_LOGIN = "give a user and a password of the server; Entra ID and Kerberos cannot be used"

CONNECTION = (
    Option("connector.class", optional(choice(CLASS)), None, "Class of the connector."),
    databases.DATABASE_HOSTNAME,
    replace(databases.DATABASE_PORT, default="1433"),
    DATABASE_INSTANCE := Option(
        "database.instance", optional(TEXT), None, "Named instance; a given port goes before it."
    ),
    DATABASE_USER := Option("database.user", optional(TEXT), None, "Login."),
    DATABASE_PASSWORD := Option("database.password", optional(TEXT), None, "Its password.", secret=True),
    databases.DATABASE_NAMES,
    DATABASE_QUERY_TIMEOUT_MS := Option(
        "database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."
    ),
    DATABASE_SQLSERVER_AGENT_STATUS_QUERY := Option(
        "database.sqlserver.agent.status.query",
        TEXT,
        AGENT_QUERY,
        "Query that returns whether SQL Server Agent runs; `#db` or `[#db]` stands for the database.",
    ),
    DRIVER_ENCRYPT := Option(
        "driver.encrypt",
        choice("true", "mandatory", "false", "optional", refused={"strict": "TDS 8 is not spoken here; use true"}),
        "false",
        "Encrypt the connection; without it the login alone is, if the server can.",
        aliases=(Alias("database.encrypt"),),
        protects=True,
    ),
    DRIVER_TRUST_SERVER_CERTIFICATE := Option(
        "driver.trustServerCertificate",
        FLAG,
        "false",
        "Take any certificate of the server. Else one is needed that is issued for its host by somebody whom "
        "driver.trustStore has. Of a connection that is not encrypted none is compared.",
        aliases=(Alias("database.trustServerCertificate"),),
        protects=True,
    ),
    DRIVER_TRUST_STORE := Option(
        "driver.trustStore",
        optional(TEXT),
        None,
        "PEM file of trusted certificates, instead of those of the system.",
        aliases=(Alias("database.trustStore"),),
    ),
    DRIVER_HOST_NAME_IN_CERTIFICATE := Option(
        "driver.hostNameInCertificate",
        optional(TEXT),
        None,
        "Host that the certificate must be issued for, instead of database.hostname.",
        aliases=(Alias("database.hostNameInCertificate"),),
    ),
    Option("driver.serverCertificate", optional(TEXT), None, "Certificate.", REFUSED, "put it into driver.trustStore"),
    Option("driver.trustStorePassword", optional(TEXT), None, "Password.", CONNECT, "a PEM file has none", secret=True),
    DRIVER_APPLICATION_INTENT := Option(
        "driver.applicationIntent",
        optional(choice("ReadOnly", "ReadWrite")),
        None,
        "ReadOnly: a readable replica is read.",
    ),
    DRIVER_LOGIN_TIMEOUT := Option("driver.loginTimeout", COUNT, "15", "Time limit for connecting, in seconds."),
    DRIVER_AUTHENTICATION := Option(
        "driver.authentication",
        optional(choice("SqlPassword", "NotSpecified", otherwise=_LOGIN)),
        None,
        "How to log in.",
    ),
    DRIVER_INTEGRATED_SECURITY := Option(
        "driver.integratedSecurity", optional(choice("false", refused={"true": _LOGIN})), None, "Kerberos."
    ),
    Option("driver.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
)
CHANGES = (
    DATA_QUERY_MODE := Option(
        "data.query.mode",
        choice("direct", "function"),
        "direct",
        "Times of transactions come from a table, or by a function of the server; changes from change tables.",
    ),
    MAX_ITERATION_TRANSACTIONS := Option(
        "max.iteration.transactions",
        COUNT,
        "0",
        "Most transactions of each database in a micro-batch; 0 is no limit. Debezium's default is 500, but a "
        "micro-batch costs more than one of its iterations.",
    ),
    Option("streaming.fetch.size", COUNT, "0", "Rows of a page.", CONNECT, _STREAMED),
    Option("streaming.lsn.optimization", optional(FLAG), None, "Obsolete.", CONNECT, "it is obsolete"),
    COMPAT_VERSION := Option(
        "compat.version", choice(CURRENT, OLD), CURRENT, "Shape of records: of today, or of Debezium 2.3."
    ),
    CAPTURE_INSTANCE_AUTO := Option(
        "capture.instance.auto",
        FLAG,
        "false",
        "Create a capture instance when a captured table gets new columns, and drop it when a newer one is read. "
        "The user must be a member of db_owner.",
    ),
    COMPUTED_COLUMNS := Option(
        "computed.columns",
        choice("include", "exclude"),
        "include",
        "Computed columns, for which change tables always have null: with their values in snapshots and null in "
        "changes, or left out. Replicas leave them out by default.",
    ),
    INTERNAL_CAPTURE_INSTANCE_INCLUDE_LIST := Option(
        "internal.capture.instance.include.list", PATTERNS, None, "Capture instances to read.", protects=True
    ),
    INTERNAL_CAPTURE_INSTANCE_EXCLUDE_LIST := Option(
        "internal.capture.instance.exclude.list",
        PATTERNS,
        None,
        "Capture instances to leave out.",
        excluded_by="internal.capture.instance.include.list",
        protects=True,
    ),
    databases.STORE_ONLY_CAPTURED_TABLES_DDL,
    databases.STORE_ONLY_CAPTURED_DATABASES_DDL,
)
SNAPSHOT = (
    shared.snapshot_mode(
        *("recovery", "when_needed_no_data"),
        meaning=" `recovery` continues, and begins nothing; `when_needed_no_data` continues at the end of the log when "
        "the position is lost.",
    ),
    *(each for each in shared.SNAPSHOT if each.name != "snapshot.mode"),
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, _DESCRIBED),
    SNAPSHOT_ISOLATION_MODE := Option(
        "snapshot.isolation.mode",
        choice("repeatable_read", "exclusive", "snapshot", "read_committed", "read_uncommitted"),
        "repeatable_read",
        "Isolation level of reads of tables.",
    ),
    SNAPSHOT_LOCKING_MODE := Option(
        "snapshot.locking.mode",
        choice("exclusive", "none", refused={"custom": "use exclusive or none"}),
        "exclusive",
        "Whether tables are locked while their columns are read (repeatable_read and exclusive).",
    ),
    SNAPSHOT_LOCK_TIMEOUT_MS := Option(
        "snapshot.lock.timeout.ms", LONG, "10000", "Time limit for a lock; 0: fail at once, -1: no limit."
    ),
    *READS,
    INCREMENTAL_SNAPSHOT_OPTION_RECOMPILE := Option(
        "incremental.snapshot.option.recompile", FLAG, "false", "Append OPTION(RECOMPILE) to reads of chunks."
    ),
    SCHEMA_CHANGES,
)
# Those of the shared properties that other defaults or other words suit.
_OWN = {option.name for option in (*SNAPSHOT, *CHANGES)}
OPTIONS = OptionTable(
    {
        "Connection": CONNECTION,
        "Spark": shared.spark("use max.iteration.transactions"),
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
