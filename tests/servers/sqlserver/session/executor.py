"""Runs the statements of a batch, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from ..backend import EngineError
from ..datatypes import MAX, SqlType, make
from ..translate.binder import Binder
from ..translate.bound import Scope
from ..translate.convert import convert
from ..translate.query import bind_query
from ..tsql import statements as s
from ..tsql.errors import SqlError, error, unsupported
from ..tsql.parser import parse
from . import changes, control, failures, locking, settings
from .definitions import run_definition
from .outcome import Compiled, Sink, delivered
from .procedures import run_procedure
from .session import Session, Variable

_DEFINITIONS = (
    s.CreateTable,
    s.AlterTable,
    s.CreateIndex,
    s.Drop,
    s.Truncate,
    s.CreateModule,
    s.CreateSimple,
    s.Permission,
)
_CHANGES = (s.Insert, s.Change, s.Merge)


class Cancelled(Exception):
    """The client has asked to stop."""


class Executor:
    """Runs statements of a session and tells a sink what they give."""

    def __init__(self, session: Session, sink: Sink) -> None:
        self.session = session
        self.sink = sink
        self.text = ""

    # Batches

    def batch(self, text: str) -> None:
        """Run a batch; an error is reported to the sink, and ends it unless SQL Server would go on."""
        self.text = text
        try:
            statements = parse(text)
        except SqlError as failure:
            self.fail(failure)
            return
        try:
            self.run_all(statements)
        except control.Return:
            pass
        except SqlError as failure:
            self.fail(failure)

    def run_all(self, statements: tuple[s.Statement, ...] | list[s.Statement]) -> None:
        """Run statements in order."""
        for statement in statements:
            self.run(statement)

    def run(self, statement: s.Statement) -> None:
        """Run one statement; errors that SQL Server goes on after are reported, others raised."""
        try:
            self.run_raising(statement)
            if not isinstance(statement, (s.If, s.Block, s.While, s.TryCatch)):
                self.session.state.error = 0
        except SqlError as failure:
            failure.line = max(failure.line, statement.line)
            self.session.state.error = failure.number
            ends = failure.ends_batch or self.session.options.abort_on_error
            if failure.ends_transaction or (self.session.options.abort_on_error and self.session.transactions.open):
                self._roll_back()
            if ends or control.in_try(self.session):
                raise
            self.fail(failure)

    def run_raising(self, statement: s.Statement) -> None:
        """Run one statement; any error is raised, after its effects are undone."""
        session = self.session
        self._begin_implicitly(statement)
        try:
            self._dispatch(statement)
        except EngineError as failure:
            raise self._translated(failure) from failure
        except SqlError:
            session.transactions.statement_failed(False)
            raise
        session.transactions.statement_done()

    def text_of_statement(self) -> str:
        """The text that holds the running statement."""
        return self.text

    def fail(self, failure: SqlError) -> None:
        """Report an error."""
        self.session.state.error = failure.number
        self.sink.failed(failure)

    def _translated(self, failure: EngineError) -> SqlError:
        if failure.state == "57014" and self.session.backend.was_cancelled:
            self.session.transactions.statement_failed(False)
            raise Cancelled from failure
        ends = failure.state in ("40P01", "40001")
        self.session.transactions.statement_failed(ends)
        return failures.translate(failure, self.session.backend, self.session.spid)

    def _roll_back(self) -> None:
        if self.session.transactions.open:
            self.session.transactions.rollback()

    def _begin_implicitly(self, statement: s.Statement) -> None:
        """With SET IMPLICIT_TRANSACTIONS ON, statements that touch tables begin a transaction."""
        if not self.session.options.implicit_transactions or self.session.transactions.open:
            return
        reads = isinstance(statement, s.Query) and statement.tree.find(exp.Table) is not None
        if reads or isinstance(statement, (*_DEFINITIONS, *_CHANGES)):
            control.begin(self, None)

    def _dispatch(self, statement: s.Statement) -> None:
        for kind, run in _RUNNERS.items():
            if isinstance(statement, kind):
                run(self, statement)
                return
        raise unsupported(type(statement).__name__)

    # Translation

    def translated(self, statement: s.Statement, translate: Callable[[Any], Any]) -> Any:
        """A statement's translation, from the cache where nothing has changed that it depends on."""
        found, key = self.session.cached(statement)
        own = self.session.transactions.changed_definitions or self.session.temporary
        if not own and key in found:
            return found[key]
        context = self.session.context()
        result = (translate(context), list(context.uses))
        if not own and not context.volatile:
            if len(found) > 50:
                found.clear()
            found[key] = result
        return result

    def value(self, node: exp.Expression, kind: SqlType | None = None) -> Variable:
        """The value of an expression."""
        context = self.session.context()
        bound = Binder(context, Scope()).value(node)
        bound = bound if kind is None else convert(bound, kind)
        sql = self.session.fill(f"SELECT ({bound.sql})::text")
        return Variable(bound.kind, self.session.backend.scalar(self.session.transactions.before_statement() + sql))

    def condition(self, node: exp.Expression) -> bool:
        """Whether a condition holds."""
        sql = Binder(self.session.context(), Scope()).condition(node)
        text = self.session.transactions.before_statement() + self.session.fill(f"SELECT ({sql})")
        return self.session.backend.scalar(text) == "t"

    # Queries

    def query(self, statement: s.Query) -> None:
        """SELECT whose rows go to the client."""
        into = statement.tree.args.get("into")
        if into is not None:
            self._select_into(statement, into)
            return
        compiled, uses = self.translated(statement, lambda context: self._compiled(context, statement.tree))
        locking.prepare(self.session, uses)
        self.send(compiled)

    def _compiled(self, context: Any, tree: exp.Expression) -> Compiled:
        query = bind_query(context, tree, top=True)
        return Compiled(delivered(query.sql, query.columns), query.columns)

    def send(self, compiled: Compiled, command: str = "SELECT") -> None:
        """Run a query and send its rows."""
        session = self.session
        described = compiled.described
        self.sink.columns(described)
        count = 0
        if not session.options.format_only:
            prefix = session.transactions.before_statement()
            for rows in session.backend.copy(session.fill(compiled.sql), prefix):
                count += len(rows)
                self.sink.rows(rows, described)
        session.state.row_count = count
        self.sink.done(command, None if session.options.no_count else count)

    def _select_into(self, statement: s.Query, into: exp.Into) -> None:
        from .definitions import create_from_query  # definitions run statements

        tree = statement.tree.copy()
        tree.set("into", None)
        context = self.session.context()
        query = bind_query(context, tree)
        table = create_from_query(self, into.this, query.columns)
        names = ", ".join(column.physical for column in table.columns)
        sql = f"INSERT INTO {table.physical} ({names}) {query.sql}"
        self.finish(
            "SELECT",
            self.session.backend.run(self.session.transactions.before_statement() + self.session.fill(sql)).count,
        )

    def assign(self, statement: s.Select) -> None:
        """SELECT that sets variables: to the values of the last row."""
        tree = statement.tree.copy()
        names = []
        for item in tree.expressions:
            if not (isinstance(item, exp.EQ) and isinstance(item.this, exp.Parameter)):
                raise error(141)
            names.append("@" + item.this.name)
        context = self.session.context()
        tree.set(
            "expressions",
            [
                exp.Alias(this=item.expression, alias=exp.to_identifier(f"v{n}"))
                for n, item in enumerate(tree.expressions)
            ],
        )
        query = bind_query(context, tree, top=True)
        values = ", ".join(
            f"({convert(bound, context.variable(name)).sql})::text"
            for name, bound in zip(names, _outputs(query), strict=True)
        )
        locking.prepare(self.session, context.uses)
        prefix = self.session.transactions.before_statement()
        outcome = self.session.backend.run(prefix + self.session.fill(f"SELECT {values} FROM ({query.sql}) q"))
        if outcome.rows:
            for name, value in zip(names, outcome.rows[-1], strict=True):
                self.session.scopes[-1][name.lower()].value = value
        self.session.state.row_count = outcome.count

    def finish(self, command: str, count: int) -> None:
        """A statement has changed rows."""
        self.session.state.row_count = count
        self.sink.done(command, None if self.session.options.no_count else count)

    # Variables

    def declare(self, statement: s.Declare) -> None:
        """DECLARE of variables."""
        for name, kind, value in statement.variables:
            declared = kind if isinstance(kind, SqlType) else self.session.context().type(".".join(kind))
            found = self.value(value, declared).value if value is not None else None
            self.session.scopes[-1][name.lower()] = Variable(declared, found)

    def declare_table(self, statement: s.DeclareTable) -> None:
        """DECLARE of a table variable."""
        from .definitions import table_columns  # definitions run statements

        if statement.name.lower() in self.session.temporary:
            self.session.drop_temporary(statement.name)
        self.session.create_temporary(statement.name, table_columns(self, statement.table))

    def set_variable(self, statement: s.SetVariable) -> None:
        """SET @name = value."""
        variable = self.session.scopes[-1].get(statement.name.lower())
        if variable is None:
            raise error(137, statement.name)
        variable.value = self.value(statement.value, variable.kind).value

    def execute(self, statement: s.Execute) -> None:
        """EXEC of a procedure."""
        for compiled in run_procedure(self, statement):
            self.send(compiled)

    def execute_text(self, statement: s.ExecuteText) -> None:
        """EXEC of a text."""
        text = self.value(statement.text, make("nvarchar", MAX)).value
        self.session.scopes.append({})
        try:
            self.run_all(parse(text or ""))
        finally:
            self.session.scopes.pop()

    def use(self, statement: s.Use) -> None:
        """USE."""
        before = self.session.database_name
        if self.session.server.platform.is_azure_database and statement.database.lower() != before.lower():
            raise error(40508)
        database = self.session.use(statement.database)
        self.sink.environment(1, database.name, before)
        self.sink.info(5701, 0, f"Changed database context to '{database.name}'.")
        self.sink.done("USE", None)
        self.session.server.note_database(self.session)

    def define(self, statement: s.Statement) -> None:
        """CREATE, ALTER, DROP and the like."""
        run_definition(self, statement)
        self.sink.done("DDL", None)


def _outputs(query: Any) -> list[Any]:
    from ..translate.bound import Bound  # used here only

    return [Bound(f"q.c{number}", column.kind, column.nullable) for number, column in enumerate(query.columns, 1)]


_RUNNERS: dict[type | tuple[type, ...], Callable[[Executor, Any], None]] = {
    s.Select: Executor.assign,
    s.Query: Executor.query,
    s.Insert: changes.run_insert,
    s.Change: changes.run_change,
    s.Merge: changes.run_merge,
    s.Declare: Executor.declare,
    s.DeclareTable: Executor.declare_table,
    s.SetVariable: Executor.set_variable,
    s.SetOption: settings.set_option,
    s.Execute: Executor.execute,
    s.ExecuteText: Executor.execute_text,
    s.Use: Executor.use,
    s.If: control.run_if,
    s.While: control.run_while,
    s.Block: control.run_block,
    s.TryCatch: control.run_try,
    s.Simple: control.run_simple,
    s.Transaction: control.run_transaction,
    _DEFINITIONS: Executor.define,
}


def run_text(session: Session, text: str, sink: Sink) -> None:
    """Run a batch of a session."""
    Executor(session, sink).batch(text)
