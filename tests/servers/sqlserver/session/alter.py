"""ALTER TABLE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..catalogue.literals import literal, typed
from ..catalogue.model import Column, Table
from ..translate.bound import Bound
from ..translate.changes import assigned, default_of
from ..tsql import statements as s
from ..tsql.errors import error, unsupported
from . import constraints

if TYPE_CHECKING:
    from .executor import Executor


def alter_table(executor: Executor, statement: s.AlterTable) -> None:
    """ALTER TABLE of any kind."""
    table = executor.session.context().table(statement.name)
    if table.physical_name is not None:
        raise unsupported("ALTER TABLE of a temporary table")
    executor.session.rights.check("ALTER", table)
    if statement.action == "ADD":
        _add(executor, table, statement)
    elif statement.action == "DROP":
        _drop(executor, table, statement)
    elif statement.action == "ALTER":
        _alter_column(executor, table, statement.columns[0])
    executor.session.backend.run(
        f"UPDATE cat.objects SET modify_date = clock_timestamp() WHERE object_id = {table.object_id}"
    )
    _tell_capture(executor, table, statement)


def _tell_capture(executor: Executor, table: Table, statement: s.AlterTable) -> None:
    from ..cdc.instances import table_altered  # instances hold tables

    if table.captured and statement.action != "OTHER":
        table_altered(executor, table.object_id)


def _add(executor: Executor, table: Table, statement: s.AlterTable) -> None:
    from .definitions import add_column, by_id, column_of, computed_column  # definitions hold this

    context = executor.session.context()
    database = context.database_named(table.database)
    backend = executor.session.backend
    for declared in statement.columns:
        table = by_id(executor, table.object_id)
        if table.column(declared.name) is not None:
            raise error(2705, declared.name, table.name)
        number = int(
            backend.scalar(
                f"SELECT coalesce((details->>'last_column')::int, 0) FROM cat.objects WHERE object_id ="
                f" {table.object_id}"
            )
            or 0
        )
        number = max([number, *(column.column_id for column in table.columns)]) + 1
        if declared.computed is not None:
            from ..catalogue.definition_text import definition_text  # needed here only

            column = computed_column(
                executor,
                list(table.columns),
                Column(declared.name, number, table.columns[0].kind, computed=definition_text(declared.computed)),
            )
            add_column(executor, table.object_id, database, column, declared)
            continue
        column = column_of(context, number, declared)
        _add_stored(executor, table, column, declared)
    for constraint in statement.constraints:
        constraints.add_constraint(executor, by_id(executor, table.object_id), constraint)


def _add_stored(executor: Executor, table: Table, column: Column, declared: s.Column) -> None:
    """Add a column; rows that are there get the default of a column that is not nullable."""
    from .definitions import add_column  # definitions hold this

    backend = executor.session.backend
    context = executor.session.context()
    database = context.database_named(table.database)
    filled = not column.nullable and (column.default is not None or column.kind.name == "timestamp")
    if (
        not column.nullable
        and not filled
        and column.identity is None
        and backend.scalar(f"SELECT 1 FROM {table.physical} LIMIT 1")
    ):
        raise error(4901, column.name, table.name)
    if not filled:
        add_column(executor, table.object_id, database, column, declared)
        return
    add_column(executor, table.object_id, database, replace(column, nullable=True), declared)
    value = (
        f"ms.next_rowversion({table.database_id})" if column.kind.name == "timestamp" else default_of(context, column)
    )
    if column.kind.name != "timestamp" and "uuid" not in value:
        # A default such as GETDATE() is evaluated once for all rows, NEWID() for each.
        value = typed(backend.scalar(f"SELECT ({value})::text"), column.kind.storage)
    # Existing rows get the default without an update that triggers would see.
    backend.run(
        f"ALTER TABLE {table.physical} ALTER COLUMN {column.physical} TYPE {column.kind.column_storage} USING {value},"
        f" ALTER COLUMN {column.physical} SET NOT NULL;"
        f"UPDATE cat.columns SET is_nullable = 0 WHERE object_id = {table.object_id} AND column_id = {column.column_id}"
    )


def _drop(executor: Executor, table: Table, statement: s.AlterTable) -> None:
    from ..cdc.instances import column_dropped  # instances hold tables
    from .definitions import by_id  # definitions hold this

    backend = executor.session.backend
    for kind, name in statement.names:
        table = by_id(executor, table.object_id)
        if kind == "CONSTRAINT":
            constraints.drop_constraint(executor, table, name, if_exists=statement.if_exists)
            continue
        column = table.column(name)
        if column is None:
            if statement.if_exists:
                continue
            raise error(4924, "DROP", name, table.name)
        used = any(column.column_id in (key for key, _ in index.keys) for index in table.indexes)
        if used or column.default is not None:
            raise error(4922, column.name)
        if table.captured:
            column_dropped(executor, table, column)
        if column.computed is None:
            backend.run(f"ALTER TABLE {table.physical} DROP COLUMN {column.physical}")
        backend.run(
            f"DELETE FROM cat.columns WHERE object_id = {table.object_id} AND column_id = {column.column_id};"
            f"UPDATE cat.objects SET details = coalesce(details, '{{}}') || jsonb_build_object('last_column',"
            f" greatest(coalesce((details->>'last_column')::int, 0), {column.column_id})) WHERE object_id ="
            f" {table.object_id}"
        )


def _alter_column(executor: Executor, table: Table, declared: s.Column) -> None:
    from ..cdc.instances import column_changed  # instances hold tables
    from .definitions import column_of  # definitions hold this

    column = table.column(declared.name)
    if column is None:
        raise error(4924, "ALTER", declared.name, table.name)
    if column.computed is not None:
        raise error(4928, column.name, "COMPUTED")
    new = replace(
        column,
        kind=column_of(executor.session.context(), column.column_id, declared).kind,
        nullable=declared.nullable if declared.nullable is not None else True,
    )
    retype(executor, f"u.t{table.object_id}", table.object_id, column, new)
    word = "DROP" if new.nullable else "SET"
    executor.session.backend.run(f"ALTER TABLE {table.physical} ALTER COLUMN {new.physical} {word} NOT NULL")
    if table.captured and new.kind != column.kind:
        column_changed(executor, table, column, new)


def retype(executor: Executor, physical: str, object_id: int, column: Column, new: Column) -> None:
    """Give a column another type, in the catalogue and in PostgreSQL."""
    backend = executor.session.backend
    value = assigned(Bound(column.physical, column.kind, column.nullable), new)
    kind = new.kind
    for prefix in ("length", "range"):
        backend.run(f"ALTER TABLE {physical} DROP CONSTRAINT IF EXISTS {prefix}_{object_id}_{column.column_id}")
    backend.run(f"ALTER TABLE {physical} ALTER COLUMN {new.physical} TYPE {kind.column_storage} USING {value}")
    check = constraints.column_checks(object_id, new)
    if check:
        backend.run(f"ALTER TABLE {physical} ADD{check}")
    values = {
        "type_name": kind.name,
        "length": kind.length,
        "precision": kind.precision,
        "scale": kind.scale,
        "collation_name": kind.collation,
        "alias_id": kind.alias_id,
        "max_length": kind.max_length,
        "system_type_id": kind.kind.system_type_id,
        "user_type_id": kind.alias_id or kind.kind.user_type_id,
        "is_nullable": new.nullable,
    }
    listed = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    backend.run(f"UPDATE cat.columns SET {listed} WHERE object_id = {object_id} AND column_id = {column.column_id}")
