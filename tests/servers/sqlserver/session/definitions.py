"""Runs CREATE, DROP and TRUNCATE: in the catalogue and in PostgreSQL, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.definition_text import definition_text
from ..catalogue.literals import literal, quote
from ..catalogue.model import Column, Database, Table
from ..datatypes import SqlType
from ..tds.collations import known
from ..translate.binder import Binder
from ..translate.bound import Scope
from ..translate.query import OutColumn
from ..translate.sources import table_source
from ..tsql import statements as s
from ..tsql.errors import error
from . import alter, constraints, modules, principals

if TYPE_CHECKING:
    from .executor import Executor


@contextmanager
def atomic(executor: Executor) -> Iterator[None]:
    """Several statements of PostgreSQL as one: in the session's transaction, or in one of their own."""
    session = executor.session
    if session.transactions.open:
        session.backend.run(session.transactions.before_statement() + "SELECT 1")
        session.transactions.changed_definitions = True
        yield
        return
    session.backend.run("BEGIN")
    session.transactions.changed_definitions = True
    try:
        yield
        session.backend.run("COMMIT")
    except BaseException:
        session.backend.run("ROLLBACK")
        session.transactions.changed_definitions = False
        raise
    session.transactions.changed_definitions = False
    session.definitions_committed()


def run_definition(executor: Executor, statement: s.Statement) -> None:
    """Run one definition."""
    if isinstance(statement, s.CreateTable):
        _create_table(executor, statement)
    elif isinstance(statement, s.AlterTable):
        with atomic(executor):
            alter.alter_table(executor, statement)
    elif isinstance(statement, s.CreateIndex):
        with atomic(executor):
            constraints.create_index(executor, statement)
    elif isinstance(statement, s.Drop):
        _drop(executor, statement)
    elif isinstance(statement, s.Truncate):
        _truncate(executor, statement)
    elif isinstance(statement, s.CreateModule):
        modules.create_module(executor, statement)
    elif isinstance(statement, s.CreateSimple):
        with atomic(executor):
            principals.create_simple(executor, statement)
    elif isinstance(statement, s.Permission):
        with atomic(executor):
            principals.permission(executor, statement)


# Tables


def _create_table(executor: Executor, statement: s.CreateTable) -> None:
    name = statement.name[-1]
    if name.startswith("#"):
        if name.lower() in executor.session.temporary:
            raise error(2714, name)
        executor.session.create_temporary(name, table_columns(executor, statement))
        return
    context = executor.session.context()
    database, schema, plain = context.split(statement.name)
    executor.session.rights.check_database("CREATE TABLE", database)
    with atomic(executor):
        create_table(executor, database, schema, plain, statement)


def create_table(
    executor: Executor, database: Database, schema: str, name: str, statement: s.CreateTable, *, shipped: bool = False
) -> Table:
    """Create a table with its constraints."""
    columns = table_columns(executor, statement)
    object_id = new_object(executor, database, schema, name, "U", shipped=shipped)
    executor.session.backend.run(f"CREATE TABLE u.t{object_id} ()")
    for column, declared in zip(columns, statement.columns, strict=True):
        add_column(executor, object_id, database, column, declared)
    table = by_id(executor, object_id)
    for constraint in statement.constraints:
        constraints.add_constraint(executor, table, constraint)
        table = by_id(executor, object_id)
    return table


def create_from_query(executor: Executor, into: exp.Expression, columns: list[OutColumn]) -> Table:
    """The table of SELECT INTO."""
    name = into.name
    made = []
    for number, column in enumerate(columns, 1):
        if not column.name:
            raise error(1038)
        identity = column.column.identity if column.column is not None else None
        made.append(Column(column.name, number, column.kind, column.nullable, identity))
    if into.this.args.get("temporary") or name.startswith("#"):
        return executor.session.create_temporary("#" + name.lstrip("#"), made)
    database, schema, plain = executor.session.context().split(
        (into.args["db"].name if into.args.get("db") else "dbo", name)
    )
    with atomic(executor):
        object_id = new_object(executor, database, schema, plain, "U")
        executor.session.backend.run(f"CREATE TABLE u.t{object_id} ()")
        for column in made:
            add_column(executor, object_id, database, column, s.Column(column.name, None))
        return by_id(executor, object_id)


def table_columns(executor: Executor, statement: s.CreateTable) -> list[Column]:
    """The columns of CREATE TABLE with their types."""
    context = executor.session.context()
    keys = {name.lower() for c in statement.constraints if c.kind == "PRIMARY" for name, _ in c.columns}
    found: list[Column] = []
    computed: list[int] = []
    names = set()
    for number, declared in enumerate(statement.columns, 1):
        if declared.name.lower() in names:
            raise error(2705, declared.name, statement.name[-1])
        names.add(declared.name.lower())
        if declared.computed is not None:
            computed.append(len(found))
            found.append(Column(declared.name, number, SqlType("int"), computed=definition_text(declared.computed)))
            continue
        found.append(column_of(context, number, declared, nullable=declared.name.lower() not in keys))
    for place in computed:
        found[place] = computed_column(executor, found, found[place])
    return found


def column_of(context: object, number: int, declared: s.Column, *, nullable: bool = True) -> Column:
    """A column as it is declared."""
    kind: SqlType = context.type(declared.type_name or "int")  # type: ignore[attr-defined]
    if declared.collation is not None:
        if not known(declared.collation):
            raise error(448, declared.collation)
        kind = SqlType(kind.name, kind.length, kind.precision, kind.scale, declared.collation, kind.alias_id)
    may_be_null = (
        declared.nullable
        if declared.nullable is not None
        else nullable and declared.identity is None and kind.name != "timestamp"
    )
    default = definition_text(declared.default) if declared.default is not None else None
    return Column(
        declared.name,
        number,
        kind,
        may_be_null,
        declared.identity,
        None,
        default,
        declared.default_name,
        declared.rowguid,
    )


def computed_column(executor: Executor, columns: list[Column], column: Column) -> Column:
    """A computed column with the type of its expression."""
    from ..tsql.parser import parse_expression  # needed here only

    stored = [other for other in columns if other.computed is None]
    source = table_source(Table(0, 0, "", "", "", tuple(stored)), "x")
    bound = Binder(executor.session.context(), Scope([source])).value(parse_expression(column.computed or ""))
    return Column(column.name, column.column_id, bound.kind, True, computed=column.computed)


def add_column(executor: Executor, object_id: int, database: Database, column: Column, declared: s.Column) -> None:
    """Add a column to a table, in the catalogue and in PostgreSQL."""
    backend = executor.session.backend
    default_id = 0
    if column.default is not None:
        table = by_id(executor, object_id)
        name = column.default_name or f"DF__{table.name[:9]}__{column.name[:5]}__{object_id + column.column_id:08X}"
        default_id = new_object(
            executor,
            database,
            table.schema,
            name,
            "D",
            parent=object_id,
            definition=column.default,
            parent_column=column.column_id,
            system_named=column.default_name is None,
        )
    kind = column.kind
    seed, step = column.identity or (None, None)
    values = [
        object_id,
        column.column_id,
        column.name,
        kind.name,
        kind.length,
        kind.precision,
        kind.scale,
        kind.collation,
        kind.alias_id,
        kind.max_length,
        kind.kind.system_type_id,
        kind.alias_id or kind.kind.user_type_id,
        column.nullable,
        seed,
        step,
        column.computed,
        declared.persisted,
        default_id,
        column.rowguid,
        declared.sparse,
    ]
    backend.run(f"INSERT INTO cat.columns VALUES ({', '.join(literal(value) for value in values)})")
    if column.computed is not None:
        return
    sql = f"ALTER TABLE u.t{object_id} ADD COLUMN {column.physical} {kind.column_storage}"
    if column.identity is not None:
        backend.run(
            f"CREATE SEQUENCE u.identity_{object_id} START {seed} INCREMENT {step} MINVALUE -9223372036854775808"
        )
        sql += f" DEFAULT nextval('u.identity_{object_id}')"
    backend.run(sql + constraints.column_checks(object_id, column) + ("" if column.nullable else " NOT NULL"))


def new_object(
    executor: Executor,
    database: Database,
    schema: str,
    name: str,
    kind: str,
    *,
    parent: int = 0,
    definition: str | None = None,
    shipped: bool = False,
    parent_column: int = 0,
    system_named: bool = False,
    details: str | None = None,
) -> int:
    """Enter something into the catalogue; its number."""
    session = executor.session
    schema_id = session.reader().schema_id(database.database_id, schema)
    if schema_id is None:
        raise error(2760, schema)
    taken = session.backend.scalar(
        f"SELECT 1 FROM cat.objects WHERE database_id = {database.database_id} AND schema_id = {schema_id} AND"
        f" lower(name) = {quote(name.lower())}"
    )
    if taken is not None:
        raise error(2714, name)
    values = [
        database.database_id,
        schema_id,
        name,
        kind,
        parent,
        shipped,
        definition,
        parent_column,
        system_named,
        details,
    ]
    return int(
        session.backend.scalar(
            "INSERT INTO cat.objects (database_id, schema_id, name, type, parent_object_id, is_ms_shipped,"
            " definition, parent_column_id, is_system_named, details)"
            f" VALUES ({', '.join(literal(value) for value in values)}) RETURNING object_id"
        )
        or 0
    )


def by_id(executor: Executor, object_id: int) -> Table:
    """A table as the session sees it now."""
    found = executor.session.reader().by_id(object_id)
    assert found is not None
    return found


# Other things


def _drop(executor: Executor, statement: s.Drop) -> None:
    session = executor.session
    if statement.kind == "DATABASE":
        for name in statement.names:
            principals.drop_database(executor, name[0], if_exists=statement.if_exists)
        return
    for name in statement.names:
        if name[-1].startswith("#") and statement.kind == "TABLE":
            if name[-1].lower() in session.temporary:
                session.drop_temporary(name[-1])
            elif not statement.if_exists:
                raise error(3701, "table", name[-1])
            continue
        with atomic(executor):
            _drop_one(executor, statement, name)


def _drop_one(executor: Executor, statement: s.Drop, name: s.Name) -> None:
    session = executor.session
    if statement.kind not in ("TABLE", "VIEW", "PROCEDURE", "FUNCTION", "INDEX"):
        principals.drop_simple(executor, statement.kind, name, if_exists=statement.if_exists)
        return
    if statement.kind == "INDEX":
        constraints.drop_index(executor, statement, name)
        return
    database, schema, plain = session.context().split(name)
    found = session.reader().object(database.database_id, schema, plain)
    kinds = {"TABLE": ("U",), "VIEW": ("V",), "PROCEDURE": ("P",), "FUNCTION": ("FN", "IF")}[statement.kind]
    if found is None or found.kind not in kinds:
        if statement.if_exists:
            return
        raise error(3701, statement.kind.lower(), ".".join(name))
    if found.kind == "U" and found.captured:
        # The capture job would wait for the table's lock, and hold the tables that go with it.
        with session.server.capture_paused(found.database_id):
            drop_table(executor, found)
    elif found.kind == "U":
        drop_table(executor, found)
    else:
        session.backend.run(f"DELETE FROM cat.objects WHERE object_id = {found.object_id}")


def drop_table(executor: Executor, table: Table) -> None:
    """Drop a table with what depends on it; its capture instances go first."""
    from ..cdc.instances import drop_instances  # instances hold tables

    session = executor.session
    referencing = session.backend.scalar(
        f"SELECT name FROM cat.objects WHERE type = 'F' AND (details->>'referenced')::int = {table.object_id} AND"
        f" parent_object_id <> {table.object_id}"
    )
    if referencing is not None:
        raise error(3726, table.schema, table.name)
    if table.captured:
        drop_instances(executor, table)
    session.backend.run(
        f"DROP TABLE u.t{table.object_id} CASCADE; DROP SEQUENCE IF EXISTS u.identity_{table.object_id};"
        f"DELETE FROM cat.objects WHERE parent_object_id = {table.object_id} OR object_id = {table.object_id}"
    )


def _truncate(executor: Executor, statement: s.Truncate) -> None:
    session = executor.session
    table = session.context().table(statement.name)
    if table.captured:
        raise error(4711, table.name)
    restart = ""
    if table.identity is not None and table.physical_name is None and table.identity.identity is not None:
        restart = f"; ALTER SEQUENCE u.identity_{table.object_id} RESTART WITH {table.identity.identity[0]}"
    if table.physical_name is None:
        session.rights.check("ALTER", table)
    session.backend.run(session.transactions.before_statement() + f"TRUNCATE {table.physical}{restart}")
