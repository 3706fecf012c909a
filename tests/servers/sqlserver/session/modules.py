"""Views, functions and procedures: their text goes into the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalogue.literals import literal
from ..translate.modules import bind_view
from ..tsql import statements as s
from ..tsql.errors import unsupported

if TYPE_CHECKING:
    from .executor import Executor

_MODULES = {"VIEW": "V", "PROCEDURE": "P", "FUNCTION": "FN"}


def create_module(executor: Executor, statement: s.CreateModule) -> None:
    """CREATE of a module, or its replacement."""
    from .definitions import atomic, new_object

    kind = _MODULES.get(statement.kind)
    if kind is None:
        raise unsupported(f"CREATE {statement.kind}")
    text = statement.text
    if kind == "FN" and "RETURNS TABLE" in " ".join(text.upper().split()):
        kind = "IF"
    database, schema, name = executor.session.context().split(statement.name)
    existing = executor.session.reader().object(database.database_id, schema, name)
    with atomic(executor):
        if statement.replace and existing is not None:
            executor.session.backend.run(f"DELETE FROM cat.objects WHERE object_id = {existing.object_id}")
        object_id = new_object(executor, database, schema, name, kind, definition=text)
        if kind == "V":
            _add_view_columns(executor, object_id)


def _add_view_columns(executor: Executor, object_id: int) -> None:
    """Enter the columns of a view into the catalogue."""
    from .definitions import by_id

    view = by_id(executor, object_id)
    query, names = bind_view(executor.session.context(), view)
    for number, (name, column) in enumerate(zip(names, query.columns, strict=True), 1):
        kind = column.kind
        values = [
            object_id,
            number,
            name,
            kind.name,
            kind.length,
            kind.precision,
            kind.scale,
            kind.collation,
            None,
            kind.max_length,
            kind.kind.system_type_id,
            kind.kind.user_type_id,
            column.nullable,
        ]
        listed = (
            "object_id, column_id, name, type_name, length, precision, scale, collation_name, alias_id,"
            " max_length, system_type_id, user_type_id, is_nullable"
        )
        executor.session.backend.run(
            f"INSERT INTO cat.columns ({listed}) VALUES ({', '.join(literal(value) for value in values)})"
        )
