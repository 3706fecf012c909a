"""The procedures of change data capture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..catalogue.model import Column, Database, Index, Table
from ..datatypes import LSN, MAX, SYSNAME, make
from ..session.outcome import Compiled, delivered
from ..translate.query import OutColumn
from ..tsql.cursor import Cursor
from ..tsql.dialect import tokenize
from ..tsql.errors import error
from . import instances, jobs

if TYPE_CHECKING:
    from ..session.executor import Executor
    from ..session.procedures import Arguments


def _physical(executor: Executor, database: Database, name: str) -> str:
    found = executor.session.reader().object(database.database_id, "cdc", name)
    assert found is not None
    return found.physical


# Enabling and disabling


def enable_db(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_enable_db."""
    executor.session.rights.check_administrator(executor.session.current_database())
    instances.enable_database(executor, executor.session.current_database())
    return ()


def disable_db(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_disable_db."""
    executor.session.rights.check_administrator(executor.session.current_database())
    instances.disable_database(executor, executor.session.current_database())
    return ()


def rds_enable_db(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """rds_cdc_enable_db, which Amazon RDS has in msdb for owners of databases."""
    session = executor.session
    if not session.server.platform.is_rds:
        raise error(2812, "msdb.dbo.rds_cdc_enable_db")
    before = session.database_name
    database = session.use(arguments.text("db_name") or "")
    try:
        session.rights.check_owner(database)
        instances.enable_database(executor, database)
    finally:
        session.use(before)
    return ()


def _source(executor: Executor, database: Database, arguments: Arguments) -> Table:
    schema, name = arguments.text("source_schema") or "", arguments.text("source_name") or ""
    table = executor.session.reader().object(database.database_id, schema, name)
    if table is None or table.kind != "U" or table.shipped:
        raise error(22931, schema, name)
    return table


def enable_table(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_enable_table."""
    from ..session.definitions import atomic  # definitions know of instances

    session = executor.session
    database = jobs.enabled(executor)
    session.rights.check_owner(database)
    if arguments.variable("role_name") is None:
        raise error(201, "sp_cdc_enable_table", "@role_name")
    with atomic(executor):
        table = _source(executor, database, arguments)
        name = arguments.text("capture_instance") or f"{table.schema}_{table.name}"
        _check_instance(executor, database, table, name)
        key = _key(table, arguments)
        net_changes = bool(arguments.number("supports_net_changes", int(table.primary_key is not None)))
        if net_changes and key is None:
            raise error(22939)
        columns = _captured(table, arguments.text("captured_column_list"))
        role = arguments.text("role_name")
        if role is not None:
            _create_role(executor, database, role)
        instances.create_instance(
            executor,
            database,
            table,
            name,
            columns,
            key,
            role=role,
            net_changes=net_changes,
            filegroup=arguments.text("filegroup_name"),
            switch=bool(arguments.number("allow_partition_switch", 1)),
        )
        jobs.create_jobs(executor, database)
    session.server.capture.wake()
    return ()


def _check_instance(executor: Executor, database: Database, table: Table, name: str) -> None:
    backend = executor.session.backend
    if backend.scalar(
        f"SELECT 1 FROM cat.instances WHERE database_id = {database.database_id} AND lower(name) ="
        f" {quote(name.lower())}"
    ):
        raise error(22926, name)
    if int(backend.scalar(f"SELECT count(*) FROM cat.instances WHERE source_object_id = {table.object_id}") or 0) >= 2:
        raise error(22962, table.schema, table.name)


def _key(table: Table, arguments: Arguments) -> Index | None:
    """The unique index by which the changes of a row belong together."""
    wanted = arguments.text("index_name")
    if wanted is None:
        return table.primary_key
    index = table.index_id(wanted)
    if index is None or not index.unique:
        raise error(22941, wanted, table.schema, table.name)
    return index


def _captured(table: Table, wanted: str | None) -> list[Column]:
    """The captured columns, in the table's order whatever that of the list."""
    if wanted is None:
        return list(table.columns)
    cursor = Cursor(tokenize(wanted), wanted)
    names = [cursor.identifier()]
    while cursor.accept(","):
        names.append(cursor.identifier())
    for name in names:
        if table.column(name) is None:
            raise error("22931.column", name, table.schema, table.name)
    lower = {name.lower() for name in names}
    return [column for column in table.columns if column.name.lower() in lower]


def _create_role(executor: Executor, database: Database, role: str) -> None:
    backend = executor.session.backend
    number = database.database_id
    if (
        backend.scalar(f"SELECT 1 FROM cat.users WHERE database_id = {number} AND lower(name) = {quote(role.lower())}")
        is None
    ):
        backend.run(f"INSERT INTO cat.users (database_id, name, type) VALUES ({number}, {quote(role)}, 'R')")


def disable_table(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_disable_table."""
    from ..session.definitions import atomic  # definitions know of instances

    session = executor.session
    database = jobs.enabled(executor)
    session.rights.check_owner(database)
    wanted = arguments.text("capture_instance") or ""
    # A scan of the capture step holds what is dropped here.
    with session.server.capture_paused(database.database_id), atomic(executor):
        table = _source(executor, database, arguments)
        condition = "" if wanted.lower() == "all" else f" AND lower(name) = {quote(wanted.lower())}"
        rows = session.backend.run(
            f"SELECT object_id FROM cat.instances WHERE source_object_id = {table.object_id}{condition}"
        ).rows
        if not rows:
            raise error(22960, wanted, table.schema, table.name)
        for (number,) in rows:
            instances.drop_instance(executor, database.database_id, int(number or 0))
    return ()


# Asking


def help_change_data_capture(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_help_change_data_capture: the capture instances that the caller may read."""
    session = executor.session
    database = jobs.enabled(executor)
    names = (
        "source_schema",
        "source_table",
        "capture_instance",
        "object_id",
        "source_object_id",
        "start_lsn",
        "end_lsn",
        "supports_net_changes",
        "has_drop_pending",
        "role_name",
        "index_name",
        "filegroup_name",
        "create_date",
        "index_column_list",
        "captured_column_list",
    )
    kinds = (
        SYSNAME,
        SYSNAME,
        SYSNAME,
        make("int"),
        make("int"),
        LSN,
        LSN,
        make("bit"),
        make("bit"),
        SYSNAME,
        SYSNAME,
        SYSNAME,
        make("datetime"),
        make("nvarchar", MAX),
        make("nvarchar", MAX),
    )
    tables, columns, keys = (
        _physical(executor, database, name) for name in ("change_tables", "captured_columns", "index_columns")
    )
    visible = [
        name
        for (name,) in session.backend.run(f"SELECT c4 FROM {tables}").rows
        if session.rights.may_read_changes(database, str(name))
    ]
    conditions = [f"t.c4 IN ({', '.join(quote(str(name)) for name in visible) or 'NULL'})"]
    if arguments.has("source_name"):
        conditions.append(f"lower(o.name) = lower({quote(arguments.text('source_name') or '')})")
    if arguments.has("source_schema"):
        conditions.append(f"lower(s.name) = lower({quote(arguments.text('source_schema') or '')})")
    query = (
        "SELECT s.name AS c1, o.name AS c2, t.c4 AS c3, t.c1 AS c4, t.c3 AS c5, t.c5 AS c6, t.c6 AS c7, t.c7 AS"
        " c8, t.c8 AS c9, t.c9 AS c10,"
        " t.c10 AS c11, t.c11 AS c12, t.c12 AS c13,"
        f" (SELECT string_agg('[' || k.c2 || ']', ', ' ORDER BY k.c3) FROM {keys} k WHERE k.c1 = t.c1) AS c14,"
        f" (SELECT string_agg('[' || x.c2 || ']', ', ' ORDER BY x.c5) FROM {columns} x WHERE x.c1 = t.c1) AS c15"
        f" FROM {tables} t JOIN cat.objects o ON o.object_id = t.c3 JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE {' AND '.join(conditions)} ORDER BY 1, 2, 3"
    )
    listed = [OutColumn(name, kind) for name, kind in zip(names, kinds, strict=True)]
    yield Compiled(delivered(query, listed), listed)


def help_jobs(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_help_jobs."""
    database = jobs.enabled(executor)
    executor.session.rights.check_owner(database)
    listed = [
        OutColumn("job_id", make("uniqueidentifier")),
        OutColumn("job_type", make("nvarchar", 20)),
        OutColumn("job_name", SYSNAME),
        OutColumn("maxtrans", make("int")),
        OutColumn("maxscans", make("int")),
        OutColumn("continuous", make("bit")),
        OutColumn("pollinginterval", make("bigint")),
        OutColumn("retention", make("bigint")),
        OutColumn("threshold", make("bigint")),
    ]
    query = (
        f"SELECT ms.guid(job_id) AS c1, job_type AS c2, 'cdc.' || {quote(database.name)} || '_' || job_type AS c3,"
        f" maxtrans AS c4, maxscans AS c5,"
        " continuous AS c6, pollinginterval AS c7, retention AS c8, threshold AS c9"
        f" FROM cat.cdc_jobs WHERE database_id = {database.database_id} ORDER BY job_type"
    )
    yield Compiled(delivered(query, listed), listed)


def get_captured_columns(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_get_captured_columns."""
    database = jobs.enabled(executor)
    tables, columns = (_physical(executor, database, name) for name in ("change_tables", "captured_columns"))
    listed = [
        OutColumn("source_schema", SYSNAME),
        OutColumn("source_table", SYSNAME),
        OutColumn("capture_instance", SYSNAME),
        OutColumn("column_name", SYSNAME),
        OutColumn("column_id", make("int")),
        OutColumn("ordinal_position", make("int")),
        OutColumn("data_type", SYSNAME),
    ]
    query = (
        f"SELECT s.name AS c1, o.name AS c2, t.c4 AS c3, x.c2 AS c4, x.c3 AS c5, x.c5 AS c6, x.c4 AS c7 FROM"
        f" {tables} t JOIN {columns} x ON x.c1 = t.c1"
        " JOIN cat.objects o ON o.object_id = t.c3 JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE lower(t.c4) = lower({quote(arguments.text('capture_instance') or '')}) ORDER BY x.c5"
    )
    yield Compiled(delivered(query, listed), listed)


_TABLE = (
    "source_schema",
    "source_name",
    "capture_instance",
    "supports_net_changes",
    "role_name",
    "index_name",
    "captured_column_list",
    "filegroup_name",
    "allow_partition_switch",
)

PROCEDURES = {
    **jobs.PROCEDURES,
    "rds_cdc_enable_db": (("db_name",), rds_enable_db),
    "sp_cdc_enable_db": ((), enable_db),
    "sp_cdc_disable_db": ((), disable_db),
    "sp_cdc_enable_table": (_TABLE, enable_table),
    "sp_cdc_disable_table": (("source_schema", "source_name", "capture_instance"), disable_table),
    "sp_cdc_help_change_data_capture": (("source_schema", "source_name"), help_change_data_capture),
    "sp_cdc_help_jobs": ((), help_jobs),
    "sp_cdc_get_captured_columns": (("capture_instance",), get_captured_columns),
}
