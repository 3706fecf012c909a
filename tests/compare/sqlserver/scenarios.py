"""Random scenarios of SQL Server."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tests.compare.rows import Column, Rows, Table, masks, random_columns, some
from tests.compare.sqlserver.types import KINDS

ENGINE = {
    "driver.encrypt": "false",
    "poll.interval.ms": "100",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "schema.history.internal.file.filename": "${work}/history.jsonl",
}

EXPLAINED: tuple[tuple[str, str], ...] = ()

_NAMES = ("id", "name", "total", "note", "made", "flag", "code", "data", "price")
_ODD = ("mixed case", "order", "da-sh", "ümlaut", "a.b", "1st")
_SIGNALS = "dbo.debezium_signal"
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
_UNWRAP = {
    "delete.tombstone.handling.mode": ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"),
    "add.fields": ("op,table", "source.commit_lsn:lsn,op"),
    "add.headers": ("op", "db,schema"),
    "drop.fields.header.name": ("dropped",),
}


def write(seed: int, folder: Path) -> None:
    """See Generator.write."""
    chance = Random(seed)
    scenario = _Scenario(chance)
    (folder / "setup.sql").write_text(scenario.setup(), encoding="utf-8")
    (folder / "workload.sql").write_text(scenario.workload(), encoding="utf-8")
    (folder / "scenario.json").write_text(json.dumps(scenario.settings()) + "\n", encoding="utf-8")
    document = {"name": "compare", "config": scenario.properties}
    (folder / "connector.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


class _Scenario:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._rows = Rows(chance)
        self._tables = [self._table("dbo", "t0"), self._table("dbo", "t1"), self._table("sales", "t2")]
        self._with_signals = chance.random() < 0.15
        self.properties = {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": "${host}",
            "database.port": "${port}",
            "database.user": "${user}",
            "database.password": "${password}",
            "database.names": "${dbname}",
            "driver.encrypt": "false",
            "topic.prefix": "server1",
            "include.schema.changes": "false",
            **some(chance, _CHOICES, 0.12),
            **masks(chance, self._tables),
        }
        if not self._with_signals and chance.random() < 0.15:
            unwrap = {f"transforms.unwrap.{name}": text for name, text in some(chance, _UNWRAP, 0.4).items()}
            kind = "io.debezium.transforms.ExtractNewRecordState"
            self.properties |= {"transforms": "unwrap", "transforms.unwrap.type": kind, **unwrap}
        if self._with_signals:
            size = chance.choice(("2", "3", "100"))
            self.properties |= {
                "signal.data.collection": f"${{dbname}}.{_SIGNALS}",
                "incremental.snapshot.chunk.size": size,
            }

    def settings(self) -> dict[str, object]:
        """How it is compared."""
        return {"settle_seconds": 4, "unordered_reads": True} if self._with_signals else {}

    def setup(self) -> str:
        """Tables with rows and a capture instance each."""
        lines = ["CREATE SCHEMA sales"]
        for table in self._tables:
            lines += table.statements()
            lines += [self._rows.insert(table) for _ in range(self._chance.randrange(5))]
            lines.append(_enable(table.schema, table.name))
        if self._with_signals:
            lines.append(f"CREATE TABLE {_SIGNALS} (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
            lines.append(_enable("dbo", "debezium_signal"))
        return "".join(f"{line};\n" for line in lines)

    def workload(self) -> str:
        """Changes, alone and in transactions, with pauses, restarts, new columns and signals between them."""
        parts = [self._changes()]
        for number in range(3):
            parts.append(self._between(number))
            parts.append(self._changes())
        # The reference ends a transaction when the next change comes.
        parts += ["-- @wait\n", f"{self._rows.insert(self._tables[0])};\n"]
        return "".join(parts)

    def _between(self, number: int) -> str:
        draw = self._chance.random()
        if self._with_signals:
            names = [f"testdb.{table.schema}.{table.name}" for table in self._tables if table.key == "primary"]
            data = {"data-collections": names, "type": self._chance.choice(("incremental", "blocking"))}
            signal = f"INSERT INTO {_SIGNALS} VALUES ('s{number}', 'execute-snapshot', '{json.dumps(data)}');\n"
            return f"-- @wait\n{signal}-- @wait\n" if names else "-- @wait\n"
        if draw < 0.2:
            return f"-- @stop\n{self._changes()}-- @start\n-- @wait\n"
        if draw < 0.4 and number == 1:
            table = self._chance.choice(self._tables)
            kind = self._chance.choice(KINDS)
            table.extra.append(Column("added", kind))
            second = _enable(table.schema, table.name, f"{table.schema}_{table.name}_v2")
            return f"-- @wait\nALTER TABLE {table.quoted} ADD {table.ddl(table.extra[0])};\n{second};\n"
        return "-- @wait\n"

    def _changes(self) -> str:
        return self._rows.some(self._tables, "BEGIN TRANSACTION", ("COMMIT",))

    def _table(self, schema: str, name: str) -> Table:
        columns = random_columns(self._chance, KINDS, _NAMES, _ODD)
        key = self._chance.choices(("primary", "unique", None), (8, 1, 1))[0]
        return Table(schema, name, columns, key, _quote)


def _enable(schema: str, table: str, instance: str | None = None) -> str:
    named = f", @capture_instance = N'{instance}'" if instance else ""
    place = f"@source_schema = N'{schema}', @source_name = N'{table}'"
    return f"EXEC sys.sp_cdc_enable_table {place}, @role_name = NULL, @supports_net_changes = 0{named}"


def _quote(name: str) -> str:
    return f"[{name}]"
