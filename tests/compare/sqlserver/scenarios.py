"""Random scenarios of SQL Server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from tests.compare.beats import BINARY, Beats
from tests.compare.change_tables import RandomScenario
from tests.compare.options import OUTBOX_NAMES, some
from tests.compare.rows import Column, Kind, Table, random_columns
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
    OUTBOX_NAMES,
    BINARY,
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
    """Write the scenario of a seed into an empty folder, as Generator.write says."""
    chance = Random(seed)
    tables = [random_table(chance, *name) for name in (("dbo", "t0"), ("dbo", "t1"), ("sales", "t2"))]
    properties = {**CONNECTION, "include.schema.changes": "false", **some(chance, _CHOICES, 0.12)}
    if chance.random() < 0.12:
        tables.append(random_table(chance, "dbo", "t3", "testdb2"))
        properties["database.names"] = "${dbname},testdb2"
        properties.pop("provide.transaction.metadata", None)  # one after the other, as the reference comes to them
    Scenario(chance, tables, properties, Beats.of(seed, "sqlserver")).write(folder)


class Scenario(RandomScenario):
    signals, marks, outbox = "dbo.debezium_signal", "dbo.marks", "dbo.outbox"
    beats = "dbo.beats"
    begin, ends = "BEGIN TRANSACTION", ("COMMIT", "COMMIT", "ROLLBACK")
    kinds = KINDS

    def __init__(self, chance: Random, tables: list[Table], properties: Mapping[str, str], beats: Beats) -> None:
        super().__init__(chance, tables, properties, beats)
        if self._with_signals and "c" in self._properties.get("skipped.operations", ""):
            del self._properties["skipped.operations"]  # the reference then sees no signal
        if self._with_signals and self._properties["include.schema.changes"] == "true":
            # It tells of tables that filters leave out, when a signal names them.
            for name in ("schema.include.list", "table.exclude.list"):
                self._properties.pop(name, None)

    def _setup(self) -> str:
        return f"CREATE SCHEMA sales;\n{super()._setup()}"

    def captured(self, table: Table) -> str:
        return enable(table.schema, table.name, database=table.database)

    def _helper(self, table: str, columns: Sequence[str]) -> list[str]:
        listed = ", ".join(f"{column} VARCHAR(2048)" for column in columns[1:])
        schema, _, name = table.partition(".")
        return [f"CREATE TABLE {table} ({columns[0]} VARCHAR(64) PRIMARY KEY, {listed})", enable(schema, name)]

    def _named(self, table: Table) -> str:
        return f"testdb.{table.schema}.{table.name}"

    def _signals_named(self) -> str:
        return f"${{dbname}}.{self.signals}"

    def _beats_named(self) -> str:
        return f"${{dbname}}.{self.beats}"

    def _captured_beats(self) -> list[str]:
        return [enable("dbo", "beats")]

    def altered(self, table: Table) -> list[str]:
        draw, start = self._chance.random(), f"ALTER TABLE {table.quoted}"
        plain = [column for column in table.given if not column.is_key and column.default is None]
        short = [column for column in plain if column.kind.sql in _WIDER and not column.required]
        if draw < 0.25 and len(plain) > 1:
            column = self._chance.choice(plain)
            table.columns.remove(column)
            altered = f"{start} DROP COLUMN {table.quote(column.name)}"
        elif draw < 0.5 and short:
            column = self._chance.choice(short)
            altered = f"{start} ALTER COLUMN {table.quote(column.name)} {_WIDER[column.kind.sql]}"
        else:
            table.columns.append(Column("added", self._chance.choice(self.kinds)))
            altered = f"{start} ADD {table.ddl(table.columns[-1])}"
        return [altered, enable(table.schema, table.name, f"{table.schema}_{table.name}_v2", table.database)]


_WIDER = {"VARCHAR(40)": "VARCHAR(80)", "SMALLINT": "INT", "INT": "BIGINT", "DECIMAL(10,2)": "DECIMAL(14,2)"}


def random_table(chance: Random, schema: str, name: str, database: str = "") -> Table:
    columns = random_columns(chance, KINDS, _NAMES, _ODD)
    key = chance.choices(("primary", "unique", None), (8, 1, 1))[0]
    if chance.random() < 0.15:
        is_key = not any(column.is_key for column in columns) and chance.random() < 0.5
        columns.append(Column("counted", Kind("INT", ()), is_key=is_key, made="INT IDENTITY(10,5) NOT NULL"))
    if chance.random() < 0.15:
        made = chance.choice(("AS ([n] * 2)", "AS ([n] + 1) PERSISTED"))
        columns.insert(chance.randrange(len(columns)), Column("computed", Kind("INT", ()), made=made))
    return Table(schema, name, columns, key, _quote, database=database)


def enable(schema: str, table: str, instance: str | None = None, database: str = "") -> str:
    named = f", @capture_instance = N'{instance}'" if instance else ""
    place = f"@source_schema = N'{schema}', @source_name = N'{table}'"
    procedure = f"{database}.sys.sp_cdc_enable_table" if database else "sys.sp_cdc_enable_table"
    return f"EXEC {procedure} {place}, @role_name = NULL, @supports_net_changes = 0{named}"


def _quote(name: str) -> str:
    return f"[{name}]"
