"""One client's connection: log-in, then a request and its response after the other."""

from __future__ import annotations

import socket
import struct
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ..catalogue.literals import typed
from ..datatypes import INT
from ..session import control
from ..session.executor import Cancelled, Executor
from ..session.outcome import delivered_values
from ..session.procedures import Given, call, execute_sql, run_prepared
from ..session.session import Session, Variable
from ..tsql.cursor import Cursor
from ..tsql.dialect import tokenize
from ..tsql.errors import SqlError, SqlErrors, error
from . import login, prelogin, requests, tokens
from .collations import collation_bytes
from .response import Response
from .rows import encode_cell
from .transport import (
    ATTENTION,
    LOGIN7,
    PRELOGIN,
    RESET_CONNECTION,
    RESET_CONNECTION_KEEP_TRANSACTION,
    RPC,
    SQL_BATCH,
    TRANSACTION_MANAGER,
    Disconnected,
    Transport,
)

if TYPE_CHECKING:
    from ..server import SqlServer

_PREPARED = {"sp_prepare", "sp_prepexec", "sp_execute", "sp_unprepare"}


class Connection:
    """Serves one client until it leaves."""

    def __init__(self, server: SqlServer, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server = server
        self.transport = Transport(connection)
        self.session: Session | None = None
        self._prepared: dict[int, tuple[str, str]] = {}
        self._last_handle = 0

    def serve(self) -> None:
        """Serve requests until the client leaves or is not let in."""
        try:
            if self._greet():
                while True:
                    self._request(*self.transport.read())
        except Disconnected:
            pass
        finally:
            if self.session is not None:
                self.session.backend.watched = None
                self.server.session_ended(self.session)
            self.transport.socket.close()

    def close(self) -> None:
        """Cut the connection."""
        with suppress(OSError):  # the client may be faster
            self.transport.socket.shutdown(socket.SHUT_RDWR)

    # Log-in

    def _greet(self) -> bool:
        kind, _, content = self.transport.read()
        if kind != PRELOGIN:
            return False
        options = prelogin.parse(content)
        asked = options.get(prelogin.ENCRYPTION, b"\x02")[0]
        answer = prelogin.negotiate(asked, self.server.encryption)
        self.transport.write(
            prelogin.build(
                {
                    prelogin.VERSION: prelogin.SERVER_VERSION,
                    prelogin.ENCRYPTION: bytes([answer]),
                    prelogin.INSTANCE: b"\x00",
                    prelogin.THREAD: b"",
                    prelogin.MARS: b"\x00",
                }
            ),
            last=True,
        )
        if answer != prelogin.ENCRYPT_NOT_SUPPORTED:
            self.transport.start_tls(self.server.tls()[0])
        kind, _, content = self.transport.read()
        if answer == prelogin.ENCRYPT_OFF:
            self.transport.stop_tls()
        return kind == LOGIN7 and self._log_in(login.parse(content))

    def _log_in(self, who: login.Login) -> bool:
        response = Response(self.transport, self.server.name)
        try:
            if who.tds_version < login.TDS_7_3:
                raise SqlError(17830, 20, "The SQL Server test double speaks TDS 7.3 and later.")
            self.session = self.server.open_session(who)
        except (SqlError, SqlErrors) as failure:
            for each in failure.errors if isinstance(failure, SqlErrors) else (failure,):
                response.failed(each)
            response.finish()
            return False
        session = self.session
        self.transport.spid = session.spid
        size = min(max(who.packet_size or 4096, 512), 32767)
        response.environment(tokens.ENV_DATABASE, session.database_name, "master")
        response.info(5701, 0, f"Changed database context to '{session.database_name}'.", 2)
        response.environment(tokens.ENV_COLLATION, collation_bytes(session.database.collation), b"")
        response.info(5703, 0, "Changed language setting to us_english.")
        response.add(tokens.login_acknowledged(min(who.tds_version, login.TDS_7_4)))
        response.environment(tokens.ENV_PACKET_SIZE, str(size), str(size))
        response.finish()
        self.transport.packet_size = size
        session.backend.watched = self.transport.socket.fileno()
        session.backend.watch = self._attention_waits
        return True

    # Requests

    def _request(self, kind: int, status: int, content: bytes) -> None:
        session = self.session
        assert session is not None
        response = Response(self.transport, self.server.name, rpc=kind == RPC, check=self._check_attention)
        if status & (RESET_CONNECTION | RESET_CONNECTION_KEEP_TRANSACTION):
            session.reset()
            response.environment(tokens.ENV_RESET, b"", b"")
        session.backend.watched = self.transport.socket.fileno()
        session.backend.was_cancelled = False
        executor = Executor(session, response)
        try:
            self._run(kind, content, executor, response)
        except Cancelled:
            session.backend.was_cancelled = False
            response.acknowledge_attention()
        except Disconnected:
            raise
        except SqlErrors as failure:
            for each in failure.errors:
                executor.fail(each)
            if failure.is_cut:
                response.finish()
                raise Disconnected from failure
        except Exception as problem:  # a fault of the double: the client is told, the connection stays
            traceback.print_exc()
            session.transactions.statement_failed(False)
            text = f"The SQL Server test double failed, see its log: {type(problem).__name__}: {problem}"
            response.failed(SqlError(50001, 16, text))
        response.finish()

    def _run(self, kind: int, content: bytes, executor: Executor, response: Response) -> None:
        if kind == SQL_BATCH:
            text = requests.batch(content)
            self.server.note_statement(executor.session, text)
            executor.batch(text)
        elif kind == RPC:
            self._calls(executor, response, content)
        elif kind == TRANSACTION_MANAGER:
            self._transaction(executor, response, requests.transaction(content))
        elif kind == ATTENTION:
            response.acknowledge_attention()
        else:
            problem = f"The SQL Server test double does not know requests of the type {kind}."
            response.failed(SqlError(40000, 16, problem))

    def _attention_waits(self) -> bool:
        """Whether what the client sends during a statement is a wish to stop it."""
        return self.transport.read()[0] == ATTENTION

    def _check_attention(self) -> None:
        if self.transport.interrupted() and self._attention_waits():
            raise Cancelled

    def _transaction(self, executor: Executor, response: Response, request: requests.TransactionRequest) -> None:
        session = executor.session
        try:
            if request.action == requests.SAVE:
                control.save(executor, request.name)
            elif request.action == requests.COMMIT:
                control.commit(executor, request.name)
            elif request.action == requests.ROLLBACK:
                control.roll_back(executor, request.name or None)
            if request.action == requests.BEGIN or request.begin_next:
                if request.isolation is not None:
                    session.transactions.isolation = request.isolation
                control.begin(executor, request.name)
            response.done("BEGIN", None)
        except SqlError as failure:
            response.failed(failure)

    # Calls

    def _calls(self, executor: Executor, response: Response, content: bytes) -> None:
        try:
            found = requests.calls(content)
        except SqlError as failure:
            response.failed(failure)
            response.end_call([])
            return
        for request in found:
            self._call(executor, response, request)

    def _call(self, executor: Executor, response: Response, request: requests.Call) -> None:
        given = [
            Given(parameter.name or None, Variable(parameter.kind, parameter.value), parameter.output)
            for parameter in request.parameters
        ]
        name = request.procedure
        try:
            if name in _PREPARED:
                self._prepared_call(executor, name, given)
            elif name == "sp_executesql":
                self.server.note_statement(executor.session, given[0].variable.value or "")
                self._reporting(executor, lambda: execute_sql(executor, given))
            else:
                self.server.note_statement(executor.session, f"EXEC {name}")
                cursor = Cursor(tokenize(name), name)
                self._reporting(executor, lambda: call(executor, cursor.name(), given))
        except SqlError as failure:
            executor.fail(failure)
        values = [self._output(executor, place, argument) for place, argument in enumerate(given) if argument.output]
        response.end_call(values)

    def _reporting(self, executor: Executor, run: Callable[[], object]) -> None:
        """Run a call's statements; errors end them as they end a batch."""
        with suppress(control.Return):
            run()

    def _prepared_call(self, executor: Executor, name: str, given: list[Given]) -> None:
        if name in ("sp_prepare", "sp_prepexec"):
            self._last_handle += 1
            self._prepared[self._last_handle] = (given[2].variable.value or "", given[1].variable.value or "")
            given[0].variable = Variable(INT, str(self._last_handle))
            if name == "sp_prepare":
                return
            values, handle = given[3:], self._last_handle
        else:
            handle = int(given[0].variable.value or 0)
            values = given[1:]
        if handle not in self._prepared:
            raise error(8179, handle)
        if name == "sp_unprepare":
            del self._prepared[handle]
            return
        text, declared = self._prepared[handle]
        self.server.note_statement(executor.session, text)
        self._reporting(executor, lambda: run_prepared(executor, text, declared, values))

    def _output(self, executor: Executor, place: int, argument: Given) -> bytes:
        """The RETURNVALUE of an output parameter."""
        kind = argument.variable.kind
        if argument.variable.value is None:
            row = struct.pack(">hi", 1, -1)
        else:
            literal = typed(argument.variable.value, kind.storage)
            rows = [
                row
                for chunk in executor.session.backend.copy(f"SELECT {delivered_values([(literal, kind)])}")
                for row in chunk
            ]
            row = bytes(rows[0])
        return tokens.return_value(place, argument.name or "", kind, encode_cell(row, kind))
