"""The properties that several databases have, and code that is written for all of them reads.

A connector takes them into its table as they are, or with a default and words of its own.
"""

from __future__ import annotations

from tailrace.config.kinds import COUNT, FLAG, HOST, NAMES, PORT, TEXT, choice
from tailrace.config.option import Alias, Option

DATABASE_HOSTNAME = Option("database.hostname", HOST, None, "Server's host.", required=True)
DATABASE_PORT = Option("database.port", PORT, "5432", "Server's port.")
DATABASE_DBNAME = Option("database.dbname", TEXT, None, "Database to capture.", required=True)
DATABASE_NAMES = Option(
    "database.names", NAMES, None, "Databases to capture.", required=True, counterpart="database.dbname"
)

SNAPSHOT_SELECT_STATEMENT_OVERRIDES = Option(
    "snapshot.select.statement.overrides", NAMES, None, "Tables to read by your own SELECT.", protects=True
)
SNAPSHOT_SELECT_STATEMENT_OVERRIDES_TABLE = Option(
    "snapshot.select.statement.overrides.<table>", TEXT, None, "The SELECT of that table.", protects=True
)
SNAPSHOT_FETCH_SIZE = Option(
    "snapshot.fetch.size", COUNT, "10000", "Rows that are taken from the connection at once; 0: the default."
)
LEGACY_SNAPSHOT_MAX_THREADS = Option("legacy.snapshot.max.threads", FLAG, "false", "One table a reader.")
SNAPSHOT_TABLES_ORDER_BY_ROW_COUNT = Option(
    "snapshot.tables.order.by.row.count",
    choice("disabled", "ascending", "descending"),
    "disabled",
    "Order of tables by their rows.",
)

STORE_ONLY_CAPTURED_TABLES_DDL = Option(
    "schema.history.internal.store.only.captured.tables.ddl",
    FLAG,
    "false",
    "At the start, send schema-change events for captured tables only.",
    aliases=(Alias("database.history.store.only.captured.tables.ddl"),),
)
STORE_ONLY_CAPTURED_DATABASES_DDL = Option(
    "schema.history.internal.store.only.captured.databases.ddl",
    FLAG,
    "false",
    "At the start, send schema-change events for tables in captured schemas only.",
    aliases=(Alias("database.history.store.only.captured.databases.ddl"),),
)
