"""Keys, indexes, checks and foreign keys."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ..catalogue.definition_text import definition_text
from ..catalogue.literals import literal, quote
from ..catalogue.model import Column, Index, Table
from ..datatypes import MAX, SIZED
from ..translate.binder import Binder
from ..translate.bound import Bound, Scope
from ..translate.sources import table_source
from ..tsql import statements as s
from ..tsql.errors import error, invalid_column

if TYPE_CHECKING:
    from .executor import Executor


def column_checks(object_id: int, column: Column) -> str:
    """What PostgreSQL has to check of a column: lengths, and the range of tinyint."""
    kind, name = column.kind, column.physical
    label = f"{object_id}_{column.column_id}"
    if kind.name in SIZED and kind.length != MAX:
        length = f"ms.units({name})" if kind.name.startswith("n") else f"length({name})"
        if kind.name.startswith("n"):
            return (
                f" CONSTRAINT length_{label} CHECK (octet_length({name}) <= {kind.length} OR {length} <= {kind.length})"
            )
        return f" CONSTRAINT length_{label} CHECK ({length} <= {kind.length})"
    if kind.name == "tinyint":
        return f" CONSTRAINT range_{label} CHECK ({name} BETWEEN 0 AND 255)"
    return ""


def _columns(table: Table, names: list[tuple[str, bool]]) -> list[tuple[Column, bool]]:
    found = []
    for name, descending in names:
        column = table.column(name)
        if column is None:
            raise error(1911, name)
        found.append((column, descending))
    return found


def add_constraint(executor: Executor, table: Table, constraint: s.Constraint) -> None:
    """Add a constraint to a table."""
    if constraint.kind in ("PRIMARY", "UNIQUE"):
        _add_key(executor, table, constraint)
    elif constraint.kind in ("INDEX", "UNIQUE INDEX"):
        columns = _columns(table, constraint.columns)
        unique = constraint.kind != "INDEX"
        add_index(
            executor, table, constraint.name or "index", columns, unique=unique, clustered=bool(constraint.clustered)
        )
    elif constraint.kind == "FOREIGN":
        _add_foreign_key(executor, table, constraint)
    elif constraint.kind == "CHECK":
        _add_check(executor, table, constraint)
    elif constraint.kind == "DEFAULT":
        _add_default(executor, table, constraint)


def _add_key(executor: Executor, table: Table, constraint: s.Constraint) -> None:
    from .definitions import new_object  # definitions hold constraints

    primary = constraint.kind == "PRIMARY"
    columns = _columns(table, constraint.columns)
    if primary and table.primary_key is not None:
        raise error(1779, table.name)
    for column, _ in columns:
        if primary and column.nullable:
            raise error(8111, table.name)
    database = executor.session.context().database_named(table.database)
    prefix = "PK" if primary else "UQ"
    name = constraint.name or f"{prefix}__{table.name[:9]}__{table.object_id * 31 + len(table.indexes):016X}"
    new_object(
        executor, database, table.schema, name, prefix, parent=table.object_id, system_named=constraint.name is None
    )
    clustered = constraint.clustered if constraint.clustered is not None else primary and table.clustered is None
    add_index(executor, table, name, columns, unique=True, clustered=clustered, primary=primary, constraint=not primary)


def add_index(
    executor: Executor,
    table: Table,
    name: str,
    columns: list[tuple[Column, bool]],
    *,
    unique: bool,
    clustered: bool,
    primary: bool = False,
    constraint: bool = False,
    included: list[Column] | None = None,
    where: str = "",
    where_text: str | None = None,
) -> Index:
    """Add an index, in the catalogue and in PostgreSQL."""
    backend = executor.session.backend
    if clustered and table.clustered is not None:
        raise error(1902, table.name, table.clustered.name)
    number = 1 if clustered else max([1, *(index.index_id for index in table.indexes)]) + 1
    values = [table.object_id, number, name, 1 if clustered else 2, unique, primary, constraint, where_text]
    backend.run(f"INSERT INTO cat.indexes VALUES ({', '.join(literal(value) for value in values)})")
    rows = [
        (place, column.column_id, place, descending, False) for place, (column, descending) in enumerate(columns, 1)
    ]
    rows += [(len(rows) + place, column.column_id, 0, False, True) for place, column in enumerate(included or [], 1)]
    for row in rows:
        backend.run(
            f"INSERT INTO cat.index_columns VALUES ({table.object_id}, {number},"
            f" {', '.join(literal(value) for value in row)})"
        )
    _create_physical(executor, table, number, columns, unique=unique, where=where)
    return Index(
        name,
        number,
        clustered,
        unique,
        primary,
        constraint,
        tuple((column.column_id, descending) for column, descending in columns),
    )


def _create_physical(
    executor: Executor, table: Table, number: int, columns: list[tuple[Column, bool]], *, unique: bool, where: str
) -> None:
    """The index in PostgreSQL: over the keys by which SQL Server compares, nulls first; its name has its number."""
    backend = executor.session.backend
    if any(column.computed is not None or column.kind.is_large for column, _ in columns):
        return
    name = f"x_{table.object_id}_{number}"
    bare = [Bound(column.physical, column.kind, column.nullable) for column, _ in columns]
    if (
        unique
        and not where
        and not any(
            key.has_key or key.nullable or descending for key, (_, descending) in zip(bare, columns, strict=True)
        )
    ):
        # Checked at the end of a statement, as SQL Server does: UPDATE t SET id = id + 1 succeeds.
        listed = ", ".join(key.sql for key in bare)
        backend.run(
            f"ALTER TABLE {table.physical} ADD CONSTRAINT {name} UNIQUE ({listed}) DEFERRABLE INITIALLY IMMEDIATE"
        )
        return
    terms = []
    for key, (column, descending) in zip(bare, columns, strict=True):
        order = (
            (" DESC NULLS LAST" if descending else " NULLS FIRST") if column.nullable else " DESC" if descending else ""
        )
        terms.append(f"({key.key}){order}")
    word = "UNIQUE " if unique else ""
    distinct = " NULLS NOT DISTINCT" if unique else ""
    backend.run(f"CREATE {word}INDEX {name} ON {table.physical} ({', '.join(terms)}){distinct}{where}")


def _table_condition(executor: Executor, table: Table, node: object) -> str:
    """A condition over the columns of one table, as PostgreSQL's constraints and indexes take it."""
    source = table_source(table, "own")
    sql = Binder(executor.session.context(), Scope([source])).condition(node)  # type: ignore[arg-type]
    return sql.replace("own.", "")


def create_index(executor: Executor, statement: s.CreateIndex) -> None:
    """CREATE INDEX."""
    table = executor.session.context().table(statement.table)
    if any(index.name.lower() == statement.name.lower() for index in table.indexes):
        raise error(1913, statement.name, table.name)
    if table.physical_name is not None:
        return
    executor.session.rights.check("ALTER", table)
    where = f" WHERE {_table_condition(executor, table, statement.where)}" if statement.where is not None else ""
    text = definition_text(statement.where) if statement.where is not None else None
    included = [column for column, _ in _columns(table, [(name, False) for name in statement.included])]
    columns = _columns(table, statement.columns)
    add_index(
        executor,
        table,
        statement.name,
        columns,
        unique=statement.unique,
        clustered=statement.clustered,
        included=included,
        where=where,
        where_text=text,
    )


def drop_index(executor: Executor, statement: s.Drop, name: s.Name) -> None:
    """DROP INDEX name ON table, or table.name."""
    table = executor.session.context().table(statement.table or name[:-1])
    index = table.index_id(name[-1])
    if index is None:
        if statement.if_exists:
            return
        raise error(3701, "index", f"{table.name}.{name[-1]}")
    if index.primary_key or index.constraint:
        raise error(3723, table.name, index.name)
    remove_index(executor, table, index)


def remove_index(executor: Executor, table: Table, index: Index) -> None:
    """Drop an index, in the catalogue and in PostgreSQL."""
    name = f"x_{table.object_id}_{index.index_id}"
    executor.session.backend.run(
        f"ALTER TABLE {table.physical} DROP CONSTRAINT IF EXISTS {name}; DROP INDEX IF EXISTS u.{name};"
        f"DELETE FROM cat.indexes WHERE object_id = {table.object_id} AND index_id = {index.index_id}"
    )


def _add_foreign_key(executor: Executor, table: Table, constraint: s.Constraint) -> None:
    from .definitions import new_object  # definitions hold constraints

    context = executor.session.context()
    other = context.table(constraint.references)
    columns = [column for column, _ in _columns(table, constraint.columns)]
    if constraint.referenced:
        keys = [column for column, _ in _columns(other, [(name, False) for name in constraint.referenced])]
    elif other.primary_key is not None:
        keys = [other.by_id(column_id) for column_id, _ in other.primary_key.keys]
    else:
        raise error(1773, other.name)
    details = json.dumps(
        {"referenced": other.object_id, "columns": [c.column_id for c in columns], "keys": [c.column_id for c in keys]}
    )
    name = constraint.name or f"FK__{table.name[:9]}__{columns[0].name[:5]}__{table.object_id:08X}"
    number = new_object(
        executor,
        context.database_named(table.database),
        table.schema,
        name,
        "F",
        parent=table.object_id,
        details=details,
    )
    listed = ", ".join(column.physical for column in keys)
    actions = "".join(f" ON {event} {action}" for event, action in constraint.actions.items())
    # PostgreSQL wants an index over the columns themselves, not over what they compare by.
    index = f"r_{other.object_id}_{'_'.join(str(column.column_id) for column in keys)}"
    executor.session.backend.run(
        f"CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {other.physical} ({listed}); ALTER TABLE {table.physical}"
        f" ADD CONSTRAINT foreign_{number}"
        f" FOREIGN KEY ({', '.join(column.physical for column in columns)}) REFERENCES {other.physical}"
        f" ({listed}){actions}"
    )


def _add_check(executor: Executor, table: Table, constraint: s.Constraint) -> None:
    from .definitions import new_object  # definitions hold constraints

    assert constraint.check is not None
    database = executor.session.context().database_named(table.database)
    name = constraint.name or f"CK__{table.name[:9]}__{table.object_id + len(table.columns):08X}"
    number = new_object(
        executor,
        database,
        table.schema,
        name,
        "C",
        parent=table.object_id,
        definition=definition_text(constraint.check),
    )
    condition = _table_condition(executor, table, constraint.check)
    executor.session.backend.run(f"ALTER TABLE {table.physical} ADD CONSTRAINT check_{number} CHECK ({condition})")


def _add_default(executor: Executor, table: Table, constraint: s.Constraint) -> None:
    from .definitions import new_object  # definitions hold constraints

    assert constraint.check is not None
    column = table.column(constraint.columns[0][0])
    if column is None:
        raise invalid_column(constraint.columns[0][0])
    if column.default is not None:
        raise error(1781)
    database = executor.session.context().database_named(table.database)
    name = constraint.name or f"DF__{table.name[:9]}__{column.name[:5]}__{table.object_id + column.column_id:08X}"
    text = definition_text(constraint.check)
    number = new_object(
        executor,
        database,
        table.schema,
        name,
        "D",
        parent=table.object_id,
        definition=text,
        parent_column=column.column_id,
    )
    executor.session.backend.run(
        f"UPDATE cat.columns SET default_object_id = {number} WHERE object_id = {table.object_id} AND column_id ="
        f" {column.column_id}"
    )


def drop_constraint(executor: Executor, table: Table, name: str, *, if_exists: bool) -> None:
    """ALTER TABLE DROP CONSTRAINT."""
    backend = executor.session.backend
    rows = backend.run(
        f"SELECT object_id, type FROM cat.objects WHERE parent_object_id = {table.object_id} AND lower(name) ="
        f" {quote(name.lower())}"
    ).rows
    if not rows:
        if if_exists:
            return
        raise error(3728, name)
    number, kind = rows[0]
    index = table.index_id(name)
    if kind in ("PK", "UQ") and index is not None:
        remove_index(executor, table, replace(index))
    elif kind in ("F", "C"):
        backend.run(f"ALTER TABLE {table.physical} DROP CONSTRAINT {'foreign' if kind == 'F' else 'check'}_{number}")
    else:
        backend.run(
            f"UPDATE cat.columns SET default_object_id = 0 WHERE object_id = {table.object_id} AND"
            f" default_object_id = {number}"
        )
    backend.run(f"DELETE FROM cat.objects WHERE object_id = {number}")
