"""Random tables: what they are made of, and their DDL."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.compare.postgres.types import INTEGER, TEXT, Type, array_of, large, random_type

NUMBER = "n"  # every table has this column; its values tell the rows of a table apart
_ODD = ("Mixed Case", "order", "ümlaut", "a.b", "1st", "da-sh", "$money", "UPPER", "per%cent", "under_")


@dataclass
class Column:
    """A column; `default` is an expression. `given`: its value is always stated, because its default varies."""

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    generated: str | None = None
    given: bool = False
    storage: str | None = None

    @property
    def quoted(self) -> str:
        return quote(self.name)

    def ddl(self) -> str:
        """Its part of CREATE TABLE or ADD COLUMN."""
        parts = [self.quoted, self.type.sql]
        if self.storage:
            parts.append(f"STORAGE {self.storage}")
        if not self.nullable:
            parts.append("NOT NULL")
        if self.default is not None:
            parts.append(f"DEFAULT {self.default}")
        if self.generated is not None:
            parts.append(self.generated)
        return " ".join(parts)


@dataclass
class Table:
    """A table and the numbers of the rows that it holds. `is_fixed`: it is never altered."""

    schema: str
    name: str
    columns: list[Column]
    key: list[str]
    unique: list[str] = field(default_factory=list)
    identity: str = "DEFAULT"
    partitioned: bool = False
    is_fixed: bool = False
    rows: list[int] = field(default_factory=list)

    @property
    def quoted(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"

    @property
    def is_plain(self) -> bool:
        """Whether all of its names can be parts of expressions as they are."""
        return all(name.replace("_", "a").isalnum() and name.isascii() for name in (self.schema, self.name))

    @property
    def has_expressions(self) -> bool:
        """Whether a column is generated from an expression."""
        return any("STORED" in (column.generated or "") for column in self.columns)

    @property
    def has_sequences(self) -> bool:
        """Whether a column is a serial one, whose type has another name in the log."""
        return any("serial" in column.type.sql for column in self.columns)

    @property
    def constraint(self) -> str:
        """The name of its primary key."""
        return f"{self.name.lower()}_key"

    @property
    def can_change(self) -> bool:
        """Whether the server allows UPDATE and DELETE while it is published."""
        return self.identity != "NOTHING" and (bool(self.key) or self.identity != "DEFAULT")

    def statements(self) -> list[str]:
        """What creates it."""
        lines = [column.ddl() for column in self.columns]
        if self.key:
            lines.append(f"CONSTRAINT {quote(self.constraint)} PRIMARY KEY ({', '.join(map(quote, self.key))})")
        tail = f" PARTITION BY RANGE ({NUMBER})" if self.partitioned else ""
        made = [f"CREATE TABLE {self.quoted} (\n  " + ",\n  ".join(lines) + f"\n){tail}"]
        if self.partitioned:
            for part, (low, high) in enumerate(_PARTS):
                name = f"{quote(self.schema)}.{quote(f'{self.name}_{part}')}"
                made.append(f"CREATE TABLE {name} PARTITION OF {self.quoted} FOR VALUES FROM ({low}) TO ({high})")
                if self.identity != "DEFAULT":
                    made.append(f"ALTER TABLE {name} REPLICA IDENTITY {self.identity}")
        if self.unique:
            index = quote(f"{self.name}_unique")
            made.append(f"CREATE UNIQUE INDEX {index} ON {self.quoted} ({', '.join(map(quote, self.unique))})")
        if self.identity != "DEFAULT":
            made.append(f"ALTER TABLE {self.quoted} REPLICA IDENTITY {self.identity}")
        return made


_PARTS = (("MINVALUE", "10"), ("10", "MAXVALUE"))


def quote(name: str) -> str:
    """The identifier as it is written in SQL."""
    return '"' + name.replace('"', '""') + '"' if not name.isidentifier() or name.lower() != name else name


@dataclass(frozen=True)
class World:
    """The types of a scenario's own, and the schemas that its tables are in."""

    schemas: list[str]
    setup: list[str]
    types: list[Type]


def random_world(random: Random) -> World:
    """Schemas, enums and domains."""
    schemas, setup, types = ["public"], [], []
    if random.random() < 0.4:
        schemas.append(random.choice(("sales", "Sales", "in_v")))
        setup.append(f"CREATE SCHEMA {quote(schemas[-1])}")
    if random.random() < 0.6:
        name = random.choice(("mood", "Mood", "status_type"))
        setup.append(f"CREATE TYPE {quote(name)} AS ENUM ('sad', 'ok', 'very happy', 'it''s')")
        types.append(Type(quote(name), ["'sad'", "'ok'", "'very happy'", "'it''s'"], _ENUM))
    for number in range(random.randrange(3)):
        base = random.choice((*_DOMAIN_BASES, random_type(random)))
        name = f"dom{number}"
        setup.append(f"CREATE DOMAIN {name} AS {base.sql}")
        types.append(Type(name, base.literals, base.shapes))
    if random.random() < 0.15:
        setup.append("CREATE TYPE pair AS (a integer, b text)")
        types.append(Type("pair", ["ROW(1, 'x')::pair"], frozenset()))
    return World(schemas, setup, types)


_ENUM = frozenset({"default", "element", "required"})
_DOMAIN_BASES = (INTEGER, TEXT, Type("numeric(8,3)", ["0", "1.5"]), Type("varchar(12)", ["''", "'dom'"]))


def random_table(random: Random, world: World, number: int) -> Table:
    """A table of up to fifteen columns."""
    name = random.choice(("things", "film", "Orders", "line_item", "T")) + str(number)
    if random.random() < 0.1:
        name += random.choice((" x", "-y", "ü"))
    columns = [Column(NUMBER, INTEGER, nullable=random.random() < 0.5)]
    columns += [random_column(random, world, position) for position in range(random.randrange(3, 15))]
    table = Table(random.choice(world.schemas), name, columns, [])
    _make_key(random, table)
    table.partitioned = not table.unique and (NUMBER in table.key or not table.key) and random.random() < 0.12
    _choose_identity(random, table)
    return table


def random_column(random: Random, world: World, position: int) -> Column:
    """A column with or without NULL and default."""
    name = f"c{position}"
    if random.random() < 0.08:
        name = random.choice(_ODD) + str(position)
    if random.random() < 0.08:
        return Column(name, large(random), storage="EXTERNAL" if random.random() < 0.7 else None)
    found = random_type(random)
    if world.types and random.random() < 0.2:
        found = random.choice(world.types)
        if "element" in found.shapes and random.random() < 0.2:
            found = array_of(found)
    column = Column(name, found, nullable="nullable" in found.shapes or random.random() < 0.65)
    if "default" in found.shapes and random.random() < 0.3:
        column.default = found.value(random)
        # The engine stops at an old row that lacks a required one.
        column.nullable = column.nullable or found.sql.startswith("timestamp")
    if found.sql.endswith("[]") and random.random() < 0.1:
        column.default = "'{}'"
    return _generated(random, column)


def _generated(random: Random, column: Column) -> Column:
    """In a few cases, the value comes from an expression or a sequence."""
    choice = random.random()
    serial = random.choice(("smallserial", "serial", "bigserial"))
    if choice < 0.02:
        return Column(column.name, Type(serial, ["1", "2"]), nullable=False)
    if choice < 0.03:
        return Column(column.name, INTEGER, nullable=False, generated="GENERATED BY DEFAULT AS IDENTITY")
    if choice < 0.05:
        return Column(column.name, INTEGER, generated=f"GENERATED ALWAYS AS ({NUMBER} * 2) STORED")
    functions = {
        "timestamp": "now()",
        "timestamptz": "CURRENT_TIMESTAMP",
        "date": "CURRENT_DATE",
        "uuid": "gen_random_uuid()",
    }
    if choice < 0.3 and column.type.sql in functions:
        return Column(column.name, column.type, column.nullable, functions[column.type.sql], given=True)
    return column


def _make_key(random: Random, table: Table) -> None:
    kind = random.random()
    if kind < 0.5:
        table.key = [NUMBER]
    elif kind < 0.7:
        others = [c.name for c in table.columns[1:] if "[" not in c.type.sql and _can_be_key(c)]
        table.key = [NUMBER, *random.sample(others, min(len(others), random.randrange(1, 3)))]
        random.shuffle(table.key)
    elif kind < 0.85:
        table.columns[0].nullable = False
        table.unique = [NUMBER]
    for column in table.columns:
        if column.name in table.key:
            column.nullable = False


def _can_be_key(column: Column) -> bool:
    if column.generated or "default" not in column.type.shapes:
        return False
    return column.type.sql.split("(")[0] in _KEY_TYPES


_KEY_TYPES = (
    *(
        "smallint",
        "integer",
        "bigint",
        "numeric",
        "text",
        "varchar",
        "char",
        "boolean",
        "uuid",
        "date",
        "time",
        "timestamp",
    ),
    *("timestamptz", "timetz", "bytea", "inet", "oid", "bit", "interval", "money", "mood", "double precision", "jsonb"),
)


def _choose_identity(random: Random, table: Table) -> None:
    if random.random() < 0.35 or (not table.key and random.random() < 0.6):
        table.identity = "FULL"
    elif table.unique and random.random() < 0.5:
        table.identity = f"USING INDEX {quote(f'{table.name}_unique')}"
