"""Random scenarios of Db2."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tests.compare.db2.types import KINDS
from tests.compare.rows import Rows, Table, masks, random_columns, some

ENGINE = {
    "database.query.timeout.ms": "0",
    "poll.interval.ms": "100",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "schema.history.internal.file.filename": "${work}/history.jsonl",
}

EXPLAINED: tuple[tuple[str, str], ...] = ()

_NAMES = ("ID", "NAME", "TOTAL", "NOTE", "MADE", "FLAG", "CODE", "DATA", "PRICE")
_ODD = ("mixed case", "ORDER", "da-sh", "a.b", "1ST")
_SIGNALS = "MYSCHEMA.DEBEZIUM_SIGNAL"
_REINIT = "VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc')"
_CHOICES = {
    "time.precision.mode": ("adaptive", "connect", "isostring", "microseconds", "nanoseconds"),
    "decimal.handling.mode": ("precise", "double", "string"),
    "binary.handling.mode": ("bytes", "base64", "base64-url-safe", "hex"),
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
    "table.include.list": ("MYSCHEMA.T0,MYSCHEMA.T2", "MYSCHEMA.*"),
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
        self._tables = [self._table(f"T{number}") for number in range(3)]
        self._with_signals = chance.random() < 0.15
        self.properties = {
            "connector.class": "io.debezium.connector.db2.Db2Connector",
            "database.hostname": "${host}",
            "database.port": "${port}",
            "database.user": "${user}",
            "database.password": "${password}",
            "database.dbname": "${dbname}",
            "topic.prefix": "db2",
            "table.include.list": "MYSCHEMA.*",
            "include.schema.changes": "false",
            **some(chance, _CHOICES, 0.12),
            **masks(chance, self._tables),
        }
        if self._with_signals:
            self.properties |= {"signal.data.collection": _SIGNALS, "incremental.snapshot.chunk.size": "3"}

    def settings(self) -> dict[str, object]:
        """How it is compared."""
        return {"settle_seconds": 4, "unordered_reads": True} if self._with_signals else {}

    def setup(self) -> str:
        """Tables with rows, registered for capture."""
        lines = []
        for table in self._tables:
            lines += table.statements()
            lines += [self._rows.insert(table) for _ in range(self._chance.randrange(5))]
            lines.append(f"CALL ASNCDC.ADDTABLE('MYSCHEMA', '{table.name}')")
        if self._with_signals:
            columns = "ID VARCHAR(64) NOT NULL PRIMARY KEY, TYPE VARCHAR(32) NOT NULL, DATA VARCHAR(2048)"
            lines += [f"CREATE TABLE {_SIGNALS} ({columns})", "CALL ASNCDC.ADDTABLE('MYSCHEMA', 'DEBEZIUM_SIGNAL')"]
        return "".join(f"{line};\n" for line in [*lines, _REINIT])

    def workload(self) -> str:
        """Changes, alone and in transactions, with pauses, restarts and signals between them."""
        parts = [self._changes()]
        for number in range(3):
            parts += [self._between(number), self._changes()]
        # The reference ends a transaction when the next change comes.
        parts += ["-- @wait\n", f"{self._rows.insert(self._tables[0])};\n"]
        return "".join(parts)

    def _between(self, number: int) -> str:
        if self._with_signals:
            names = [f"MYSCHEMA.{table.name}" for table in self._tables if table.key == "primary"]
            data = {"data-collections": names, "type": self._chance.choice(("incremental", "blocking"))}
            signal = f"INSERT INTO {_SIGNALS} VALUES ('s{number}', 'execute-snapshot', '{json.dumps(data)}');\n"
            return f"-- @wait\n{signal}-- @wait\n" if names else "-- @wait\n"
        if self._chance.random() < 0.2:
            return f"-- @stop\n{self._changes()}-- @start\n-- @wait\n"
        return "-- @wait\n"

    def _changes(self) -> str:
        return self._rows.some(self._tables, "BEGIN", ("COMMIT", "COMMIT", "ROLLBACK"))

    def _table(self, name: str) -> Table:
        columns = random_columns(self._chance, KINDS, _NAMES, _ODD)
        # No unique index: when the reference forgets the key that it has by one is a matter of timing.
        key = self._chance.choices(("primary", None), (8, 1))[0]
        return Table("MYSCHEMA", name, columns, key, _quote)


def _quote(name: str) -> str:
    return f'"{name}"'
