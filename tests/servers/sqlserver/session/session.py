"""One client's session: its database, variables, options and transaction."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..catalogue.literals import quote, typed
from ..catalogue.model import Column, Database, Table
from ..catalogue.store import Reader
from ..datatypes import SqlType
from ..translate.context import VARIABLE, Context, temporary_table
from ..tsql.errors import SqlError, error
from ..tsql.statements import Statement
from .rights import SessionRights
from .transactions import Transactions

if TYPE_CHECKING:
    from ..server import SqlServer

_MARKER = re.compile(f"{VARIABLE}([^{VARIABLE}]*){VARIABLE}")


@dataclass
class Variable:
    """A variable: its type, and its value as PostgreSQL writes it."""

    kind: SqlType
    value: str | None = None


@dataclass
class Options:
    """What SET has set."""

    no_count: bool = False
    implicit_transactions: bool = False
    abort_on_error: bool = False
    lock_timeout: int = -1
    identity_insert: int | None = None
    row_limit: int = 0
    format_only: bool = False


@dataclass
class State:
    """What statements leave behind for the next."""

    row_count: int = 0
    error: int = 0
    identity_of: int | None = None
    identity: str | None = None
    caught: list[SqlError] = field(default_factory=list)


class Session:
    """The state of a session; `executor` runs its statements."""

    def __init__(self, server: SqlServer, spid: int, login: str, host: str, application: str) -> None:
        self.server = server
        self.spid = spid
        self.login = login
        self.host = host
        self.application = application
        self.backend = server.engine.connect(f"session {spid}")
        self.backend.run(f"SELECT set_config('ms.login', {quote(login)}, false)")
        self.rights = SessionRights(self)
        self.options = Options()
        self.state = State()
        self.try_depth = 0
        self.scopes: list[dict[str, Variable]] = [{}]
        self.temporary: dict[str, Table] = {}
        self.database: Database = self._database("master")
        self.transactions = Transactions(self.backend, server.table_locks, spid, self.definitions_committed)
        self.database_name = "master"

    # Definitions

    def reader(self) -> Reader:
        """Definitions as this session sees them: with its own that are not committed."""
        own = self.transactions.changed_definitions
        return self.server.catalogue.reader(self.backend if own else None)

    def definitions_changed(self) -> None:
        """Note that this session has changed definitions: others see them when it commits."""
        if self.transactions.open:
            self.transactions.changed_definitions = True
        else:
            self.definitions_committed()

    def definitions_committed(self) -> None:
        """Let all sessions read definitions again."""
        self.server.catalogue.changed()

    def use(self, name: str) -> Database:
        """Make a database the current one."""
        database = self.reader().database(name)
        if database is None:
            raise error(911, name)
        if self.rights.user_in(database.database_id) is None:
            raise error(916, self.login, database.name)
        self.database = database
        self.database_name = database.name
        return database

    def _database(self, name: str) -> Database:
        found = self.server.catalogue.reader().database(name)
        assert found is not None
        return found

    def current_database(self) -> Database:
        """The current database, as it is now."""
        found = self.reader().database(self.database_name)
        if found is None:
            raise error(911, self.database_name)
        self.database = found
        return found

    # Translation

    def context(self) -> Context:
        """What a translation reads of this session."""
        kinds = {name: variable.kind for name, variable in self.scopes[-1].items()}
        context = Context(self.current_database(), self.reader(), self.server.views, self.rights, kinds, self.temporary)
        context.platform = self.server.platform
        context.row_locks = (
            self.transactions.isolation in ("REPEATABLE READ", "SERIALIZABLE") and self.transactions.open
        )
        return context

    def cached(self, statement: Statement) -> tuple[dict[Any, Any], Any]:
        """Translations of a statement, and the key under which one for this session's state is kept."""
        kinds = (
            tuple(sorted((name, variable.kind) for name, variable in self.scopes[-1].items()))
            if self.scopes[-1]
            else ()
        )
        locks = self.transactions.open and self.transactions.isolation
        key = (
            self.server.catalogue.version,
            self.database_name.lower(),
            self.login,
            locks,
            self.options.identity_insert,
            str(kinds),
        )
        return _TRANSLATIONS.setdefault(statement, {}), key

    def fill(self, sql: str) -> str:
        """Put the values of variables and of the session into a translation."""
        return _MARKER.sub(lambda match: self._literal(match.group(1)), sql)

    def _literal(self, name: str) -> str:
        if name.startswith("@@"):
            return self._session_value(name)
        variable = self.scopes[-1].get(name)
        if variable is None:
            raise error(137, name)
        return typed(variable.value, variable.kind.storage)

    def _session_value(self, name: str) -> str:
        caught = self.state.caught[-1] if self.state.caught else None
        number = {
            "@@trancount": self.transactions.count,
            "@@rowcount": self.state.row_count,
            "@@error": self.state.error,
            "@@spid": self.spid,
            "@@lock_timeout": self.options.lock_timeout,
            "@@options": 5496,
            "@@nestlevel": len(self.scopes) - 1,
            "@@fetch_status": -1,
            "@@datefirst": 7,
            "@@max_precision": 38,
            "@@textsize": 2_147_483_647,
            "@@microsoftversion": 268_435_456,
            "@@procid": 0,
            "@@xact_state": int(self.transactions.open),
            "@@transaction": self.transactions.number,
            "@@error_number": caught and caught.number,
            "@@error_severity": caught and caught.severity,
            "@@error_state": caught and caught.state,
            "@@error_line": caught and caught.line,
        }
        if name in number:
            value = number[name]
            return "NULL::int4" if value is None else f"({value})"
        if name == "@@identity":
            return self._identity()
        if name == "@@dbts":
            return f"(SELECT int8send(last_value) FROM u.rowversion_{self.database.database_id})"
        text = {
            "@@version": self.server.platform.title,
            "@@servername": self.server.name,
            "@@servicename": "MSSQLSERVER",
            "@@language": "us_english",
            "@@login": self.login,
            "@@user": self.rights.user_in(self.database.database_id) or "guest",
            "@@host": self.host,
            "@@application": self.application,
            "@@error_message": caught and caught.message,
            "@@error_procedure": caught and (caught.procedure or None),
        }[name]
        return "NULL::text" if text is None else f"{quote(text)}::text"

    def _identity(self) -> str:
        if self.state.identity is not None:
            return f"{self.state.identity}::numeric"
        if self.state.identity_of is None:
            return "NULL::numeric"
        return f"currval('u.identity_{self.state.identity_of}')::numeric"

    # Temporary tables

    def create_temporary(self, name: str, columns: list[Column]) -> Table:
        """A temporary table or table variable, which lasts as long as the session or its scope."""
        number = int(self.backend.scalar("SELECT nextval('cat.object_ids')") or 0)
        identity = next((column for column in columns if column.identity is not None), None)
        if identity is not None and identity.identity is not None:
            seed, step = identity.identity
            self.backend.run(
                f"CREATE TEMP SEQUENCE identity_{number} START {seed} INCREMENT {step} MINVALUE -9223372036854775808"
            )
        listed = ", ".join(
            f"{column.physical} {column.kind.column_storage}"
            + (f" DEFAULT nextval('identity_{number}')" if column is identity else "")
            + ("" if column.nullable else " NOT NULL")
            for column in columns
            if column.computed is None
        )
        self.backend.run(f"CREATE TEMP TABLE t{number} ({listed})")
        table = temporary_table(name, columns, number)
        self.temporary[name.lower()] = table
        return table

    def drop_temporary(self, name: str) -> None:
        """Drop a temporary table."""
        table = self.temporary.pop(name.lower())
        self.backend.run(f"DROP TABLE IF EXISTS {table.physical}")

    # End

    def reset(self) -> None:
        """sp_reset_connection: a pooled connection is handed to the next user."""
        if self.transactions.open:
            self.transactions.rollback()
        for name in list(self.temporary):
            self.drop_temporary(name)
        self.options = Options()
        self.state = State()
        self.scopes = [{}]
        self.transactions.isolation = "READ COMMITTED"
        self.backend.run("RESET lock_timeout")

    def close(self) -> None:
        """End the session; a running statement is cancelled, an open transaction is rolled back."""
        self.backend.abandon()
        if self.transactions.open:
            self.transactions.rollback()
        self.backend.close()


_TRANSLATIONS: weakref.WeakKeyDictionary[Statement, dict[Any, Any]] = weakref.WeakKeyDictionary()
