"""Statements and commands by which an administrator registers tables for capture.

The statements do what the procedure ADDTABLE of Debezium's documentation does, which needs a C compiler to set up.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.db2.options import CDC_CHANGE_TABLES_SCHEMA, CDC_CONTROL_SCHEMA, DATABASE_USER
from tailrace.connectors.db2.statements import control_schema, folded, name, qualified, text
from tailrace.connectors.db2.statements import table as table_name
from tailrace.connectors.sql_tables.tables import SqlColumn
from tailrace.model.table import TableId

_CHANGES = """
CREATE TABLE {changes} AS (SELECT CAST(X'' AS VARCHAR(16) FOR BIT DATA) AS IBMSNAP_COMMITSEQ,
  CAST(X'' AS VARCHAR(16) FOR BIT DATA) AS IBMSNAP_INTENTSEQ, CAST('' AS CHAR(1)) AS IBMSNAP_OPERATION, {columns}
  FROM {source} AS t) WITH NO DATA
"""
_REGISTER = """
INSERT INTO {control}.IBMSNAP_REGISTER (SOURCE_OWNER, SOURCE_TABLE, SOURCE_VIEW_QUAL, GLOBAL_RECORD, SOURCE_STRUCTURE,
  SOURCE_CONDENSED, SOURCE_COMPLETE, CD_OWNER, CD_TABLE, PHYS_CHANGE_OWNER, PHYS_CHANGE_TABLE, DISABLE_REFRESH,
  ARCH_LEVEL, CONFLICT_LEVEL, CHG_UPD_TO_DEL_INS, CHGONLY, RECAPTURE, OPTION_FLAGS, STOP_ON_ERROR, STATE)
  VALUES ({owner}, {table}, 0, 'N', 1, 'Y', 'Y', {cd_owner}, {cd_table}, {cd_owner}, {cd_table}, 0,
  '0801', '0', 'Y', 'N', 'Y', 'NNNN', 'Y', 'A')
"""


def control_tables(config: Config) -> list[str]:
    """Commands that create the control tables and start the capture program; the database must log to an archive."""
    database, schema = config[DATABASE_DBNAME], control_schema(config)
    return [
        "asnclp  # then: ASNCLP SESSION SET TO SQL REPLICATION; SET RUN SCRIPT NOW STOP ON SQL ERROR ON;",
        f"#   SET SERVER CAPTURE TO DB {database}; SET CAPTURE SCHEMA SOURCE {schema};",
        "#   CREATE CONTROL TABLES FOR CAPTURE SERVER IN UW UOW;",
        f"asncap capture_server={database} capture_schema={schema}",
    ]


def registration(config: Config, table: TableId, columns: Sequence[SqlColumn]) -> list[str]:
    """The statements that register a table: log its changes in full, its change table, its row in the register.

    Of a large object the change table has an indicator that it has changed (IBM, "Large object data types"); it cannot
    have XML. Columns that are IMPLICITLY HIDDEN are captured as well.
    """
    schema, change_table = folded(config[CDC_CHANGE_TABLES_SCHEMA]), f"CDC_{table.schema}_{table.table}"
    changes = qualified(schema, change_table)
    order = "IBMSNAP_COMMITSEQ, IBMSNAP_INTENTSEQ"
    listed = [
        f"CAST(NULL AS CHAR(1)) AS {name(each.name)}" if each.type.is_large else f"t.{name(each.name)}"
        for each in columns
        if each.type.name != "XML"
    ]
    values = {
        "control": name(control_schema(config)),
        "owner": text(table.schema),
        "table": text(table.table),
        "cd_owner": text(schema),
        "cd_table": text(change_table),
    }
    return [
        f"ALTER TABLE {table_name(table)} DATA CAPTURE CHANGES",
        _CHANGES.strip().format(changes=changes, source=table_name(table), columns=", ".join(listed)),
        f"CREATE UNIQUE INDEX {qualified(schema, f'IX{change_table}')} ON {changes} ({order})",
        _REGISTER.strip().format(**values),
    ]


def grants(config: Config, tables: Sequence[str]) -> list[str]:
    """The statements that let the pipeline's user read tables, given as SQL names."""
    user = name(config.need(DATABASE_USER).upper())
    return [f"GRANT SELECT ON {table} TO USER {user}" for table in tables]


def reinit(config: Config) -> str:
    """The command that makes the capture program read its register again."""
    database, schema = config[DATABASE_DBNAME], control_schema(config)
    return f"asnccmd capture_server={database} capture_schema={schema} reinit"


def reinit_statement(config: Config) -> str:
    """The same by the function of Debezium's documentation."""
    return f"VALUES {name(config[CDC_CONTROL_SCHEMA])}.ASNCDCSERVICES('reinit', 'asncdc')"
