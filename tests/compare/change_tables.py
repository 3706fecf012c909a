"""Random scenarios of databases with change tables: SQL Server and Db2."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from tests.compare.beats import Beats
from tests.compare.cases import MARKER, marked, write_settings
from tests.compare.options import keys, masks, outbox, selects, transforms
from tests.compare.rows import Kind, Rows, Table, script

_OUTBOX = ("id", "aggregatetype", "aggregateid", "type", "payload", "n")
_PAYLOADS = ('\'{"a": 1, "b": ["x", null], "c": {"d": 1.5}}\'', "'no json'", "''", "NULL", "'{\"list\": [1, 2]}'")


class RandomScenario(ABC):
    """Tables with rows, then changes with pauses, restarts, new columns and signals between them."""

    signals: str
    """The name of the signal table."""
    marks: str
    """The name of the captured table whose rows are the markers, of columns `id` and `mark`."""
    outbox: str
    """The name of the outbox table."""
    beats = ""
    """The name of the table that heartbeats add rows to, if the reference runs heartbeat.action.query."""
    begin: str
    ends: Sequence[str]
    kinds: Sequence[Kind]

    def __init__(self, chance: Random, tables: list[Table], properties: Mapping[str, str], beats: Beats) -> None:
        self._chance, self._tables = chance, tables
        self.rows = Rows(chance)
        self._with_signals = chance.random() < 0.15
        self._with_outbox = not self._with_signals and chance.random() < 0.1
        self._sent = 0
        self._properties = {**properties, **masks(chance, tables), **keys(chance, tables), **selects(chance, tables)}
        if self._with_signals:
            self._show_keys()
            size = chance.choice(("2", "3", "100"))
            self._properties |= {
                "signal.data.collection": self._signals_named(),
                "incremental.snapshot.chunk.size": size,
            }
        elif self._with_outbox:
            columns = [name.upper() if self.outbox.isupper() else name for name in _OUTBOX]
            topics = f".*[._]{self.outbox.rpartition('.')[2]}"
            self._properties |= outbox(topics, columns, chance)
        elif chance.random() < 0.3:
            names = "|".join(table.name for table in tables)
            self._properties |= transforms(chance, f".*[._]({names}|{self.marks.rpartition('.')[2]})")
        self._beats = beats
        self._properties |= beats.properties
        if self.beats:
            self._properties |= beats.action(self._beats_named(), self._properties)

    def write(self, folder: Path) -> None:
        """Write it into the empty folder."""
        (folder / "setup.sql").write_text(self._setup(), encoding="utf-8")
        (folder / "workload.sql").write_text(self._workload(), encoding="utf-8")
        settings: dict[str, object] = {"settle_seconds": 0.2}
        if self._with_signals:
            settings = {"settle_seconds": 3, "unordered_reads": True}
        elif self._has_databases():
            settings = {"settle_seconds": 1}  # the marker is in one of the databases
        if collapsed := self._beats.rules(self._acts()):
            settings["collapse_topics"] = collapsed
        write_settings(folder, self._properties, {"marker": MARKER, **settings})

    @abstractmethod
    def captured(self, table: Table) -> str:
        """A statement that begins the capture of a table."""

    @abstractmethod
    def _helper(self, table: str, columns: Sequence[str]) -> list[str]:
        """Statements that create a table of texts, the first of them its key, and begin its capture."""

    @abstractmethod
    def altered(self, table: Table) -> list[str]:
        """Statements that alter columns of the table and of what is captured of it."""

    @abstractmethod
    def _named(self, table: Table) -> str:
        """The name of the table in signals."""

    def _signals_named(self) -> str:
        return self.signals

    def _beats_named(self) -> str:
        return self.beats

    def _captured_beats(self) -> list[str]:
        return []

    def _show_keys(self) -> None:
        """No key has an excluded column: the reference then loses rows of incremental snapshots."""
        excluded = self._properties.get("column.exclude.list", "")
        own = [part.partition(":") for part in self._properties.get("message.key.columns", "").split(";")]
        keys = [f"{table}.{name}" for table, _, names in own for name in names.split(",")]
        for table in self._tables:
            keys += [f"{table.schema}.{table.name}.{column.name}" for column in table.columns if column.is_key]
        if any(re.fullmatch(excluded, key) for key in keys):
            del self._properties["column.exclude.list"]

    def _has_databases(self) -> bool:
        return len({table.database for table in self._tables}) > 1

    def _acts(self) -> bool:
        return "heartbeat.action.query" in self._properties

    def _setup(self) -> str:
        lines: list[str] = []
        for table in self._tables:
            lines += table.statements()
            lines += [self.rows.insert(table) for _ in range(self._chance.randrange(5))]
            lines.append(self.captured(table))
        lines += [*self._helper(self.marks, ("id", "mark")), f"INSERT INTO {self.marks} VALUES ('0', 'none')"]
        if self._with_signals:
            lines += self._helper(self.signals, ("id", "type", "data"))
        if self._with_outbox:
            lines += self._helper(self.outbox, _OUTBOX)
        if self._acts():
            lines += [*self._beats.table(self.beats), *self._captured_beats()]
        return script(lines)

    def _workload(self) -> str:
        parts = [self._changes()]
        for number in range(3):
            parts += [self._between(number), self._changes()]
        return "".join(f"{line}\n" for line in marked("".join(parts).splitlines(), f"{self._mark()};"))

    def _mark(self) -> str:
        if "c" in self._properties.get("skipped.operations", ""):
            return f"UPDATE {self.marks} SET mark = '{{}}'"
        return f"INSERT INTO {self.marks} VALUES ('{{0}}', '{{0}}')"

    def _between(self, number: int) -> str:
        draw = self._chance.random()
        if self._with_signals:
            signal = self._signal(number)
            return f"-- @wait\n{script([signal])}-- @wait\n" if signal else "-- @wait\n"
        if draw < 0.2:
            return f"-- @stop\n{self._changes()}-- @start\n-- @wait\n"
        table = self._chance.choice(self._tables)
        if draw < 0.35 and not table.is_altered:
            table.is_altered = True
            return f"-- @wait\n{script(self.altered(table))}"
        return "-- @wait\n"

    def _signal(self, number: int) -> str:
        keyed = [table for table in self._tables if table.key == "primary" and not table.database]
        kind = self._chance.choice(("incremental", "blocking"))
        data: dict[str, object] = {"data-collections": [self._named(table) for table in keyed], "type": kind}
        able = kind == "incremental" or not self._has_databases()  # the reference needs one database for a SELECT
        if keyed and self._chance.random() < 0.4 and able:
            table = self._chance.choice(keyed)
            only = f"{table.quote(table.number)} > 2"
            given = only if kind == "incremental" else f"SELECT * FROM {table.quoted} WHERE {only}"
            data["additional-conditions"] = [{"data-collection": self._named(table), "filter": given}]
        statement = f"INSERT INTO {self.signals} VALUES ('s{number}', 'execute-snapshot', '{json.dumps(data)}')"
        return statement if keyed else ""

    def _changes(self) -> str:
        changes = self.rows.some(self._tables, self.begin, self.ends)
        return changes + (script(self._messages()) if self._with_outbox else "")

    def _messages(self) -> list[str]:
        found = []
        for _ in range(self._chance.randrange(1, 3)):
            self._sent += 1
            route, payload = self._chance.choice(("'Order'", "'Cust omer'")), self._chance.choice(_PAYLOADS)
            values = (f"'e{self._sent}'", route, f"'{self._sent % 3}'", "'Created'", payload, f"'{self._sent}'")
            found.append(f"INSERT INTO {self.outbox} VALUES ({', '.join(values)})")
        return [*found, f"DELETE FROM {self.outbox}"]
