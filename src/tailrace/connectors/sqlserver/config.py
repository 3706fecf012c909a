"""The properties of the SQL Server connector, and the checks that concern several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.kinds import (
    ADDRESS,
    COUNT,
    FLAG,
    LONG,
    NAMES,
    PATTERNS,
    PORT,
    TEXT,
    choice,
    split_list,
)
from tailrace.config.masks import check_hashes
from tailrace.config.option import Alias, Option, OptionTable, Status
from tailrace.config.overrides import check_overrides
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.change_tables.options import READS, SCHEMA_CHANGES, VALUES
from tailrace.connectors.registry import elsewhere
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, TableNaming

CURRENT, OLD = "current", "2.3"
CONNECT, REFUSED = Status.CONNECT, Status.REFUSED
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
    Option("connector.class", choice(CLASS), None, "Class of the connector."),
    Option("database.hostname", ADDRESS, None, "Server's host.", required=True),
    Option("database.port", PORT, "1433", "Server's port."),
    Option("database.instance", TEXT, None, "Named instance; a given port goes before it."),
    Option("database.user", TEXT, None, "Login."),
    Option("database.password", TEXT, None, "Its password.", secret=True),
    Option("database.names", NAMES, None, "Databases to capture.", required=True),
    Option("database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."),
    Option(
        "database.sqlserver.agent.status.query",
        TEXT,
        AGENT_QUERY,
        "Query that returns whether SQL Server Agent runs; `#db` or `[#db]` stands for the database.",
    ),
    Option(
        "driver.encrypt",
        choice("true", "mandatory", "false", "optional", refused={"strict": "TDS 8 is not spoken here; use true"}),
        "false",
        "Encrypt the connection; without it the login alone is, if the server can.",
        aliases=(Alias("database.encrypt"),),
        protects=True,
    ),
    Option(
        "driver.trustServerCertificate",
        FLAG,
        "false",
        "Take any certificate of the server. Else one is needed that is issued for its host by somebody whom "
        "driver.trustStore has. Of a connection that is not encrypted none is compared.",
        aliases=(Alias("database.trustServerCertificate"),),
        protects=True,
    ),
    Option(
        "driver.trustStore",
        TEXT,
        None,
        "PEM file of trusted certificates, instead of those of the system.",
        aliases=(Alias("database.trustStore"),),
    ),
    Option(
        "driver.hostNameInCertificate",
        TEXT,
        None,
        "Host that the certificate must be issued for, instead of database.hostname.",
        aliases=(Alias("database.hostNameInCertificate"),),
    ),
    Option("driver.serverCertificate", TEXT, None, "Certificate.", REFUSED, "put it into driver.trustStore"),
    Option("driver.trustStorePassword", TEXT, None, "Password.", CONNECT, "a PEM file has none", secret=True),
    Option("driver.applicationIntent", choice("ReadOnly", "ReadWrite"), None, "ReadOnly: a readable replica is read."),
    Option("driver.loginTimeout", COUNT, "15", "Time limit for connecting, in seconds."),
    Option("driver.authentication", choice("SqlPassword", "NotSpecified", otherwise=_LOGIN), None, "How to log in."),
    Option("driver.integratedSecurity", choice("false", refused={"true": _LOGIN}), None, "Kerberos."),
    Option("driver.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
)
CHANGES = (
    Option(
        "data.query.mode",
        choice("direct", "function"),
        "direct",
        "Times of transactions come from a table, or by a function of the server; changes from change tables.",
    ),
    Option(
        "max.iteration.transactions",
        COUNT,
        "0",
        "Most transactions of each database in a micro-batch; 0 is no limit. Debezium's default is 500, but a "
        "micro-batch costs more than one of its iterations.",
    ),
    Option("streaming.fetch.size", COUNT, "0", "Rows of a page.", CONNECT, _STREAMED),
    Option("streaming.lsn.optimization", FLAG, None, "Obsolete.", CONNECT, "it is obsolete"),
    Option("compat.version", choice(CURRENT, OLD), CURRENT, "Shape of records: of today, or of Debezium 2.3."),
    Option(
        "capture.instance.auto",
        FLAG,
        "false",
        "Create a capture instance when a captured table gets new columns, and drop it when a newer one is read. "
        "The user must be a member of db_owner.",
    ),
    Option(
        "computed.columns",
        choice("include", "exclude"),
        "include",
        "Computed columns, for which change tables always have null: with their values in snapshots and null in "
        "changes, or left out. Replicas leave them out by default.",
    ),
    Option("internal.capture.instance.include.list", PATTERNS, None, "Capture instances to read.", protects=True),
    Option(
        "internal.capture.instance.exclude.list",
        PATTERNS,
        None,
        "Capture instances to leave out.",
        excluded_by="internal.capture.instance.include.list",
        protects=True,
    ),
    Option(
        "schema.history.internal.store.only.captured.tables.ddl",
        FLAG,
        "false",
        "At the start, send schema-change events for captured tables only.",
        aliases=(Alias("database.history.store.only.captured.tables.ddl"),),
    ),
    Option(
        "schema.history.internal.store.only.captured.databases.ddl",
        FLAG,
        "false",
        "At the start, send schema-change events for tables in captured schemas only.",
        aliases=(Alias("database.history.store.only.captured.databases.ddl"),),
    ),
)
SNAPSHOT = (
    shared.snapshot_mode(
        *("recovery", "when_needed_no_data"),
        meaning=" `recovery` continues, and begins nothing; `when_needed_no_data` continues at the end of the log when "
        "the position is lost.",
    ),
    *(each for each in shared.SNAPSHOT if each.name != "snapshot.mode"),
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, _DESCRIBED),
    Option(
        "snapshot.isolation.mode",
        choice("repeatable_read", "exclusive", "snapshot", "read_committed", "read_uncommitted"),
        "repeatable_read",
        "Isolation level of reads of tables.",
    ),
    Option(
        "snapshot.locking.mode",
        choice("exclusive", "none", refused={"custom": "use exclusive or none"}),
        "exclusive",
        "Whether tables are locked while their columns are read (repeatable_read and exclusive).",
    ),
    Option("snapshot.lock.timeout.ms", LONG, "10000", "Time limit for a lock; 0: fail at once, -1: no limit."),
    *READS,
    Option("incremental.snapshot.option.recompile", FLAG, "false", "Append OPTION(RECOMPILE) to reads of chunks."),
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
_CHECKS = (shared.check_together, check_hashes, check_overrides)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a SQL Server connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", CURRENT)).strip() == OLD:
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    given = from_mapping(properties)
    names = split_list(given.get("database.names", ""))
    naming = replace(NAMING, default_database=names[0]) if len(names) == 1 else NAMING
    own = tuple(
        Option(f"{name}.*", TEXT, None, "Settings of the converter.")
        for name in split_list(given.get("converters", ""))
    )
    options = OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
    return resolution.resolve(properties, options, (*_CHECKS, _check_names, *checks), naming, elsewhere)


def _check_names(config: Config) -> Iterator[Problem]:
    if not config.names("database.names"):
        yield Problem("database.names", "A value is required", "name the databases to capture")
