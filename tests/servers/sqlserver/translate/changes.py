"""Translates INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from ..catalogue.model import Column, Table
from ..datatypes import BIGINT, MAX, SIZED
from ..tsql import statements as s
from ..tsql.errors import SqlError, error, invalid_column, invalid_object, unsupported
from ..tsql.parser import parse_expression
from . import sources
from .binder import Binder
from .bound import Bound, Scope, Source
from .context import Context, TableUse
from .convert import convert
from .query import OutColumn, bind_query


@dataclass
class BoundChange:
    """A change in PostgreSQL's SQL; `output` are the columns of its OUTPUT clause, `returning` their expressions."""

    sql: str
    target: Table
    output: list[OutColumn] = field(default_factory=list)
    returning: list[str] = field(default_factory=list)


def assigned(value: Bound, column: Column) -> str:
    """A value as it is stored in a column; what does not fit is left to the column's constraint."""
    kind = column.kind
    if kind.name in SIZED and kind.length != MAX and kind.family == "string":
        text = convert(
            value, replace(kind, name="nvarchar" if kind.name.startswith("n") else "varchar", length=MAX)
        ).sql
        if not (value.kind.family == "string" and 0 < value.kind.length <= kind.length):
            text = f"ms.fit({text}, {kind.length})"
        return f"ms.pad_text({text}, {kind.length})" if kind.name in ("char", "nchar") else text
    if kind.name in ("binary", "varbinary") and kind.length != MAX:
        raw = convert(value, replace(kind, name="varbinary", length=MAX)).sql
        return f"ms.pad_bytes({raw}, {kind.length})" if kind.name == "binary" else raw
    return convert(value, kind).sql


@lru_cache(maxsize=1000)
def _parsed(text: str) -> exp.Expression:
    return parse_expression(text)


def default_of(context: Context, column: Column) -> str:
    """What a column gets that is given no value."""
    if column.default is None:
        return f"NULL::{column.kind.storage}"
    return assigned(Binder(context, Scope()).value(_parsed(column.default)), column)


def _is_default(node: exp.Expression) -> bool:
    return isinstance(node, (exp.Var, exp.Column)) and node.name.upper() == "DEFAULT" and not node.args.get("table")


def target_table(context: Context, name: s.Name, access: str) -> Table:
    """The table that a change is made to."""
    table = context.table(name)
    if table.kind != "U":
        raise error(4406, table.name)
    if not table.name.startswith(("#", "@")):
        context.rights.check(access, table)
    context.uses.append(TableUse(table, access))
    return table


# INSERT


def bind_insert(context: Context, statement: s.Insert, table: Table, *, identity_insert: bool) -> BoundChange:
    """INSERT of values, of a query, or of defaults."""
    columns = [] if statement.source is None else _insert_columns(table, statement.columns, identity_insert)
    filled = _filled_columns(table, columns)
    extra = [_filled(context, column) for column in filled]
    source = statement.source
    if isinstance(source, s.Execute):
        raise unsupported("INSERT EXEC here")
    if source is None:
        rows = f"SELECT {', '.join(extra)}" if extra else "DEFAULT VALUES"
    elif _is_values(source):
        rows = _values(context, source.args["from_"].this, columns, extra)  # type: ignore[union-attr]
    else:
        rows = _selected(context, source, columns, extra, statement.top)
    names = ", ".join(column.physical for column in [*columns, *filled])
    listed = f" ({names})" if names else ""
    change = BoundChange(f"INSERT INTO {table.physical} AS new_row{listed} {rows}", table)
    _output(context, change, statement.output, {"inserted": "new"})
    return change


def _filled_columns(table: Table, given: list[Column]) -> list[Column]:
    """The columns that INSERT fills by itself: those with a default, and rowversion."""
    own = [column for column in table.columns if column not in given and column.computed is None]
    return [column for column in own if column.default is not None or column.kind.name == "timestamp"]


def _filled(context: Context, column: Column) -> str:
    if column.kind.name == "timestamp":
        return f"ms.next_rowversion({context.database.database_id})"
    return default_of(context, column)


def _insert_columns(table: Table, names: list[str] | None, identity_insert: bool) -> list[Column]:
    if names is None:
        if identity_insert:
            raise error(8101, table.name)
        return [column for column in table.columns if column.writable and column.identity is None]
    found = []
    for name in names:
        column = table.column(name)
        if column is None:
            raise invalid_column(name)
        if not column.writable:
            what = "a timestamp column" if column.kind.name == "timestamp" else "a computed column"
            raise SqlError(
                273 if column.kind.name == "timestamp" else 271,
                16,
                f'The column "{column.name}" cannot be modified because it is {what}.',
            )
        if column.identity is not None and not identity_insert:
            raise error(544, table.name)
        found.append(column)
    if identity_insert and table.identity not in found:
        raise error(545, table.name)
    return found


def _is_values(tree: exp.Expression) -> bool:
    clause = tree.args.get("from_")
    plain = len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star)
    return (
        plain
        and clause is not None
        and isinstance(clause.this, exp.Values)
        and clause.this.alias == "v"
        and not clause.this.args["alias"].args.get("columns")
    )


def _values(context: Context, values: exp.Values, columns: list[Column], extra: list[str]) -> str:
    binder = Binder(context, Scope())
    rows = []
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
        if len(cells) != len(columns):
            raise error(213)
        given = [
            default_of(context, column) if _is_default(cell) else assigned(binder.value(cell), column)
            for cell, column in zip(cells, columns, strict=True)
        ]
        rows.append(f"({', '.join([*given, *extra])})")
    return f"VALUES {', '.join(rows)}"


def _selected(
    context: Context, source: exp.Expression, columns: list[Column], extra: list[str], top: exp.Expression | None
) -> str:
    query = bind_query(context, source)
    if len(query.columns) != len(columns):
        raise error(213)
    given = [
        assigned(Bound(f"q.c{number}", have.kind, have.nullable), column)
        for number, (have, column) in enumerate(zip(query.columns, columns, strict=True), 1)
    ]
    limit = "" if top is None else f" LIMIT ({convert(Binder(context, Scope()).value(top), BIGINT).sql})"
    return f"SELECT {', '.join([*given, *extra])} FROM ({query.sql}) q{limit}"


# UPDATE and DELETE


def bind_change(context: Context, statement: s.Change) -> BoundChange:
    """UPDATE or DELETE."""
    scope = Scope()
    binder = Binder(context, scope)
    from_sql = sources.bind_from(binder, statement.tree)
    source = _target_source(scope, statement.target)
    table = source.table
    if table is None or table.kind != "U":
        raise invalid_object(".".join(statement.target))
    if not table.name.startswith(("#", "@")):
        context.rights.check(statement.kind, table)
    context.uses.append(TableUse(table, statement.kind))
    where = statement.tree.args.get("where")
    condition = f" WHERE {binder.condition(where.this)}" if where is not None else ""
    assignments = _assignments(context, binder, table, statement.assignments)
    simple = len(scope.sources) == 1 and statement.top is None and not statement.tree.args.get("with_")
    if simple:
        sql = _simple_change(statement.kind, table, source.alias, assignments, condition)
    else:
        limit = "" if statement.top is None else f" LIMIT ({convert(binder.value(statement.top), BIGINT).sql})"
        listed = "".join(f", {value} AS v{number}" for number, (_, value) in enumerate(assignments, 1))
        rows = (
            f"SELECT {source.alias}.ctid AS row_id{listed} FROM {from_sql}{condition}{limit} FOR UPDATE OF"
            f" {source.alias}"
        )
        own = [(column, f"q.v{number}") for number, (column, _) in enumerate(assignments, 1)]
        word = "USING" if statement.kind == "DELETE" else "FROM"
        sql = _simple_change(statement.kind, table, "target", own, f" {word} ({rows}) q WHERE target.ctid = q.row_id")
    change = BoundChange(sql, table)
    _output(context, change, statement.output, {"inserted": "new", "deleted": "old"})
    return change


def _simple_change(kind: str, table: Table, alias: str, assignments: list[tuple[Column, str]], rest: str) -> str:
    if kind == "DELETE":
        return f"DELETE FROM {table.physical} AS {alias}{rest}"
    listed = ", ".join(f"{column.physical} = {value}" for column, value in assignments)
    return f"UPDATE {table.physical} AS {alias} SET {listed}{rest}"


def _target_source(scope: Scope, name: s.Name) -> Source:
    """What UPDATE and DELETE name: an alias in FROM, or the table itself."""
    asked = tuple(part.lower() for part in name)
    for source in scope.sources:
        if source.answers_to(asked):
            return source
    for source in scope.sources:
        if source.table is not None and source.table.name.lower() == asked[-1]:
            return source
    raise invalid_object(".".join(name))


def _assignments(
    context: Context, binder: Binder, table: Table, given: list[tuple[str, exp.Expression]]
) -> list[tuple[Column, str]]:
    found = []
    for name, node in given:
        column = table.column(name)
        if column is None:
            raise invalid_column(name)
        if column.identity is not None:
            raise error(8102, column.name)
        if not column.writable:
            what = (
                "a timestamp column"
                if column.kind.name == "timestamp"
                else "either a computed column or is the result of a UNION operator"
            )
            raise SqlError(
                272 if column.kind.name == "timestamp" else 271,
                16,
                f'The column "{column.name}" cannot be modified because it is {what}.',
            )
        value = default_of(context, column) if _is_default(node) else assigned(binder.value(node), column)
        found.append((column, value))
    if found:
        found += [(column, _filled(context, column)) for column in table.columns if column.kind.name == "timestamp"]
    return found


# MERGE


def bind_merge(context: Context, statement: s.Merge) -> BoundChange:
    """MERGE."""
    tree = statement.tree
    scope = Scope()
    binder = Binder(context, scope)
    sources.bind_item(binder, tree.this)
    target = scope.sources[0]
    table = target.table
    if table is None:
        raise invalid_object(tree.this.name)
    for access in ("INSERT", "UPDATE", "DELETE"):
        context.rights.check(access, table)
    context.uses.append(TableUse(table, "UPDATE"))
    using = sources.bind_item(binder, tree.args["using"])
    sql = f"MERGE INTO {table.physical} AS {target.alias} USING {using} ON {binder.condition(tree.args['on'])}"
    for when in tree.args["whens"].expressions:
        sql += _when(context, binder, table, when)
    change = BoundChange(sql, table)
    _output(context, change, statement.output, {"inserted": "new", "deleted": "old"})
    return change


def _when(context: Context, binder: Binder, table: Table, when: exp.When) -> str:
    matched = when.args.get("matched")
    word = "MATCHED" if matched else "NOT MATCHED BY SOURCE" if when.args.get("source") else "NOT MATCHED"
    condition = when.args.get("condition")
    sql = f" WHEN {word}" + (f" AND {binder.condition(condition)}" if condition is not None else "")
    then = when.args["then"]
    if isinstance(then, exp.Update):
        given = [(item.this.name, item.expression) for item in then.expressions]
        listed = ", ".join(
            f"{column.physical} = {value}" for column, value in _assignments(context, binder, table, given)
        )
        return f"{sql} THEN UPDATE SET {listed}"
    if isinstance(then, exp.Insert):
        names = [column.name for column in then.this.expressions] if then.this is not None else None
        columns = _insert_columns(table, names, False)
        cells = then.expression.expressions
        values = [
            default_of(context, column) if _is_default(cell) else assigned(binder.value(cell), column)
            for cell, column in zip(cells, columns, strict=True)
        ]
        filled = _filled_columns(table, columns)
        names_sql = ", ".join(column.physical for column in [*columns, *filled])
        values_sql = ", ".join([*values, *(_filled(context, column) for column in filled)])
        return f"{sql} THEN INSERT ({names_sql}) VALUES ({values_sql})"
    return f"{sql} THEN DELETE"


# OUTPUT


def _output(context: Context, change: BoundChange, output: s.Output | None, versions: dict[str, str]) -> None:
    """Add what the OUTPUT clause returns."""
    if output is None:
        return
    scope = Scope()
    binder = Binder(context, scope)
    for name, version in versions.items():
        source = sources.table_source(change.target, version, name)
        source.columns = [(column, replace(bound, nullable=True)) for column, bound in source.columns]
        sources.add_computed(binder, source)
        scope.sources.append(source)
    for node in output.columns.expressions:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            for name, bound in scope.all_columns((node.args["table"].name,)):
                _add_output(change, name, bound)
        elif node.name.lower() == "$action":
            _add_output(change, "$action", Bound("merge_action()", sources.ACTION))
        else:
            inner = node.this if isinstance(node, exp.Alias) else node
            bound = binder.value(inner)
            _add_output(change, node.alias or (inner.name if isinstance(inner, exp.Column) else ""), bound)


def _add_output(change: BoundChange, name: str, bound: Bound) -> None:
    change.output.append(OutColumn(name, bound.kind, True))
    change.returning.append(bound.sql)
