"""Random tables, and random changes of their rows, in SQL that SQL Server and Db2 share but for types and quotes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.compare.cases import MARKER, marked, write_settings

NUMBER = "n"  # every table has this column, which tells its rows apart


@dataclass(frozen=True)
class Kind:
    """A type: its SQL, literals of values and of defaults; `key` makes the literal of a key from a number."""

    sql: str
    values: Sequence[str]
    defaults: Sequence[str] = ()
    key: Callable[[int], str] | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table. A key column has `key` in place of values."""

    name: str
    kind: Kind
    required: bool = False
    default: str | None = None
    is_key: bool = False

    def value(self, chance: Random, number: int) -> str:
        """The literal of a value; a key's is another one for each number."""
        if self.is_key and self.kind.key is not None:
            return self.kind.key(number)
        if not self.required and chance.random() < 0.2:
            return "NULL"
        return chance.choice(self.kind.values)


@dataclass
class Table:
    """A table, the numbers of its rows and how its names are written."""

    schema: str
    name: str
    columns: list[Column]
    key: str | None
    quote: Callable[[str], str]
    rows: list[int] = field(default_factory=list)
    extra: list[Column] = field(default_factory=list)

    @property
    def quoted(self) -> str:
        """The name in SQL."""
        return f"{self.quote(self.schema)}.{self.quote(self.name)}"

    def statements(self) -> Iterator[str]:
        """What creates it; `key` is `primary`, `unique` or nothing."""
        lines = [f"{self.quote(self.number)} INT NOT NULL", *map(self.ddl, self.columns)]
        keys = ", ".join(self.quote(column.name) for column in self.columns if column.is_key)
        if self.key == "primary":
            lines.append(f"PRIMARY KEY ({keys or self.quote(self.number)})")
        yield f"CREATE TABLE {self.quoted} ({', '.join(lines)})"
        if self.key == "unique":
            name = self.quote(f"i_{self.name}"[:30])
            yield f"CREATE UNIQUE INDEX {name} ON {self.quoted} ({keys or self.quote(self.number)})"

    @property
    def number(self) -> str:
        """The name of the column of numbers, in the case of the table's name."""
        return NUMBER.upper() if self.name.isupper() else NUMBER

    def ddl(self, column: Column) -> str:
        """A column in CREATE TABLE and ALTER TABLE."""
        default = f" DEFAULT {column.default}" if column.default is not None else ""
        required = " NOT NULL" if column.required or column.is_key else ""
        return f"{self.quote(column.name)} {column.kind.sql}{required}{default}"


class Rows:
    """Statements that change rows. A number is never used twice."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._last = 0

    def insert(self, table: Table) -> str:
        """Insert a row, some of its columns by their defaults."""
        self._last += 1
        table.rows.append(self._last)
        columns = [column for column in (*table.columns, *table.extra) if not self._is_left_out(column)]
        names = [table.number, *(column.name for column in columns)]
        values = [str(self._last), *(column.value(self._chance, self._last) for column in columns)]
        return f"INSERT INTO {table.quoted} ({', '.join(map(table.quote, names))}) VALUES ({', '.join(values)})"

    def change(self, table: Table) -> str:
        """Insert, update or delete; an update may change the key."""
        if not table.rows or self._chance.random() < 0.35:
            return self.insert(table)
        row = self._chance.choice(table.rows)
        where = f"WHERE {table.quote(table.number)} = {row}"
        if self._chance.random() < 0.25:
            table.rows.remove(row)
            return f"DELETE FROM {table.quoted} {where}"
        keys = [column for column in table.columns if column.is_key]
        if keys and self._chance.random() < 0.2:
            self._last += 1
            column = self._chance.choice(keys)
            value = column.value(self._chance, self._last)
            return f"UPDATE {table.quoted} SET {table.quote(column.name)} = {value} {where}"
        others = [column for column in (*table.columns, *table.extra) if not column.is_key]
        chosen = self._chance.sample(others, min(len(others), self._chance.randrange(1, 4)))
        if not chosen:
            return self.insert(table)
        sets = [f"{table.quote(column.name)} = {column.value(self._chance, row)}" for column in chosen]
        return f"UPDATE {table.quoted} SET {', '.join(sets)} {where}"

    def some(self, tables: Sequence[Table], begin: str, ends: Sequence[str]) -> str:
        """A script of a few changes, some of them in a transaction that begins and ends by these statements."""
        text = ""
        for _ in range(self._chance.randrange(3, 9)):
            if self._chance.random() < 0.2:
                inside = "".join(f"{self._any(tables)};\n" for _ in range(self._chance.randrange(1, 4)))
                text += f"{begin};\n{inside}{self._chance.choice(ends)};\n"
            else:
                text += f"{self._any(tables)};\n"
        return text

    def _any(self, tables: Sequence[Table]) -> str:
        return self.change(self._chance.choice(tables))

    def _is_left_out(self, column: Column) -> bool:
        return not column.is_key and (column.default is not None or not column.required) and self._chance.random() < 0.2


class RandomScenario(ABC):
    """A scenario of change tables: tables with rows, then changes with pauses, restarts and signals between them."""

    signals: str
    """The name of the signal table."""
    marks: str
    """The name of the captured table whose rows are the markers, of columns `id` and `mark`."""
    database = ""
    """What precedes schema and table in the names of a signal, with its point."""
    begin: str
    ends: Sequence[str]
    kinds: Sequence[Kind]

    def __init__(self, chance: Random, tables: list[Table], properties: Mapping[str, str]) -> None:
        self._chance, self._tables = chance, tables
        self._rows = Rows(chance)
        self._with_signals = chance.random() < 0.15
        self._properties = {**properties, **masks(chance, tables)}
        if self._with_signals:
            size = chance.choice(("2", "3", "100"))
            name = f"{self.database.replace('testdb', '${dbname}')}{self.signals}"
            self._properties |= {"signal.data.collection": name, "incremental.snapshot.chunk.size": size}
        elif chance.random() < 0.25:
            self._properties |= unwrap(chance)

    def write(self, folder: Path) -> None:
        """Write it into the empty folder."""
        (folder / "setup.sql").write_text(self._setup(), encoding="utf-8")
        (folder / "workload.sql").write_text(self._workload(), encoding="utf-8")
        settings = {"settle_seconds": 3, "unordered_reads": True} if self._with_signals else {"settle_seconds": 0.2}
        write_settings(folder, self._properties, {"marker": MARKER, **settings})

    @abstractmethod
    def _captured(self, table: Table) -> str:
        """A statement that begins the capture of a table."""

    @abstractmethod
    def _helper(self, table: str, columns: Sequence[str]) -> list[str]:
        """Statements that create a table of texts, the first of them its key, and begin its capture."""

    @abstractmethod
    def _altered(self, table: Table, column: Column) -> list[str]:
        """Statements that add the column to the table and to what is captured of it."""

    def _setup(self) -> str:
        lines = []
        for table in self._tables:
            lines += table.statements()
            lines += [self._rows.insert(table) for _ in range(self._chance.randrange(5))]
            lines.append(self._captured(table))
        lines += [*self._helper(self.marks, ("id", "mark")), f"INSERT INTO {self.marks} VALUES ('0', 'none')"]
        return _script([*lines, *(self._helper(self.signals, ("id", "type", "data")) if self._with_signals else [])])

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
            keyed = [table for table in self._tables if table.key == "primary"]
            names = [f"{self.database}{table.schema}.{table.name}" for table in keyed]
            data = {"data-collections": names, "type": self._chance.choice(("incremental", "blocking"))}
            signal = f"INSERT INTO {self.signals} VALUES ('s{number}', 'execute-snapshot', '{json.dumps(data)}')"
            return f"-- @wait\n{_script([signal])}-- @wait\n" if names else "-- @wait\n"
        if draw < 0.2:
            return f"-- @stop\n{self._changes()}-- @start\n-- @wait\n"
        if draw < 0.4 and number == 1:
            table = self._chance.choice(self._tables)
            table.extra.append(Column("ADDED" if table.name.isupper() else "added", self._chance.choice(self.kinds)))
            return f"-- @wait\n{_script(self._altered(table, table.extra[0]))}"
        return "-- @wait\n"

    def _changes(self) -> str:
        return self._rows.some(self._tables, self.begin, self.ends)


def _script(statements: Sequence[str]) -> str:
    return "".join(line + ("\n" if line.startswith("--") else ";\n") for line in statements)


_UNWRAP = {
    "delete.tombstone.handling.mode": ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"),
    "add.fields": ("op,table", "source.commit_lsn:lsn,op", "op,source.snapshot,source.schema"),
    "add.headers": ("op", "db,schema"),
    "drop.fields.header.name": ("dropped",),
}


def unwrap(chance: Random) -> dict[str, str]:
    """Rows without envelope."""
    settings = {f"transforms.unwrap.{name}": text for name, text in some(chance, _UNWRAP, 0.4).items()}
    kind = "io.debezium.transforms.ExtractNewRecordState"
    return {"transforms": "unwrap", "transforms.unwrap.type": kind, **settings}


def random_columns(chance: Random, kinds: Sequence[Kind], names: Sequence[str], odd: Sequence[str]) -> list[Column]:
    """Columns of random types, up to two of them in the key."""
    columns = []
    keyed = chance.choice((0, 1, 1, 2))
    chosen = list(chance.sample(names, chance.randrange(2, len(names))))
    if chance.random() < 0.2:
        chosen[-1] = chance.choice(odd)
    able = [kind for kind in kinds if kind.key is not None]
    for place, name in enumerate(chosen):
        if place < keyed:
            columns.append(Column(name, chance.choice(able), required=True, is_key=True))
            continue
        kind = chance.choice(kinds)
        default = chance.choice(kind.defaults) if kind.defaults and chance.random() < 0.35 else None
        columns.append(Column(name, kind, chance.random() < 0.35, default))
    chance.shuffle(columns)
    return columns


def some(chance: Random, choices: dict[str, tuple[str, ...]], likely: float) -> dict[str, str]:
    """Properties with random values, each of them with that probability."""
    return {name: chance.choice(values) for name, values in choices.items() if chance.random() < likely}


def masks(chance: Random, tables: Sequence[Table]) -> dict[str, str]:
    """Masks of random columns that are in no key: those of keys differ by intention (decision 7)."""
    names = ("column.mask.with.5.chars", "column.mask.hash.SHA-256.with.salt.salt", "column.truncate.to.3.chars")
    able = [
        f"{table.schema}.{table.name}.{column.name}"
        for table in tables
        for column in table.columns
        if not column.is_key
    ]
    plain = [name for name in able if name.replace(".", "").isalnum()]
    return {
        name: ",".join(chance.sample(plain, min(3, len(plain)))) for name in names if plain and chance.random() < 0.12
    }
