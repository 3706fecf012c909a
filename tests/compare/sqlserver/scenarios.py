"""Random scenarios of SQL Server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.compare.rows import Column, RandomScenario, Table, random_columns, some
from tests.compare.sqlserver.types import KINDS

ENGINE = {
    "driver.encrypt": "false",
    "poll.interval.ms": "100",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "schema.history.internal.file.filename": "${work}/history.jsonl",
}

CONNECTION = {
    "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
    "database.hostname": "${host}",
    "database.port": "${port}",
    "database.user": "${user}",
    "database.password": "${password}",
    "database.names": "${dbname}",
    "driver.encrypt": "false",
    "topic.prefix": "server1",
}

MARK = ""

_OF_STRUCTURE = r"^server1\[\d+\] op=None .*: value\.payload\.source\."
_PAGE = "docs/connectors/sqlserver.md#differences"
EXPLAINED = (
    (rf"{_OF_STRUCTURE}(schema|table): ", _PAGE),
    (rf"{_OF_STRUCTURE}event_serial_no: expected null", _PAGE),
)

_NAMES = ("id", "name", "total", "note", "made", "flag", "code", "data", "price")
_ODD = ("mixed case", "order", "da-sh", "ümlaut", "a.b", "1st")
_CHOICES = {
    "time.precision.mode": (
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ),
    "decimal.handling.mode": ("precise", "double", "string"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
    "data.query.mode": ("direct", "function"),
    "tombstones.on.delete": ("false",),
    "skipped.operations": ("c", "u", "d", "u,d", "none"),
    "provide.transaction.metadata": ("true",),
    "include.schema.changes": ("true",),
    "snapshot.mode": ("no_data", "always", "when_needed"),
    "schema.name.adjustment.mode": ("avro", "avro_unicode"),
    "field.name.adjustment.mode": ("avro", "avro_unicode"),
    "extended.headers.enabled": ("false",),
    "topic.delimiter": ("_",),
    "max.iteration.transactions": ("0", "1"),
    "streaming.fetch.size": ("3",),
    "snapshot.isolation.mode": ("snapshot", "read_committed", "read_uncommitted", "exclusive"),
    "column.exclude.list": ("dbo.t1.note", "dbo.*.(total|price)", "dbo.t0.id"),
    "message.key.columns": ("dbo.t0:n", "dbo.t1:n;sales.t2:n", "(.*).t0:n"),
    "column.propagate.source.type": (".*", "dbo.t0.(name|total|made)"),
    "datatype.propagate.source.type": (".+[.]varchar,.+[.]decimal", ".+[.]int,.+[.]datetime2"),
    "skip.messages.without.change": ("true",),
    "snapshot.include.collection.list": ("${dbname}.dbo.t0", "${dbname}.sales.*"),
    "table.exclude.list": ("dbo.t1",),
    "schema.include.list": ("dbo",),
    "unavailable.value.placeholder": ("(gone)",),
}


def write(seed: int, folder: Path) -> None:
    """See Generator.write."""
    chance = Random(seed)
    tables = [_table(chance, *name) for name in (("dbo", "t0"), ("dbo", "t1"), ("sales", "t2"))]
    properties = {**CONNECTION, "include.schema.changes": "false", **some(chance, _CHOICES, 0.12)}
    _Scenario(chance, tables, properties).write(folder)


class _Scenario(RandomScenario):
    signals, marks, database = "dbo.debezium_signal", "dbo.marks", "testdb."
    begin, ends = "BEGIN TRANSACTION", ("COMMIT", "COMMIT", "ROLLBACK")
    kinds = KINDS

    def _setup(self) -> str:
        return f"CREATE SCHEMA sales;\n{super()._setup()}"

    def _captured(self, table: Table) -> str:
        return _enable(table.schema, table.name)

    def _helper(self, table: str, columns: Sequence[str]) -> list[str]:
        listed = ", ".join(f"{column} VARCHAR(2048)" for column in columns[1:])
        schema, _, name = table.partition(".")
        return [f"CREATE TABLE {table} ({columns[0]} VARCHAR(64) PRIMARY KEY, {listed})", _enable(schema, name)]

    def _altered(self, table: Table, column: Column) -> list[str]:
        second = _enable(table.schema, table.name, f"{table.schema}_{table.name}_v2")
        return [f"ALTER TABLE {table.quoted} ADD {table.ddl(column)}", second]


def _table(chance: Random, schema: str, name: str) -> Table:
    columns = random_columns(chance, KINDS, _NAMES, _ODD)
    key = chance.choices(("primary", "unique", None), (8, 1, 1))[0]
    return Table(schema, name, columns, key, _quote)


def _enable(schema: str, table: str, instance: str | None = None) -> str:
    named = f", @capture_instance = N'{instance}'" if instance else ""
    place = f"@source_schema = N'{schema}', @source_name = N'{table}'"
    return f"EXEC sys.sp_cdc_enable_table {place}, @role_name = NULL, @supports_net_changes = 0{named}"


def _quote(name: str) -> str:
    return f"[{name}]"
