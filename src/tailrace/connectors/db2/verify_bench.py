"""The tables and sessions that `verify` makes in Db2."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from typing import Any

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.db2.admin import Db2Admin
from tailrace.connectors.db2.client import connect
from tailrace.connectors.db2.log.end import control, wait_for_capture
from tailrace.connectors.db2.options import CDC_CHANGE_TABLES_SCHEMA
from tailrace.connectors.db2.registering import reinit, reinit_statement
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.db2.statements import name, qualified, text
from tailrace.connectors.db2.verify_types import KEYS, TYPES
from tailrace.connectors.finding import Finding
from tailrace.connectors.probe import ROWS, Change, Insert, KeyCase, ProbeObject, Wrong
from tailrace.connectors.retry import driver_error_of
from tailrace.connectors.sql_bench import Session, SqlBench
from tailrace.errors import SourceError
from tailrace.model.table import TableId
from tailrace.model.table_id import SCHEMA_TABLE
from tailrace.override import override

log = logging.getLogger(__name__)
FAILURES = DIALECT.failures
_MARK, _FIRST_S = 999, 1.0  # guessed
_MINE = "SELECT CD_OWNER, CD_TABLE, SOURCE_TABLE FROM {control}.IBMSNAP_REGISTER WHERE SOURCE_OWNER = {schema}"


class Db2Bench(SqlBench):
    """Implements Bench. Change tables are where `cdc.change.tables.schema` says."""

    failures = FAILURES
    types, keys = TYPES, KEYS
    has_moves, moves_as = True, ("d", "c")
    deadline_s = 180.0
    row_type = "INTEGER NOT NULL PRIMARY KEY,INTEGER,VARCHAR(100)"
    add_column = "ADD COLUMN"
    lock_codes, deadlock_codes, killed_codes = ("-911 40001",), ("-911 40001",), ("-1224 55032", "-30081 08001")
    asking = "SELECT 1 FROM SYSIBM.SYSDUMMY1"

    def __init__(self, config: Config, schema: str) -> None:
        super().__init__(config, schema.upper())

    @override
    def session(self) -> Db2Session:
        return Db2Session(self.config)

    @override
    def table(self, name_: str) -> str:
        return qualified(self.schema, name_)

    @override
    def key(self, case: KeyCase, key: str) -> str:
        return f"CAST({text(key)} AS {case.declared})"

    @override
    def fill(self, table: str, first: int, count: int) -> None:
        """Some hundred rows a statement, as a series by recursion is none for every server."""
        into = f'INSERT INTO {self.table(table)} ("id") VALUES'
        numbers = range(first, first + count)
        pieces = (numbers[place : place + 500] for place in range(0, count, 500))
        self.main.together(*(f"{into} {', '.join(f'({each})' for each in piece)}" for piece in pieces))

    @override
    def captured(self, *tables: str) -> None:
        """A registration that fails must not stop the capture of others: STOP_ON_ERROR is N."""
        ids = [TableId(self.config[DATABASE_DBNAME], self.schema, table, SCHEMA_TABLE) for table in tables]
        try:
            Db2Admin(self.config).extend(ids)
        except SourceError as error:
            if "registered" not in error.what:
                raise
        self.run(f"UPDATE {self._register} SET STOP_ON_ERROR = 'N' WHERE SOURCE_OWNER = {text(self.schema)}")
        self._read_register()
        if ROWS in tables:
            self._await_capture()

    @property
    def _register(self) -> str:
        return f"{control(self.config)}.IBMSNAP_REGISTER"

    def _read_register(self) -> None:
        """Have the capture program read its register; where only a command does that, a person is asked for it."""
        try:
            self.main.rows(reinit_statement(self.config))
        except FAILURES.driver_error:
            log.error("run `%s` on the server now; verify goes on by itself", reinit(self.config))

    def _await_capture(self) -> None:
        """Wait until a change is captured: by the end of a registration's beginning, as nothing else tells it."""
        rows = self.main.rows(self.mine())
        changes = next(qualified(owner, table) for owner, table, source in rows if source == ROWS)
        deadline = time.monotonic() + self.deadline_s
        while not self.main.rows(f"SELECT 1 FROM {changes}"):
            if time.monotonic() > deadline:
                raise SourceError("the capture program has captured nothing of a registered table")
            self.main.together(
                self.statement(Insert(ROWS, _MARK)), f'DELETE FROM {self.table(ROWS)} WHERE "id" = {_MARK}'
            )
            time.sleep(_FIRST_S)
        self.settle()

    def settle(self) -> None:
        """Wait until what is committed is captured."""
        connection = connect(self.config, "tailrace verify")
        try:
            if not wait_for_capture(connection, self.config, self.deadline_s):
                raise SourceError("the capture program does not follow the log")
        finally:
            connection.close()

    def mine(self) -> str:
        """The query for the registrations of the schema: change table's schema and name, source table."""
        return _MINE.format(control=control(self.config), schema=text(self.schema))

    @override
    def commit(self, *changes: Change) -> None:
        self.main.together(*map(self.statement, changes))

    @override
    def limit_locks(self, session: Any, seconds: int) -> None:
        session.rows(f"SET CURRENT LOCK TIMEOUT {seconds}")

    @override
    def number(self, session: Any) -> str:
        return str(session.rows("SELECT SYSPROC.MON_GET_APPLICATION_HANDLE() FROM SYSIBM.SYSDUMMY1")[0][0])

    @override
    def kill(self, number: str) -> str:
        return f"CALL SYSPROC.ADMIN_CMD('FORCE APPLICATION ({number})')"

    @override
    def readers_wait(self) -> bool:
        return str(self.answer_or_code("SELECT VALUE FROM SYSIBMADM.DBCFG WHERE NAME = 'cur_commit'")).upper() != "ON"

    def answer_or_code(self, query: str) -> Any:
        """The first value of a query, or the code of the error, where a server does not have it or hides it."""
        try:
            rows = self.main.rows(query)
        except FAILURES.driver_error as error:
            return f"code {self.code(error)}"
        value = rows[0][0] if rows else None
        return value.strip() if isinstance(value, str) else value if isinstance(value, int | None) else str(value)

    @override
    def drivers(self) -> Mapping[str, str]:
        return {"ibm_db": version("ibm_db")}

    @override
    def code(self, error: BaseException) -> str:
        """SQLCODE and SQLSTATE."""
        cause = driver_error_of(error)
        code, state = getattr(cause, "code", 0), getattr(cause, "state", "")
        return f"{code} {state}".strip() if code or state else type(cause).__name__

    @override
    def connect(self, config: Config) -> None:
        connection = connect(config, "tailrace verify")
        connection.rows(self.asking)
        connection.close()

    @override
    def wrong(self) -> Sequence[Wrong]:
        nobody = {"database.user": "tvnobody", "database.password": "nobody-0"}
        return (
            Wrong("closed_port", {"database.port": "1"}, ("-30081 08001",), is_retried=True),
            Wrong("unknown_database", {"database.dbname": "TVNONE"}, ("-30061 08004", "-1013 42705"), is_retried=False),
            Wrong("unknown_user", nobody, ("-30082 08001",), is_retried=False),
        )

    @override
    def obstacle(self) -> Finding | None:
        count = self.answer_or_code(
            f"SELECT COUNT(*) FROM {self._register} WHERE GLOBAL_RECORD = 'Y' AND SYNCHTIME IS NOT NULL"
        )
        if str(count).startswith("code"):
            remedy = "set SQL Replication up, or name its schema: --property cdc.control.schema=..."
            return Finding("capture", False, "there are no control tables, or they cannot be read", remedy)
        if not count:
            return Finding("capture", False, "the capture program has never run", "start asncap on the server")
        return None

    @override
    def exists(self) -> bool:
        return bool(self.main.rows(f"SELECT 1 FROM SYSCAT.SCHEMATA WHERE SCHEMANAME = {text(self.schema)}"))

    @override
    def signalled(self, table: str) -> str:
        return f"{self.schema}.{table}"

    @override
    def undo(self) -> Sequence[ProbeObject]:
        """Registrations first, as the capture program must not miss a table that it reads."""
        mine = f"WHERE SOURCE_OWNER = {text(self.schema)}"
        inactive = f"UPDATE {self._register} SET STATE = 'I' {mine}"
        first = f"{inactive}; {reinit(self.config)}; DELETE FROM {self._register} {mine}"
        whole = f"DROP SCHEMA {name(self.schema)} RESTRICT"
        drops = [ProbeObject(self._dropping(table), lambda table=table: self._drop(table)) for table in self.tables]  # type: ignore[misc]
        return [ProbeObject(first, self._unregister), *drops, ProbeObject(whole, self._drop_schema)]

    def _unregister(self) -> None:
        mine = f"WHERE SOURCE_OWNER = {text(self.schema)}"
        if self.main.rows(f"SELECT 1 FROM {self._register} {mine}"):
            self.run(f"UPDATE {self._register} SET STATE = 'I' {mine}")
            self._read_register()
            self.settle()
            self.run(f"DELETE FROM {self._register} {mine}")

    def changes(self, table: str) -> str:
        """The change table of a table in SQL."""
        return qualified(self.config[CDC_CHANGE_TABLES_SCHEMA], f"CDC_{self.schema}_{table}")

    def _dropping(self, table: str) -> str:
        return f"DROP TABLE {self.changes(table)}; DROP TABLE {self.table(table)}"

    def _drop(self, table: str) -> None:
        schema = self.config[CDC_CHANGE_TABLES_SCHEMA]
        for owner, name_ in ((schema, f"CDC_{self.schema}_{table}"), (self.schema, table)):
            listed = f"SELECT 1 FROM SYSCAT.TABLES WHERE TABSCHEMA = {text(owner)} AND TABNAME = {text(name_)}"
            if self.main.rows(listed):
                self.run(f"DROP TABLE {qualified(owner, name_)}")

    def _drop_schema(self) -> None:
        if self.main.rows(f"SELECT 1 FROM SYSCAT.SCHEMATA WHERE SCHEMANAME = {text(self.schema)}"):
            self.run(f"DROP SCHEMA {name(self.schema)} RESTRICT")


class Db2Session(Session):
    """Implements Session."""

    def __init__(self, config: Config) -> None:
        self._connection = connect(config, "tailrace verify")
        self._open = ExitStack()

    @override
    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.rows(statement)

    @override
    def together(self, *statements: str) -> None:
        """Each is committed by itself."""
        for statement in statements:
            self.rows(statement)

    @override
    def begin(self) -> None:
        self._open.enter_context(self._connection.transaction())

    @override
    def rollback(self) -> None:
        self._open.close()

    @override
    def close(self) -> None:
        self._open.close()
        self._connection.close()
