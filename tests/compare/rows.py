"""Random tables, and random changes of their rows, in SQL that SQL Server and Db2 share but for types and quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

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
