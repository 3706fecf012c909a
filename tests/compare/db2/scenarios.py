"""Random scenarios of Db2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.compare.beats import BINARY, Beats
from tests.compare.change_tables import RandomScenario
from tests.compare.db2.types import KINDS
from tests.compare.options import OUTBOX_NAMES, some
from tests.compare.rows import Column, Kind, Table, random_columns

ENGINE = {
    "database.query.timeout.ms": "0",
    "poll.interval.ms": "100",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "schema.history.internal.file.filename": "${work}/history.jsonl",
}

CONNECTION = {
    "connector.class": "io.debezium.connector.db2.Db2Connector",
    "database.hostname": "${host}",
    "database.port": "${port}",
    "database.user": "${user}",
    "database.password": "${password}",
    "database.dbname": "${dbname}",
    "topic.prefix": "db2",
}

MARK = ""

EXPLAINED = (OUTBOX_NAMES, BINARY)

_NAMES = ("ID", "NAME", "TOTAL", "NOTE", "MADE", "FLAG", "CODE", "DATA", "PRICE")
_ODD = ("mixed case", "ORDER", "da-sh", "a.b", "1ST")
REINIT = "VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc')"
_CHOICES = {
    "time.precision.mode": ("adaptive", "connect", "isostring", "microseconds", "nanoseconds"),
    "decimal.handling.mode": ("precise", "double", "string"),
    "tombstones.on.delete": ("false",),
    "skipped.operations": ("c", "u", "d", "u,d", "none"),
    "provide.transaction.metadata": ("true",),
    "include.schema.changes": ("true",),
    "snapshot.mode": ("no_data", "always", "when_needed"),
    "schema.name.adjustment.mode": ("avro", "avro_unicode"),
    "field.name.adjustment.mode": ("avro", "avro_unicode"),
    "extended.headers.enabled": ("false",),
    "topic.delimiter": ("_",),
    "column.exclude.list": ("MYSCHEMA.T1.NOTE", "MYSCHEMA.*.(TOTAL|PRICE)", "MYSCHEMA.T0.ID"),
    "message.key.columns": ("MYSCHEMA.T0:N", "MYSCHEMA.T1:N;MYSCHEMA.T2:N"),
    "column.propagate.source.type": (".*", "MYSCHEMA.T0.(NAME|TOTAL|MADE)"),
    "skip.messages.without.change": ("true",),
    "table.include.list": ("MYSCHEMA.T0,MYSCHEMA.T2,MYSCHEMA.(MARKS|OUTBOX|DEBEZIUM_SIGNAL)", "MYSCHEMA.*"),
}


def write(seed: int, folder: Path) -> None:
    """Write the scenario of a seed into an empty folder, as Generator.write says."""
    chance = Random(seed)
    tables = [random_table(chance, f"T{number}") for number in range(3)]
    properties = {
        **CONNECTION,
        "table.include.list": "MYSCHEMA.*",
        "include.schema.changes": "false",
        **some(chance, _CHOICES, 0.12),
    }
    Scenario(chance, tables, properties, Beats.of(seed, "db2")).write(folder)


class Scenario(RandomScenario):
    signals, marks, outbox = "MYSCHEMA.DEBEZIUM_SIGNAL", "MYSCHEMA.MARKS", "MYSCHEMA.OUTBOX"
    begin, ends = "BEGIN", ("COMMIT", "COMMIT", "ROLLBACK")
    kinds = KINDS

    def _setup(self) -> str:
        return f"{super()._setup()}{REINIT};\n"

    def captured(self, table: Table) -> str:
        return f"CALL ASNCDC.ADDTABLE('MYSCHEMA', '{table.name}')"

    def _helper(self, table: str, columns: Sequence[str]) -> list[str]:
        listed = ", ".join(f"{column} VARCHAR(2048)" for column in columns[1:])
        schema, _, name = table.partition(".")
        created = f"CREATE TABLE {table} ({columns[0]} VARCHAR(64) NOT NULL PRIMARY KEY, {listed})"
        return [created, f"CALL ASNCDC.ADDTABLE('{schema}', '{name}')"]

    def _named(self, table: Table) -> str:
        return f"MYSCHEMA.{table.name}"

    def altered(self, table: Table) -> list[str]:
        column = Column("ADDED", self._chance.choice(self.kinds))
        register = "UPDATE ASNCDC.IBMSNAP_REGISTER SET STATE = '{}' WHERE SOURCE_TABLE = '" + table.name + "'"
        added = f"ADD COLUMN {table.ddl(column)}"
        table.columns.append(column)
        return [
            *(register.format("I"), REINIT),
            *(f"ALTER TABLE {table.quoted} {added}", f"ALTER TABLE ASNCDC.CDC_MYSCHEMA_{table.name} {added}"),
            *(register.format("A"), REINIT),
            # With each change that the reference reads it takes up the structure of one of the tables that it has
            # changes of: only of a change that it reads alone is it known which structure it has.
            *(self.rows.insert(table), "-- @sleep 0.8"),
        ]


def random_table(chance: Random, name: str) -> Table:
    columns = random_columns(chance, KINDS, _NAMES, _ODD)
    # No unique index: when the reference forgets the key that it has by one is a matter of timing.
    key = chance.choices(("primary", None), (8, 1))[0]
    if chance.random() < 0.15:
        is_key = not any(column.is_key for column in columns) and chance.random() < 0.5
        made = "INTEGER NOT NULL GENERATED ALWAYS AS IDENTITY (START WITH 10, INCREMENT BY 5)"
        columns.append(Column("COUNTED", Kind("INTEGER", ()), is_key=is_key, made=made))
    if chance.random() < 0.15:
        made = 'INTEGER GENERATED ALWAYS AS ("N" * 2)'
        columns.insert(chance.randrange(len(columns)), Column("COMPUTED", Kind("INTEGER", ()), made=made))
    return Table("MYSCHEMA", name, columns, key, _quote)


def _quote(name: str) -> str:
    return f'"{name}"'
