"""Capture instances: of which a database and a table get and lose them, and what changes of a table mean for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue.literals import literal, quote
from ..catalogue.model import Column, Database, Index, Table
from ..datatypes import SqlType, make
from ..translate.bound import Bound
from ..translate.changes import assigned
from ..tsql import statements as s
from ..tsql.errors import SqlError, error
from ..tsql.parser import parse
from . import triggers

if TYPE_CHECKING:
    from ..session.executor import Executor

# Columns of a change table before and after the captured ones.
HEAD = (
    "__$start_lsn binary(10) NOT NULL",
    "__$end_lsn binary(10)",
    "__$seqval binary(10) NOT NULL",
    "__$operation int NOT NULL",
    "__$update_mask varbinary(128)",
)
COMMAND = "__$command_id"


def enable_database(executor: Executor, database: Database) -> None:
    """sp_cdc_enable_db."""
    from ..session.definitions import atomic, create_table  # definitions know of instances

    session = executor.session
    if database.database_id <= 4:
        raise error(22988, database.name)
    if database.cdc:
        return
    number = database.database_id
    with atomic(executor):
        user = f"SELECT 1 FROM cat.users WHERE database_id = {number} AND lower(name) = 'cdc'"
        if session.reader().schema_id(number, "cdc") is not None or session.backend.scalar(user) is not None:
            raise error(22906, database.name)
        session.backend.run(
            f"INSERT INTO cat.schemas SELECT {number}, max(schema_id) + 1, 'cdc', 1 FROM cat.schemas WHERE"
            f" database_id = {number};"
            f"INSERT INTO cat.users (database_id, name, type, default_schema) VALUES ({number}, 'cdc', 'S', 'cdc');"
            f"UPDATE cat.databases SET is_cdc_enabled = 1 WHERE database_id = {number}"
        )
        for statement in parse((Path(__file__).parent / "objects.sql").read_text(encoding="utf-8")):
            assert isinstance(statement, s.CreateTable)
            create_table(executor, database, statement.name[0], statement.name[1], statement, shipped=True)


def disable_database(executor: Executor, database: Database) -> None:
    """sp_cdc_disable_db."""
    from ..session.definitions import atomic, drop_table  # definitions know of instances

    session = executor.session
    if not database.cdc:
        raise not_enabled(database)
    number = database.database_id
    with session.server.capture_paused(number), atomic(executor):
        for (source,) in session.backend.run(
            f"SELECT DISTINCT source_object_id FROM cat.instances WHERE database_id = {number}"
        ).rows:
            drop_instances(executor, _by_id(executor, int(source or 0)))
        shipped = f"SELECT object_id FROM cat.objects WHERE database_id = {number} AND is_ms_shipped = 1 AND type = 'U'"
        for (table,) in session.backend.run(shipped).rows:
            drop_table(executor, _by_id(executor, int(table or 0)))
        session.backend.run(
            f"DELETE FROM cat.schemas WHERE database_id = {number} AND name = 'cdc'; DELETE FROM cat.users WHERE"
            f" database_id = {number} AND name = 'cdc';"
            f"DELETE FROM cat.cdc_jobs WHERE database_id = {number}; DELETE FROM cat.transactions WHERE"
            f" database_id = {number};"
            f"UPDATE cat.databases SET is_cdc_enabled = 0 WHERE database_id = {number}"
        )


def not_enabled(database: Database) -> SqlError:
    """The error of a database without change data capture."""
    return error(22901, database.name)


def _by_id(executor: Executor, object_id: int) -> Table:
    found = executor.session.reader().by_id(object_id)
    assert found is not None
    return found


# Tables


def create_instance(
    executor: Executor,
    database: Database,
    table: Table,
    name: str,
    columns: list[Column],
    key: Index | None,
    *,
    role: str | None,
    net_changes: bool,
    filegroup: str | None,
    switch: bool,
) -> None:
    """Create a capture instance: its change table, what describes it, and the triggers if it is the table's first."""
    from ..session.definitions import create_table  # definitions know of instances

    session = executor.session
    backend = session.backend
    # As SQL Server's schema lock: transactions that have changed the table end first.
    backend.run(f"LOCK TABLE {table.physical} IN SHARE ROW EXCLUSIVE MODE")
    declared = [s.Column(name_, type_, nullable) for name_, type_, nullable in (_declared(text) for text in HEAD)]
    declared += [
        s.Column(column.name, str(change_type(column.kind)), True, collation=column.kind.collation)
        for column in columns
    ]
    declared.append(s.Column(COMMAND, "int", True))
    keys = [(column, False) for column in ("__$start_lsn", COMMAND, "__$seqval", "__$operation")]
    index = s.Constraint("INDEX", f"{name}_CT_clustered_idx", keys, True)
    statement = s.CreateTable(("cdc", f"{name}_CT"), declared, [index])
    changes = create_table(executor, database, "cdc", f"{name}_CT", statement, shipped=True)
    position = int(backend.scalar(f"SELECT ms.log_position({database.database_id})") or 0)
    ids = ", ".join(str(column.column_id) for column in columns)
    backend.run(
        f"INSERT INTO cat.instances VALUES ({changes.object_id}, {database.database_id}, {table.object_id},"
        f" {quote(name)}, {position}, ARRAY[{ids}]);"
        f"INSERT INTO cat.transactions (xid, database_id, begin_time, end_time, lsn, is_marker)"
        f" SELECT pg_current_xact_id(), {database.database_id}, clock_timestamp(), clock_timestamp(), {position},"
        f" true ON CONFLICT DO NOTHING"
    )
    _describe(executor, database, table, changes, name, position, columns, key, role, net_changes, filegroup, switch)
    if not table.captured:
        backend.run(triggers.log_table(table) + triggers.functions(table) + triggers.triggers(table))


def _declared(text: str) -> tuple[str, str, bool]:
    name, declared, *rest = text.split(" ")
    return name, declared, not rest


def change_type(kind: SqlType) -> SqlType:
    """The type of a captured column in the change table."""
    return make("binary", 8) if kind.name == "timestamp" else replace(kind, alias_id=None, collation=None)


def _describe(
    executor: Executor,
    database: Database,
    table: Table,
    changes: Table,
    name: str,
    position: int,
    columns: list[Column],
    key: Index | None,
    role: str | None,
    net_changes: bool,
    filegroup: str | None,
    switch: bool,
) -> None:
    """Fill change_tables, captured_columns and index_columns."""
    reader, backend = executor.session.reader(), executor.session.backend

    def physical(relation: str) -> str:
        found = reader.object(database.database_id, "cdc", relation)
        assert found is not None
        return found.physical

    values = [
        str(changes.object_id),
        "0",
        str(table.object_id),
        quote(name),
        "NULL" if executor.session.server.capture.starts_late else f"ms.lsn({position})",
        "NULL",
        literal(net_changes),
        "NULL",
        literal(role),
        literal(key.name if key is not None and net_changes else None),
        literal(filegroup),
        "ms.datetime(ms.local_now())",
        literal(switch),
    ]
    backend.run(f"INSERT INTO {physical('change_tables')} VALUES ({', '.join(values)})")
    for ordinal, column in enumerate(columns, 1):
        row = [
            changes.object_id,
            column.name,
            column.column_id,
            column.kind.name,
            ordinal,
            column.computed is not None,
            None,
        ]
        backend.run(f"INSERT INTO {physical('captured_columns')} VALUES ({', '.join(literal(value) for value in row)})")
    for ordinal, (column_id, _) in enumerate(key.keys if key is not None else (), 1):
        row = [changes.object_id, table.by_id(column_id).name, ordinal, column_id]
        backend.run(f"INSERT INTO {physical('index_columns')} VALUES ({', '.join(literal(value) for value in row)})")


def drop_instance(executor: Executor, database_id: int, changes_id: int) -> None:
    """Drop one capture instance; the table's triggers go with its last."""
    session = executor.session
    backend, reader = session.backend, session.reader()
    source = int(backend.scalar(f"SELECT source_object_id FROM cat.instances WHERE object_id = {changes_id}") or 0)
    for relation in ("change_tables", "captured_columns", "index_columns", "ddl_history"):
        table = reader.object(database_id, "cdc", relation)
        column = "c2" if relation == "ddl_history" else "c1"
        if table is not None:
            backend.run(f"DELETE FROM {table.physical} WHERE {column} = {changes_id}")
    backend.run(
        f"DROP TABLE u.t{changes_id}; DELETE FROM cat.objects WHERE object_id = {changes_id} OR parent_object_id ="
        f" {changes_id};"
        f"DELETE FROM cat.instances WHERE object_id = {changes_id}"
    )
    if backend.scalar(f"SELECT 1 FROM cat.instances WHERE source_object_id = {source}") is None:
        backend.run(triggers.removal(source))


def drop_instances(executor: Executor, table: Table) -> None:
    """Drop all capture instances of a table."""
    for (number,) in executor.session.backend.run(
        f"SELECT object_id FROM cat.instances WHERE source_object_id = {table.object_id}"
    ).rows:
        drop_instance(executor, table.database_id, int(number or 0))


# Changes of captured tables


def table_altered(executor: Executor, object_id: int) -> None:
    """After ALTER TABLE: let the log hold new columns, and the triggers know the columns that are there."""
    backend = executor.session.backend
    table = _by_id(executor, object_id)
    for column in triggers.stored_columns(table):
        backend.run(f"ALTER TABLE log.t{object_id} ADD COLUMN IF NOT EXISTS {column.physical} {column.kind.storage}")
    backend.run(triggers.functions(table))
    history = executor.session.reader().object(table.database_id, "cdc", "ddl_history")
    assert history is not None
    backend.run(
        f"INSERT INTO {history.physical} SELECT {object_id}, object_id, 0, {quote(executor.text_of_statement())},"
        f" ms.lsn(ms.log_position({table.database_id})),"
        f" ms.datetime(ms.local_now()) FROM cat.instances WHERE source_object_id = {object_id}"
    )


def column_dropped(executor: Executor, table: Table, column: Column) -> None:
    """A column of a captured table is dropped: its change tables keep the column, which stays null from now on."""
    remaining = replace(table, columns=tuple(other for other in table.columns if other != column), _by_name={})
    executor.session.backend.run(triggers.functions(remaining))


def column_changed(executor: Executor, table: Table, column: Column, new: Column) -> None:
    """A captured column gets another type: so do its log and its change tables."""
    from ..session.alter import retype  # ALTER knows of instances

    backend = executor.session.backend
    value = assigned(Bound(column.physical, column.kind, column.nullable), new)
    backend.run(f"ALTER TABLE log.t{table.object_id} ALTER COLUMN {new.physical} TYPE {new.kind.storage} USING {value}")
    rows = backend.run(
        f"SELECT object_id, array_position(columns, {column.column_id}) FROM cat.instances"
        f" WHERE source_object_id = {table.object_id} AND {column.column_id} = ANY (columns)"
    ).rows
    for changes_id, ordinal in rows:
        changes = _by_id(executor, int(changes_id or 0))
        captured = changes.by_id(len(HEAD) + int(ordinal or 0))
        kind = change_type(new.kind)
        retype(executor, changes.physical, changes.object_id, captured, replace(captured, kind=kind))
        columns = executor.session.reader().object(table.database_id, "cdc", "captured_columns")
        assert columns is not None
        backend.run(
            f"UPDATE {columns.physical} SET c4 = {quote(new.kind.name)} WHERE c1 = {changes.object_id} AND c5 ="
            f" {ordinal}"
        )
