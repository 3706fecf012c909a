"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..translate.changes import bind_change, bind_insert, bind_merge, target_table
from ..tsql import statements as s
from . import locking
from .outcome import Compiled, delivered_values
from .procedures import run_procedure

if TYPE_CHECKING:
    from .executor import Executor


def run_insert(executor: Executor, statement: s.Insert) -> None:
    """INSERT."""
    if isinstance(statement.source, s.Execute):
        _insert_execute(executor, statement)
        return

    def translate(context: Any) -> Any:
        table = target_table(context, statement.target, "INSERT")
        identity = executor.session.options.identity_insert == table.object_id
        return bind_insert(context, statement, table, identity_insert=identity)

    change, uses = executor.translated(statement, translate)
    count = _change(executor, "INSERT", change, uses, statement.output)
    if count and change.target.identity is not None and change.target.physical_name is None:
        _note_identity(executor, change.target.object_id)


def _note_identity(executor: Executor, object_id: int) -> None:
    state = executor.session.state
    state.identity_of, state.identity = object_id, None
    if executor.session.options.identity_insert == object_id:
        table = executor.session.reader().by_id(object_id)
        assert table is not None
        assert table.identity is not None
        highest = f"SELECT max({table.identity.physical}) FROM {table.physical}"
        state.identity = executor.session.backend.scalar(
            f"SELECT setval('u.identity_{object_id}', greatest(({highest}), (SELECT last_value FROM"
            f" u.identity_{object_id})))"
        )


def _insert_execute(executor: Executor, statement: s.Insert) -> None:
    """INSERT of what a procedure returns."""
    execute = statement.source
    assert isinstance(execute, s.Execute)
    table = target_table(executor.session.context(), statement.target, "INSERT")
    columns = [column for column in table.columns if column.writable and column.identity is None]
    if statement.columns is not None:
        columns = [column for name in statement.columns if (column := table.column(name)) is not None]
    count = 0
    for compiled in run_procedure(executor, execute, collect=True):
        names = ", ".join(column.physical for column in columns)
        values = ", ".join(f"q.c{number}" for number in range(1, len(compiled.columns) + 1))
        sql = f"INSERT INTO {table.physical} ({names}) SELECT {values} FROM ({compiled.sql}) q"
        count += executor.session.backend.run(
            executor.session.transactions.before_statement() + executor.session.fill(sql)
        ).count
    executor.finish("INSERT", count)


def run_change(executor: Executor, statement: s.Change) -> None:
    """UPDATE or DELETE."""
    change, uses = executor.translated(statement, lambda context: bind_change(context, statement))
    _change(executor, statement.kind, change, uses, statement.output)


def run_merge(executor: Executor, statement: s.Merge) -> None:
    """MERGE."""
    change, uses = executor.translated(statement, lambda context: bind_merge(context, statement))
    _change(executor, "MERGE", change, uses, statement.output)


def _change(executor: Executor, command: str, change: Any, uses: Any, output: s.Output | None) -> int:
    session = executor.session
    locking.prepare(session, uses)
    sql = session.fill(change.sql)
    if output is not None and output.into is None:
        returned = delivered_values(
            [(text, column.kind) for text, column in zip(change.returning, change.output, strict=True)]
        )
        executor.send(Compiled(f"{sql} RETURNING {returned}", change.output), command)
        return session.state.row_count
    if output is not None and output.into is not None:
        target = session.context().table(output.into)
        columns = (
            [c for name in output.into_columns if (c := target.column(name)) is not None]
            if output.into_columns
            else target.columns
        )
        names = ", ".join(column.physical for column in columns[: len(change.returning)])
        sql = (
            f"WITH changed AS ({sql} RETURNING {', '.join(change.returning)}) INSERT INTO {target.physical}"
            f" ({names}) SELECT * FROM changed"
        )
    count = session.backend.run(session.transactions.before_statement() + sql).count
    executor.finish(command, count)
    return count
