"""Random tables, and random changes of their rows, in SQL that SQL Server and Db2 share but for types and quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

LEFT = 4  # rows up to this number are deleted at once
NUMBER = "n"  # every table has this column, which tells its rows apart


@dataclass(frozen=True)
class Kind:
    """A type: its SQL, literals of values and of defaults; `key` makes the literal of a key from a number."""

    sql: str
    values: Sequence[str]
    defaults: Sequence[str] = ()
    key: Callable[[int], str] | None = None

    @property
    def is_number(self) -> bool:
        """Whether 1000 can be added to a key."""
        return self.key is not None and self.key(1).replace(".", "").isdigit()


@dataclass(frozen=True)
class Column:
    """A column. A key has `key` in place of values; of one with `made`, its definition, the server makes them."""

    name: str
    kind: Kind
    required: bool = False
    default: str | None = None
    is_key: bool = False
    made: str | None = None

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
    database: str = ""
    is_altered: bool = False
    is_shifted: bool = False

    @property
    def quoted(self) -> str:
        """The name in SQL."""
        parts = (self.database, self.schema, self.name)
        return ".".join(self.quote(part) for part in parts if part)

    @property
    def given(self) -> list[Column]:
        """The columns whose values are given, but the number."""
        return [column for column in self.columns if column.made is None]

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
        if column.made is not None:
            return f"{self.quote(column.name)} {column.made}"
        default = f" DEFAULT {column.default}" if column.default is not None else ""
        required = " NOT NULL" if column.required or column.is_key else ""
        return f"{self.quote(column.name)} {column.kind.sql}{required}{default}"


class Rows:
    """Statements that change rows. A number is never used twice."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._last = 0

    def insert(self, table: Table, numbers: Sequence[int] = ()) -> str:
        """Insert a row, or rows of these numbers; some columns by their defaults."""
        if not numbers:
            self._last += 1
            numbers = [self._last]
        table.rows += [number for number in numbers if number not in table.rows]
        columns = [column for column in table.given if not self._is_left_out(column)]
        names = ", ".join(map(table.quote, [table.number, *(column.name for column in columns)]))
        rows = [[str(number), *(column.value(self._chance, number) for column in columns)] for number in numbers]
        values = ", ".join("(" + ", ".join(row) + ")" for row in rows)
        return f"INSERT INTO {table.quoted} ({names}) VALUES {values}"

    def change(self, table: Table) -> str:
        """Insert, update or delete; an update may change the key."""
        if not table.rows or self._chance.random() < 0.35:
            return self.insert(table)
        row = self._chance.choice(table.rows)
        where = f"WHERE {table.quote(table.number)} = {row}"
        if self._chance.random() < 0.25:
            table.rows.remove(row)
            return f"DELETE FROM {table.quoted} {where}"
        keys = [column for column in table.given if column.is_key]
        if keys and self._chance.random() < 0.2:
            self._last += 1
            column = self._chance.choice(keys)
            value = column.value(self._chance, self._last)
            return f"UPDATE {table.quoted} SET {table.quote(column.name)} = {value} {where}"
        return self._update(table, where) or self.insert(table)

    def _update(self, table: Table, where: str) -> str:
        others = [column for column in table.given if not column.is_key]
        chosen = self._chance.sample(others, min(len(others), self._chance.randrange(1, 4)))
        sets = [f"{table.quote(column.name)} = {column.value(self._chance, 0)}" for column in chosen]
        return f"UPDATE {table.quoted} SET {', '.join(sets)} {where}" if sets else ""

    def many(self, table: Table) -> list[str]:
        """Statements that change many rows, or one row several times."""
        number = table.quote(table.number)
        some = f"WHERE {number} {self._chance.choice(('>', '<'))} {self._chance.randrange(1, 12)}"
        draw = self._chance.random()
        if draw < 0.25:
            return [self.insert(table, self._next(self._chance.randrange(2, 4)))]
        if draw < 0.4:
            table.rows = [row for row in table.rows if row > LEFT]
            return [f"DELETE FROM {table.quoted} WHERE {number} <= {LEFT}"]
        if draw < 0.6 and table.rows:
            row = self._chance.choice(table.rows)
            return [f"DELETE FROM {table.quoted} WHERE {number} = {row}", self.insert(table, [row])]
        moved = [column for column in table.given if column.is_key and column.kind.is_number]
        if draw < 0.8 and moved and not table.is_shifted:
            table.is_shifted = True  # once, so that no key meets another one
            name = table.quote(moved[0].name)
            return [f"UPDATE {table.quoted} SET {name} = {name} + 1000"]
        return [self._update(table, some) or self.insert(table)]

    def _next(self, count: int) -> list[int]:
        self._last += count
        return list(range(self._last - count + 1, self._last + 1))

    def some(self, tables: Sequence[Table], begin: str, ends: Sequence[str]) -> str:
        """A script of a few changes, some of them in a transaction that begins and ends by these statements."""
        text = ""
        for _ in range(self._chance.randrange(3, 9)):
            if self._chance.random() < 0.2:
                inside = [self._any(tables) for _ in range(self._chance.randrange(1, 4))]
                text += script([begin, *inside, self._chance.choice(ends)])
            elif self._chance.random() < 0.15:
                several = self.many(self._chance.choice(tables))
                text += script([begin, *several, "COMMIT"] if len(several) > 1 else several)
            else:
                text += script([self._any(tables)])
        return text

    def _any(self, tables: Sequence[Table]) -> str:
        return self.change(self._chance.choice(tables))

    def _is_left_out(self, column: Column) -> bool:
        return not column.is_key and (column.default is not None or not column.required) and self._chance.random() < 0.2


def script(statements: Sequence[str]) -> str:
    """Statements and directives, a line each."""
    return "".join(line + ("\n" if line.startswith("--") else ";\n") for line in statements)


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
