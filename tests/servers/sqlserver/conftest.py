"""Fixtures for the tests of the double: one server for all, an empty database for each test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pymssql
import pytest

from .server import SqlServer


class Client:
    """A connection of pymssql."""

    def __init__(self, server: SqlServer, database: str, **options: Any) -> None:
        self.connection = server.connect(database, **options)

    def run(self, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a batch; return the rows of its last result set."""
        results = self.results(text, *parameters)
        return results[-1] if results else []

    def results(self, text: str, *parameters: Any) -> list[list[tuple[Any, ...]]]:
        """Run a batch; return all its result sets."""
        with self.connection.cursor() as cursor:
            cursor.execute(text, parameters) if parameters else cursor.execute(text)
            found = []
            while True:
                if cursor.description:
                    found.append(cursor.fetchall())
                if not cursor.nextset():
                    return found

    def value(self, text: str) -> Any:
        """The one value that a query yields."""
        ((value,),) = self.run(text)
        return value

    def error(self, text: str) -> int:
        """The number of the error that a batch ends with."""
        with pytest.raises(pymssql.Error) as caught:
            self.results(text)
        return int(caught.value.args[0])

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


@pytest.fixture(scope="session")
def server() -> Iterator[SqlServer]:
    """The double, shared by all tests."""
    with SqlServer(capture_interval=0.02, record=True) as server:
        yield server


@pytest.fixture
def database(server: SqlServer) -> Iterator[str]:
    """The name of an empty database."""
    server.execute("CREATE DATABASE test_db")
    yield "test_db"
    server.execute("DROP DATABASE IF EXISTS test_db")


@pytest.fixture
def connect(server: SqlServer, database: str) -> Iterator[Callable[..., Client]]:
    """Opens clients of the test's database; they are closed at its end."""
    clients: list[Client] = []

    def open_client(**options: Any) -> Client:
        clients.append(Client(server, options.pop("database", database), **options))
        return clients[-1]

    yield open_client
    for client in clients:
        with contextlib.suppress(pymssql.Error):  # the test may have closed it
            client.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    """A client of the test's database."""
    return connect()


class Captured:
    """A client of a database with change data capture."""

    def __init__(self, server: SqlServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.run = client.run
        self.error = client.error
        self.number = int(client.value("SELECT DB_ID()"))
        client.run("EXEC sys.sp_cdc_enable_db")

    def enable(self, table: str = "t", **options: str) -> None:
        """Create a capture instance of a table."""
        settings = "".join(f", @{name} = {value}" for name, value in options.items())
        named = f"@source_schema = 'dbo', @source_name = '{table}', @role_name = NULL"
        self.run(f"EXEC sys.sp_cdc_enable_table {named}{settings}")

    def changes(self, instance: str = "dbo_t", columns: str = "*") -> list[tuple[Any, ...]]:
        """The rows of a change table after a scan: operation, then the columns."""
        self.server.capture.scan(self.number)
        order = "__$start_lsn, __$command_id, __$seqval, __$operation"
        rows = self.run(f"SELECT __$operation, {columns} FROM cdc.{instance}_CT ORDER BY {order}")
        return [(row[0], *row[6:-1]) if columns == "*" else row for row in rows]


@pytest.fixture
def captured(server: SqlServer, client: Client) -> Captured:
    captured = Captured(server, client)
    captured.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), n INT)")
    return captured
