"""Random alterations of PostgreSQL's tables that a replica has to follow, or has to say that it does not."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from tests.compare.postgres.alter import alterations
from tests.compare.postgres.tables import NUMBER, Column, Table, World, quote, random_table
from tests.compare.postgres.types import INTEGER, TEXT, Type

Statements = list[str]

# By the type that a column has, one that it gets, by which expression, with literals of values.
_TYPES: dict[str, tuple[Type, str]] = {
    "integer": (TEXT, "{}::text"),
    "smallint": (Type("numeric", ["0", "1.5"]), "{}"),
    "bigint": (Type("text", ["'x'"]), "{}::text || '!'"),
    "text": (INTEGER, "length({})"),
    "varchar(20)": (Type("varchar(30)", ["'thirty'"]), "{} || '.'"),
    "numeric(10,2)": (Type("numeric(8,1)", ["0.1"]), "0"),
    "numeric(38,10)": (Type("numeric", ["1e50"]), "{}"),
    "real": (Type("double precision", ["0.1", "1e300"]), "{}"),
    "double precision": (Type("real", ["0.1"]), "0"),
    "date": (Type("timestamptz", ["'2024-02-29 12:00+00'"]), "{} + interval '1 hour'"),
    "timestamp": (Type("timestamptz", ["'2024-02-29 12:00+00'"]), "{} AT TIME ZONE 'Europe/Berlin'"),
    "timestamptz": (Type("timestamp", ["'2024-02-29 12:00'"]), "{} AT TIME ZONE 'UTC'"),
    "uuid": (TEXT, "{}::text"),
    "jsonb": (Type("json", ["'{}'"]), "{}::text::json"),
    "boolean": (INTEGER, "{}::int"),
}
_ADDED = (
    (INTEGER, "NOT NULL DEFAULT 7"),
    (TEXT, "DEFAULT 'given'"),
    (Type("timestamptz", ["'2024-02-29 12:00+00'"]), "DEFAULT clock_timestamp()"),
    (Type("uuid", ["'00000000-0000-0000-0000-000000000000'"]), "DEFAULT gen_random_uuid()"),
    (Type("jsonb", ["'{}'"]), "NOT NULL DEFAULT '{}'"),
    (Type("numeric(10,2)", ["1.5"]), "DEFAULT 0.1 + 0.2"),
)


def altered(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    """Statements of one alteration; `number` is another one each time. The tables are what they are afterwards."""
    if random.random() < 0.12:
        # What a savepoint takes back leaves the tables as they are.
        taken = _made(random, world, deepcopy(tables), number)
        return ["BEGIN", f"SAVEPOINT a{number}", *taken, f"ROLLBACK TO a{number}", "COMMIT"]
    return _made(random, world, tables, number)


def _made(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    if random.random() < 0.4:
        return alterations(random, world, tables)
    return random.choice(_MAKERS)(random, world, tables, number)


def _free(table: Table) -> list[Column]:
    """The columns that are in no key."""
    used = (NUMBER, *table.key, *table.unique)
    return [column for column in table.columns if column.name not in used and column.generated is None]


def _add(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table, (type_, rest) = random.choice(tables), random.choice(_ADDED)
    table.columns.append(Column(f"added{number}", type_, nullable="NOT NULL" not in rest, default="0"))
    return [f"ALTER TABLE {table.quoted} ADD COLUMN added{number} {type_.sql} {rest}"]


def _retype(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table = random.choice(tables)
    able = [column for column in _free(table) if column.type.sql in _TYPES and column.default is None]
    if not able:
        return _add(random, world, tables, number)
    column = random.choice(able)
    column.type, using = _TYPES[column.type.sql]
    made = f"{column.quoted} TYPE {column.type.sql} USING {using.format(column.quoted)}"
    return [f"ALTER TABLE {table.quoted} ALTER COLUMN {made}"]


def _drop_and_add(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table = random.choice(tables)
    if not (able := _free(table)):
        return _add(random, world, tables, number)
    column = random.choice(able)
    start, again = f"ALTER TABLE {table.quoted}", random.random() < 0.5
    type_ = column.type if again and "serial" not in column.type.sql else INTEGER
    table.columns[table.columns.index(column)] = Column(column.name, type_)
    default = random.choice(("", " DEFAULT NULL", f" DEFAULT {type_.literals[0]}"))
    return [f"{start} DROP COLUMN {column.quoted}", f"{start} ADD COLUMN {column.quoted} {type_.sql}{default}"]


def _swap_columns(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table = random.choice(tables)
    able = _free(table)
    if len(able) < 2:
        return _add(random, world, tables, number)
    one, two = random.sample(able, 2)
    start = f"ALTER TABLE {table.quoted} RENAME COLUMN"
    renamed = [
        f"{start} {one.quoted} TO moved{number}",
        f"{start} {two.quoted} TO {one.quoted}",
        f"{start} moved{number} TO {two.quoted}",
    ]
    one.name, two.name = two.name, one.name
    return renamed if random.random() < 0.3 else ["BEGIN", *renamed, "COMMIT"]


def _identify(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    able = [table for table in tables if not table.partitioned]
    if not able:
        return _truncate(random, world, tables, number)
    table = random.choice(able)
    kinds = ["FULL", *(("DEFAULT",) if table.key else ())]
    if table.unique:
        kinds.append(f"USING INDEX {quote(f'{table.name}_unique')}")
    table.identity = random.choice(kinds)
    return [f"ALTER TABLE {table.quoted} REPLICA IDENTITY {table.identity}"]


def _rekey(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    able = [table for table in tables if not table.partitioned and not table.unique]
    if not able:
        return _identify(random, world, tables, number)
    table = random.choice(able)
    start, statements = f"ALTER TABLE {table.quoted}", Statements()
    if table.key:
        statements.append(f"{start} DROP CONSTRAINT {quote(table.constraint)}")
    table.key = [NUMBER] if table.key != [NUMBER] else []
    if table.key:
        statements.append(f"{start} ADD CONSTRAINT {quote(table.constraint)} PRIMARY KEY ({NUMBER})")
    table.identity = "FULL" if not table.key else table.identity
    return [*statements, f"{start} REPLICA IDENTITY FULL"] if not table.key else statements


def _truncate(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    chosen = random.sample(tables, min(len(tables), random.choice((1, 1, 2))))
    for table in chosen:
        table.rows.clear()
    return [f"TRUNCATE {', '.join(table.quoted for table in chosen)} CASCADE"]


def _recreate(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table = tables.pop(random.randrange(len(tables)))
    fresh = random_table(random, world, number)
    fresh.schema, fresh.name = table.schema, table.name
    tables.append(fresh)
    return [f"DROP TABLE {table.quoted} CASCADE", *fresh.statements()]


def _swap_tables(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    able = [table for table in tables if not table.partitioned and not table.unique]
    same = [(one, two) for one in able for two in able if one is not two and one.schema == two.schema]
    if not same:
        return _recreate(random, world, tables, number)
    one, two = random.choice(same)
    old, new, between = one.quoted, two.quoted, f"between{number}"
    schema = quote(one.schema)
    renamed = [
        f"ALTER TABLE {old} RENAME TO {between}",
        f"ALTER TABLE {new} RENAME TO {quote(one.name)}",
        f"ALTER TABLE {schema}.{between} RENAME TO {quote(two.name)}",
    ]
    one.name, two.name = two.name, one.name
    return ["BEGIN", *renamed, "COMMIT"]


def _move(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    able = [table for table in tables if not table.partitioned]
    if len(world.schemas) < 2 or not able:
        return _truncate(random, world, tables, number)
    table = random.choice(able)
    old, table.schema = table.quoted, random.choice([name for name in world.schemas if name != table.schema])
    return [f"ALTER TABLE {old} SET SCHEMA {quote(table.schema)}"]


def _widen_number(random: Random, world: World, tables: list[Table], number: int) -> Statements:
    table = random.choice(tables)
    if table.partitioned or table.has_expressions:
        return _truncate(random, world, tables, number)
    return [f"ALTER TABLE {table.quoted} ALTER COLUMN {NUMBER} TYPE {random.choice(('bigint', 'bigint', 'numeric'))}"]


_MAKERS = (
    *(_add, _add, _add, _retype, _retype, _drop_and_add, _swap_columns, _identify, _identify, _rekey, _rekey),
    *(_truncate, _truncate, _recreate, _swap_tables, _move, _widen_number),
)
