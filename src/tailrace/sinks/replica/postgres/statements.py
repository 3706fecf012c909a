"""The statements that change a replica's table by rows that are staged in columns `c0`, `c1`, ... beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql

from tailrace.sinks.replica.evolve import sql_name
from tailrace.sinks.replica.postgres.columns import fitted, has_no_order, identifier, selected, sql_type
from tailrace.sinks.replica.postgres.ledger import Ledger
from tailrace.sinks.replica.reshape import Reshaping

_TARGET, _STAGED = sql.Identifier("t"), sql.Identifier("s")
_COMMA, _AND = sql.SQL(", "), sql.SQL(" AND ")


def create(table: sql.Identifier, schema: pa.Schema) -> sql.Composed:
    """Make a table."""
    columns = [sql.SQL("{} {}").format(identifier(each.name), sql.SQL(sql_type(each))) for each in schema]
    return sql.SQL("CREATE TABLE {} ({})").format(table, _COMMA.join(columns))


def insert(table: sql.Identifier, schema: pa.Schema, staged: sql.Identifier) -> sql.Composed:
    """Add all staged rows, whose columns are those of the schema; or texts of values that are no texts there."""
    names = _COMMA.join(identifier(name) for name in schema.names)
    return sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} s").format(
        table, names, _COMMA.join(_typed(at, field) for at, field in enumerate(schema)), staged
    )


def read_as(staged: sql.Identifier, at: int, field: pa.Field) -> sql.Composed:
    """Read all staged texts of a column as values of its type, which fails where one is none."""
    return sql.SQL("SELECT count({}) FROM {} s").format(_typed(at, field), staged)


def to_text(table: sql.Identifier, field: pa.Field) -> sql.Composed:
    """Have texts in place of values of another type."""
    name = identifier(field.name)
    text = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE text USING {}")
    return text.format(table, name, selected(field))


def add_column(table: sql.Identifier, field: pa.Field) -> sql.Composed:
    """Add a column."""
    kind = sql.SQL(sql_type(field))
    return sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(table, identifier(field.name), kind)


def retype(table: sql.Identifier, field: pa.Field) -> sql.Composed:
    """Give a column another type."""
    kind = sql.SQL(sql_type(field))
    return sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}").format(table, identifier(field.name), kind)


def refit(table: sql.Identifier, before: pa.Schema, after: pa.Schema) -> Iterator[sql.Composed]:
    """Make the columns of a table without rows other ones; those that are alike stay."""
    old, new = ({fitted(each.name): sql_type(each) for each in schema} for schema in (before, after))
    for field in before:
        if new.get(fitted(field.name)) != old[fitted(field.name)]:
            yield sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(table, identifier(field.name))
    for field in after:
        if old.get(fitted(field.name)) != new[fitted(field.name)]:
            yield add_column(table, field)


def rename(table: sql.Identifier, before: pa.Schema, shape: Reshaping) -> Iterator[sql.Composed]:
    """Drop and rename columns; names may go round in a circle."""
    for name in before.names:
        if name not in shape.names:
            yield sql.SQL("ALTER TABLE {} DROP COLUMN {}").format(table, identifier(name))
    moved = [
        (place, old, new)
        for place, (old, new) in enumerate(zip(shape.names, shape.schema.names, strict=True))
        if old != new
    ]
    between = sql.SQL("ALTER TABLE {} RENAME COLUMN {} TO {}")
    for place, old, _ in moved:
        yield between.format(table, identifier(old), sql.Identifier(f"_tailrace_{place}"))
    for place, _, new in moved:
        yield between.format(table, sql.Identifier(f"_tailrace_{place}"), identifier(new))


def index(relation: str, ledger: Ledger, key: Sequence[pa.Field]) -> sql.Composed:
    """Have an index by the key. It is not unique, as the columns of message.key.columns need not be."""
    digits = hashlib.sha256("\0".join((relation, *(each.name for each in key))).encode()).hexdigest()[:16]
    columns = _COMMA.join(sql.SQL("({})").format(_compared(identifier(each.name), each)) for each in key)
    name = sql.Identifier(f"_tailrace_key_{digits}")
    return sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} ({})").format(name, ledger.of(relation), columns)


def end(table: sql.Identifier, key: Sequence[pa.Field], end_: str, staged: sql.Identifier) -> sql.Composed:
    """End the current rows of staged keys; the column after those of the key says when."""
    alike = _AND.join(_same(each, at) for at, each in enumerate(key))
    return sql.SQL("UPDATE {} t SET {end} = {} FROM {} s WHERE {} AND t.{end} IS NULL").format(
        table, _column(len(key)), staged, alike, end=identifier(end_)
    )


def delete_equal(table: sql.Identifier, fields: Sequence[pa.Field], staged: sql.Identifier) -> sql.Composed:
    """Take so many rows away that equal a staged image as the column after its own says, as a negative number.

    Rows are compared as texts, which a hash join can do where a null equals a null.
    """
    names, places = [identifier(each.name) for each in fields], range(len(fields))
    row_values = _row([sql.SQL("t.{}").format(name) for name in names], fields)
    images = _row([sql.SQL("s.{}").format(_plain(at)) for at in places], fields)
    return sql.SQL(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM (SELECT t.ctid AS place, s.{count} AS count, "
        "row_number() OVER (PARTITION BY s.ctid) AS number FROM {table} t JOIN {staged} s ON {row} = {images}) alike "
        "WHERE number <= -count))"
    ).format(table=table, staged=staged, row=row_values, images=images, count=_plain(len(fields)))


@dataclass
class Merge:
    """Brings staged rows into a table by its key: the table's columns, the count, and flags of values that are kept."""

    table: sql.Identifier
    names: Sequence[str]
    key: Sequence[pa.Field]
    kept: Sequence[str]
    staged: sql.Identifier

    def delete(self) -> sql.Composed:
        """Delete the rows whose count is negative."""
        return self._of("DELETE FROM {table} t USING {staged} s WHERE s.{count} < 0 AND {same}")

    def update(self) -> sql.Composed:
        """Change the rows that are there; a value that is kept stays."""
        flags = {name: _column(len(self.names) + 1 + at) for at, name in enumerate(self.kept)}
        values = [
            sql.SQL("{name} = CASE WHEN {flag} THEN t.{name} ELSE {value} END").format(
                name=identifier(name), flag=flags[name], value=_column(at)
            )
            if name in flags
            else sql.SQL("{} = {}").format(identifier(name), _column(at))
            for at, name in enumerate(self.names)
        ]
        text = "UPDATE {table} t SET {values} FROM {staged} s WHERE s.{count} > 0 AND {same}"
        return self._of(text, values=_COMMA.join(values))

    def insert(self) -> sql.Composed:
        """Add the rows that are not there and have all their values."""
        flags = [_column(len(self.names) + 1 + at) for at in range(len(self.kept))]
        whole = [sql.SQL("{} IS NOT TRUE").format(flag) for flag in flags]
        missing = self._of("NOT EXISTS (SELECT FROM {table} t WHERE {same})")
        return self._of(
            "INSERT INTO {table} ({names}) SELECT {values} FROM {staged} s WHERE s.{count} > 0 AND {wanted}",
            names=_COMMA.join(identifier(name) for name in self.names),
            values=_COMMA.join(_column(at) for at in range(len(self.names))),
            wanted=_AND.join([*whole, missing]),
        )

    def _of(self, text: str, **parts: sql.Composable) -> sql.Composed:
        same = _AND.join(_same(each, self.names.index(each.name)) for each in self.key)
        count = _plain(len(self.names))
        given = {"table": self.table, "staged": self.staged, "count": count, "same": same, **parts}
        return sql.SQL(text).format(**given)


def _plain(at: int) -> sql.Identifier:
    return sql.Identifier(f"c{at}")


def _column(at: int) -> sql.Composed:
    return sql.SQL("s.{}").format(_plain(at))


def _typed(at: int, field: pa.Field) -> sql.Composed:
    return _column(at) if sql_name(field) is None else sql.SQL("{}::{}").format(_column(at), sql.SQL(sql_type(field)))


def _compared(value: sql.Composable, field: pa.Field) -> sql.Composable:
    return sql.SQL("{}::text").format(value) if has_no_order(field) else value


def _same(field: pa.Field, at: int) -> sql.Composed:
    value = sql.SQL("t.{}").format(identifier(field.name))
    return sql.SQL("{} = {}").format(*(_compared(each, field) for each in (value, _column(at))))


def _row(columns: Sequence[sql.Composable], fields: Sequence[pa.Field]) -> sql.Composed:
    """A row as a text; adding nothing makes the two zeros of floats one."""
    values = [
        sql.SQL("{} + 0").format(column) if pa.types.is_floating(field.type) else column
        for column, field in zip(columns, fields, strict=True)
    ]
    return sql.SQL("ROW({})::text").format(_COMMA.join(values))
