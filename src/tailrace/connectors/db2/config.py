"""The properties of the Db2 connector, and the checks that concern several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import ADDRESS, COUNT, FLAG, LONG, PORT, TEXT, choice, split_list
from tailrace.config.masks import check_hashes
from tailrace.config.option import Alias, Option, OptionTable, Status
from tailrace.config.overrides import check_overrides
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.change_tables.options import READS, SCHEMA_CHANGES, VALUES
from tailrace.connectors.registry import elsewhere
from tailrace.model.table_id import SCHEMA_TABLE, TableNaming

CONNECT, REFUSED = Status.CONNECT, Status.REFUSED
CLASS = "io.debezium.connector.db2.Db2Connector"
LUW, ZOS = "LUW", "ZOS"
CURRENT, OLD = "current", "1.9"
COMMIT, PROCESSING = "commit", "processing"
# Control tables and change tables may be in the schema of the tables that they are for: see Catalog.tables.
_SYSTEM_SCHEMAS = "SYS.*|NULLID|(?i:ASNCDC.*)"
_DRIVER = "the driver here is IBM's CLI driver"
_DESCRIBED = "change tables are described by the catalog, so no history of schemas is kept"
_STREAMED = "rows are streamed, and a change table is read once for each range"

CONNECTION = (
    Option("connector.class", choice(CLASS), None, "Class of the connector."),
    Option("database.hostname", ADDRESS, None, "Server's host.", required=True),
    Option("database.port", PORT, "50000", "Server's port."),
    Option("database.user", TEXT, None, "User."),
    Option("database.password", TEXT, None, "Its password.", secret=True),
    Option("database.dbname", TEXT, None, "Database to capture.", required=True),
    Option("database.query.timeout.ms", COUNT, "600000", "Time limit for a query; 0 is no limit."),
    Option(
        "driver.securityMechanism",
        choice("3", "4", "7", "9", "11", "13"),
        None,
        "How the password is sent: 3 in the clear, 7 and 9 encrypted, 13 with the data encrypted as well, 11 Kerberos.",
    ),
    Option("driver.sslConnection", FLAG, "false", "Use TLS.", protects=True),
    Option("driver.sslCertLocation", TEXT, None, "File of the certificate that the server's must be signed with."),
    Option("driver.loginTimeout", COUNT, "15", "Time limit for connecting, in seconds."),
    Option("driver.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
    Option("database.*", TEXT, None, "Settings of the Java driver.", CONNECT, _DRIVER),
)
CHANGES = (
    Option(
        "db2.platform",
        choice(LUW, ZOS, otherwise="LUW and ZOS can be read; Db2 for i has no change tables, but journals"),
        LUW,
        "Db2 for Linux, UNIX and Windows, or for z/OS.",
    ),
    Option("cdc.control.schema", TEXT, "ASNCDC", "Schema of the control tables."),
    Option("cdc.change.tables.schema", TEXT, "ASNCDC", "Schema of change tables whose registration names none."),
    Option("z.stop.lsn.ignore", FLAG, "false", "Stop.", CONNECT, "CD_OLD_SYNCHPOINT is never taken for an end"),
    Option(
        "source.timestamp.mode",
        choice(COMMIT, PROCESSING),
        COMMIT,
        "Time in `source`: of the commit, from IBMSNAP_UOW, or of reading, as the reference engine has it.",
    ),
    Option(
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
    Option(
        "snapshot.isolation.mode",
        choice("repeatable_read", "exclusive", "read_committed", "read_uncommitted"),
        "repeatable_read",
        "Isolation level of reads of tables: RS, RS under a table lock, CS, UR.",
    ),
    Option(
        "snapshot.locking.mode",
        choice("exclusive", "none", refused={"custom": "use exclusive or none"}),
        "exclusive",
        "Whether the isolation mode `exclusive` locks tables.",
    ),
    Option(
        "snapshot.lock.timeout.ms",
        LONG,
        "10000",
        "Time limit for a lock, in whole seconds; 0: fail at once, -1: no limit. Repeated as errors.max.retries says.",
    ),
    *READS,
    SCHEMA_CHANGES,
)
SHAPES = (
    Option("compat.version", choice(CURRENT, OLD), CURRENT, "Shape of records: of today, or of Debezium 1.9."),
    Option(
        "schema.history.internal.store.only.captured.tables.ddl",
        FLAG,
        "true",
        "Structures of captured tables only.",
        CONNECT,
        "at the start the structures of captured tables are sent, whatever it says",
        aliases=(Alias("database.history.store.only.captured.tables.ddl"),),
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
_SPAN = "streaming.query.timespan.seconds"
_CHECKS = (shared.check_together, check_signal_table, check_hashes, check_overrides)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a Db2 connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", CURRENT)).strip() == OLD:
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    given = from_mapping(properties)
    naming = TableNaming(
        SCHEMA_TABLE,
        default_schema=given.get("database.user", "").upper(),
        system_schemas=_SYSTEM_SCHEMAS,
        default_database=given.get("database.dbname", ""),
    )
    own = tuple(
        Option(f"{name}.*", TEXT, None, "Settings of the converter.")
        for name in split_list(given.get("converters", ""))
    )
    options = OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
    return resolution.resolve(properties, options, (*_CHECKS, _check_database, *checks), naming, elsewhere)


def _check_database(config: Config) -> Iterator[Problem]:
    if not config.text("database.dbname").strip():
        yield Problem("database.dbname", "A value is required", "name the database to capture")
    if config.number(_SPAN) == 1:
        yield Problem(
            _SPAN, "One second is shorter than commits are apart", "set 0, or 2 and more; 120 is a good value"
        )
