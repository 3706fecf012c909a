"""Random statements that change the rows of random tables."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.compare.postgres.tables import NUMBER, Column, Table


def insert(random: Random, table: Table, number: int) -> str:
    """An INSERT of one row, or of two."""
    if random.random() < 0.2:
        rows = [_row(random, table, number), _row(random, table, number + 1)]
        table.rows += [number, number + 1]
        names = sorted({name for row in rows for name in row})
        lines = ["(" + ", ".join(row.get(name, "DEFAULT") for name in names) + ")" for row in rows]
        quoted = {column.name: column.quoted for column in table.columns}
        return f"INSERT INTO {table.quoted} ({', '.join(quoted[n] for n in names)}) VALUES {', '.join(lines)}"
    row = _row(random, table, number)
    table.rows.append(number)
    quoted = {column.name: column.quoted for column in table.columns}
    return f"INSERT INTO {table.quoted} ({', '.join(quoted[name] for name in row)}) VALUES ({', '.join(row.values())})"


def _row(random: Random, table: Table, number: int) -> dict[str, str]:
    row = {NUMBER: str(number)}
    for column in table.columns[1:]:
        value = _value(random, column, may_be_left_out=True)
        if value is not None:
            row[column.name] = value
    return row


def _value(random: Random, column: Column, *, may_be_left_out: bool) -> str | None:
    if column.generated and "STORED" in column.generated:
        return None
    if column.given or not may_be_left_out or random.random() > 0.2:
        if column.nullable and column.type.odd and random.random() < 0.2:
            return random.choice(column.type.odd)
        return "NULL" if column.nullable and random.random() < 0.2 else column.type.value(random)
    if column.default is not None or column.generated or "serial" in column.type.sql or column.nullable:
        return None
    return column.type.value(random)


def update(random: Random, table: Table) -> str | None:
    """An UPDATE of a row, of its key in a few cases; None if there is no row."""
    if not table.rows:
        return None
    number = random.choice(table.rows)
    sets = {}
    changed = random.sample(table.columns[1:], min(len(table.columns) - 1, random.randrange(1, 4)))
    for column in changed:
        if column.name in table.key and random.random() < 0.7:
            continue
        value = _value(random, column, may_be_left_out=False)
        if value is not None:
            sets[column.quoted] = value
    if random.random() < 0.12 or not sets:
        moved = number + 1000 if number < 1000 else number
        table.rows[table.rows.index(number)] = moved
        sets[NUMBER] = str(moved)
    assignments = ", ".join(f"{name} = {value}" for name, value in sets.items())
    return f"UPDATE {table.quoted} SET {assignments} WHERE {NUMBER} = {number}"


def delete(random: Random, table: Table) -> str | None:
    """A DELETE of a row; None if there is no row."""
    if not table.rows:
        return None
    number = table.rows.pop(random.randrange(len(table.rows)))
    return f"DELETE FROM {table.quoted} WHERE {NUMBER} = {number}"


def changes(random: Random, tables: list[Table], first: int, count: int) -> Iterator[str]:
    """Statements, in transactions of one or several; row numbers begin at `first`."""
    number, left = first, count
    while left > 0:
        statements = []
        for _ in range(1 if random.random() < 0.5 else random.randrange(2, 6)):
            statement = _change(random, random.choice(tables), number)
            number += 2
            left -= 1
            if statement is not None:
                statements.append(statement)
        if len(statements) == 1:
            yield statements[0]
        elif statements:
            yield from ("BEGIN", *statements, "COMMIT")


def _change(random: Random, table: Table, number: int) -> str | None:
    kind = random.random()
    if kind < 0.02 and table.can_change:
        column = random.choice(table.columns[1:])
        value = _value(random, column, may_be_left_out=False)
        if value is not None and column.name not in table.key:
            return f"UPDATE {table.quoted} SET {column.quoted} = {value}"
    if kind < 0.03:
        table.rows.clear()
        return f"TRUNCATE {table.quoted}"
    if kind < 0.06:
        content = random.choice(("'hello'", "'ü'", "''", r"'\x00ff'::bytea"))
        is_transactional = random.choice(("true", "false"))
        return f"SELECT pg_logical_emit_message({is_transactional}, 'prefix', {content})"
    if kind < 0.5 or not table.can_change:
        return insert(random, table, number)
    if kind < 0.85:
        return update(random, table)
    return delete(random, table)
