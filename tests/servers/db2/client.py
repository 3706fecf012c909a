"""A Db2 server that tests work on: its statements, its sessions, and the commands of its capture program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import ibm_db

_PATIENCE_S = 60
_NOW = "SELECT CURRENT TIMESTAMP FROM SYSIBM.SYSDUMMY1"
_CAPTURED = "SELECT SYNCHTIME FROM ASNCDC.IBMSNAP_REGISTER WHERE GLOBAL_RECORD = 'Y'"
_REGISTERED = "SELECT SOURCE_OWNER, SOURCE_TABLE FROM ASNCDC.IBMSNAP_REGISTER WHERE SOURCE_OWNER <> ''"
_USER_TABLES = """
SELECT TABSCHEMA, TABNAME FROM SYSCAT.TABLES WHERE TYPE = 'T' AND TABSCHEMA NOT LIKE 'SYS%'
AND TABSCHEMA NOT IN ('ASNCDC', 'ASNCDCLOG', 'DB2CAT')
"""


@dataclass
class Db2Client:
    """Where a server is, and what tests ask of it. Its control tables are in ASNCDC, with Debezium's procedures."""

    host: str
    port: int
    database: str
    user: str
    password: str

    @staticmethod
    def of_url(url: str) -> Db2Client:
        """The server of `db2://user:password@host:port/DATABASE`."""
        parts = urlsplit(url)
        user, password = (unquote(each or "") for each in (parts.username, parts.password))
        return Db2Client(parts.hostname or "", parts.port or 50000, parts.path.strip("/"), user, password)

    def dsn(self) -> str:
        """The connection string of ibm_db."""
        return (
            f"DATABASE={self.database};HOSTNAME={self.host};PORT={self.port};PROTOCOL=TCPIP;"
            f"UID={self.user};PWD={self.password};AUTHENTICATION=SERVER;LONGDATACOMPAT=1;"
        )

    def connect(self) -> Session:
        """A new connection."""
        return Session(ibm_db.connect(self.dsn(), "", ""))

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A connection that is closed with the block."""
        opened = self.connect()
        try:
            yield opened
        finally:
            opened.close()

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each in a transaction of its own; the rows of the last one."""
        with self.session() as session:
            found: list[tuple[Any, ...]] = []
            for statement in statements:
                found = session.rows(statement)
            return found

    def services(self, command: str) -> str:
        """Ask the capture program: start, stop, status, reinit."""
        return str(self.execute(f"VALUES ASNCDC.ASNCDCSERVICES('{command}', 'asncdc')")[0][0])

    def capture(self, *tables: tuple[str, str]) -> None:
        """Begin to capture tables, given by schema and name."""
        self.execute(*(f"CALL ASNCDC.ADDTABLE('{schema}', '{table}')" for schema, table in tables))
        self.services("reinit")

    def release(self, schema: str, table: str) -> None:
        """End the capture of a table."""
        self.execute(f"CALL ASNCDC.REMOVETABLE('{schema}', '{table}')")

    def without_log(self, schema: str, table: str, *statements: str) -> None:
        """Run statements whose changes of a table the log does not have, as those of LOAD."""
        self.services("stop")
        self.execute(*statements, f'DELETE FROM ASNCDCLOG."{schema}_{table}"')
        self.services("start")

    def loaded(self, schema: str, table: str, begun: str, ended: str) -> None:
        """Have the history file say that LOAD has filled a table; times have the form YYYYMMDDHHMMSS."""
        names = "OPERATION, TABSCHEMA, TABNAME, START_TIME, END_TIME"
        values = f"'L', '{schema}', '{table}', '{begun}', '{ended}'"
        self.execute(f"INSERT INTO ASNCDCLOG.DB_HISTORY ({names}) VALUES ({values})")

    def parts(self, schema: str, table: str, *names: str) -> None:
        """Have the catalog say which parts a partitioned table has: as after ALTER TABLE ... ATTACH PARTITION."""
        where = f"WHERE TABSCHEMA = '{schema}' AND TABNAME = '{table}'"
        rows = ", ".join(f"('{schema}', '{table}', {place}, '{name}', '')" for place, name in enumerate(names))
        self.execute(
            f"DELETE FROM ASNCDCLOG.DATAPARTITIONS {where}", f"INSERT INTO ASNCDCLOG.DATAPARTITIONS VALUES {rows}"
        )

    def apply(self, schema: str, table: str) -> None:
        """Let Apply copy a table up to where it is captured; what it has copied is pruned at once."""
        place = f"SOURCE_OWNER = '{schema}' AND SOURCE_TABLE = '{table}'"
        keys = "TARGET_SERVER, APPLY_QUAL, SET_NAME"
        read = "(SELECT MAX(SYNCHPOINT) FROM ASNCDC.IBMSNAP_REGISTER)"
        self.execute(
            "DELETE FROM ASNCDC.IBMSNAP_PRUNE_SET",
            f"INSERT INTO ASNCDC.IBMSNAP_PRUNE_SET ({keys}, SYNCHPOINT) SELECT {keys}, "
            f"CAST({read} AS VARCHAR(16) FOR BIT DATA) FROM ASNCDC.IBMSNAP_PRUNCNTL WHERE {place}",
            "UPDATE ASNCDC.IBMSNAP_CAPPARMS SET AUTOPRUNE = 'Y'",
        )
        self.settle()

    def without_apply(self) -> None:
        """End what `apply` has begun."""
        self.execute("UPDATE ASNCDC.IBMSNAP_CAPPARMS SET AUTOPRUNE = 'N'", "DELETE FROM ASNCDC.IBMSNAP_PRUNE_SET")

    def settle(self) -> None:
        """Wait until the change tables have what is committed."""
        with self.session() as session:
            now = session.rows(_NOW)[0][0]
            deadline = time.monotonic() + _PATIENCE_S
            while (session.rows(_CAPTURED)[0][0] or datetime.min) < now:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the capture program has not come to {now} in {_PATIENCE_S} s")
                time.sleep(0.01)

    def clear(self, schema: str | None = None) -> None:
        """Remove the registrations and tables of a schema; without one, all of them and what was captured."""
        with self.session() as session:
            for owner, table in session.rows(_REGISTERED):
                if schema in (None, owner):
                    session.rows(f"CALL ASNCDC.REMOVETABLE('{owner}', '{table}')")
            tables = [tuple(row) for row in session.rows(_USER_TABLES) if schema in (None, row[0])]
            for owner, table in tables:
                session.rows(f'DROP TABLE "{owner}"."{table}"')
            if schema is not None:
                return
            mine = session.rows("VALUES CURRENT SCHEMA")[0][0]
            for owner in {owner for owner, _ in tables} - {mine}:
                session.rows(f'DROP SCHEMA "{owner}" RESTRICT')
            session.rows("DELETE FROM ASNCDC.IBMSNAP_UOW")
            session.rows("DELETE FROM ASNCDC.IBMSNAP_PRUNCNTL")
            session.rows("UPDATE ASNCDC.IBMSNAP_REGISTER SET SYNCHPOINT = NULL, SYNCHTIME = NULL")


class Session:
    """A connection of ibm_db with automatic commits."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; its rows, none for one without a result."""
        done = ibm_db.exec_immediate(self._driver, statement)
        try:
            return list(ibm_db.fetchall(done)) if ibm_db.num_fields(done) else []
        finally:
            ibm_db.free_stmt(done)

    def transaction(self, *statements: str) -> None:
        """Run statements in one transaction."""
        self.begin()
        try:
            for statement in statements:
                self.rows(statement)
        except BaseException:
            self.end(commit=False)
            raise
        self.end(commit=True)

    def roll_back(self, *statements: str) -> None:
        """Run statements in one transaction, and roll it back."""
        self.begin()
        for statement in statements:
            self.rows(statement)
        self.end(commit=False)

    def begin(self) -> None:
        """Commit no more by itself."""
        ibm_db.autocommit(self._driver, 0)

    def end(self, *, commit: bool) -> None:
        """End the transaction, and commit by itself again."""
        (ibm_db.commit if commit else ibm_db.rollback)(self._driver)
        ibm_db.autocommit(self._driver, 1)

    def close(self) -> None:
        """Close it."""
        with suppress(Exception):
            ibm_db.close(self._driver)
