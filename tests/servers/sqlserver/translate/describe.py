"""sys.dm_exec_describe_first_result_set: the columns of the first query of a batch, which is compiled and not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..datatypes import BIT, INT, make
from ..tsql.errors import SqlError, error
from ..tsql.statements import ExecuteText, Query

if TYPE_CHECKING:
    from .binder import Binder
    from .query import OutColumn

COLUMNS = [
    *(("is_hidden", BIT, True), ("column_ordinal", INT, True), ("name", make("nvarchar", 128), True)),
    *(("is_nullable", BIT, True), ("system_type_name", make("nvarchar", 256), True)),
    *(("error_number", INT, True), ("error_message", make("nvarchar", 4000), True)),
]


def described(binder: Binder, text: str) -> str:
    """The query that gives the columns, or the error that keeps the batch from being compiled."""
    try:
        found = _first(binder, text)
    except SqlError as failure:
        return _rows([f"(0, 0, NULL, 0, NULL, {failure.number}, {quote(failure.message)})"])
    return _rows(
        f"(0, {place}, {quote(column.name)}, {int(column.nullable)}, {quote(str(column.kind))}, NULL, NULL)"
        for place, column in enumerate(found, 1)
    )


def _rows(rows: object) -> str:
    listed = ", ".join(rows)  # type: ignore[call-overload]
    is_empty = not listed
    values = listed or "(0, 0, NULL, 0, NULL, NULL, NULL)"
    kinds = ("smallint", "int", "text", "smallint", "text", "int", "text")
    typed = ", ".join(f"d.c{place}::{kind} AS c{place}" for place, kind in enumerate(kinds, 1))
    names = ", ".join(f"c{place}" for place in range(1, len(kinds) + 1))
    return f"SELECT {typed} FROM (VALUES {values}) d({names}){' WHERE false' if is_empty else ''}"


def _first(binder: Binder, text: str) -> list[OutColumn]:
    """The columns of the first query, none without one. What a text gives at run time is unknown."""
    from ..tsql.parser import parse  # queries are parsed by what calls this
    from .query import bind_query

    for statement in parse(text):
        if isinstance(statement, ExecuteText):
            raise error(11513, "EXECUTE")
        if isinstance(statement, Query):
            return bind_query(binder.context, statement.tree, top=True).columns
    return []
