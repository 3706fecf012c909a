"""What tables cost a connector of change tables, on its stand-in: an idle poll, and one row in each of many tables.

`python benchmarks/growth.py db2|sqlserver [TABLES ...]`. Seconds are medians; CPU is that of this process, not the
server's.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlserver import double

from tailrace.override import override

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tests.servers.db2.server import Db2
from tests.servers.sqlserver.client import SqlServerClient

POLLS = 20


class Tables(Protocol):
    """So many captured tables on a server. `connector` names its connector."""

    connector: str

    def create(self, count: int) -> dict[str, str]:
        """Make the tables; the properties of a pipeline over them."""

    def write(self, count: int, key: int) -> None:
        """Insert a row into each in one transaction, and have it captured."""


@dataclass
class Db2Tables(Tables):
    """Implements Tables."""

    server: Db2
    connector = "db2"

    @override
    def create(self, count: int) -> dict[str, str]:
        server, schema = self.server, f"G{count}"
        with server.session() as session:
            session.rows(f"CREATE SCHEMA {schema}")
            for number in range(count):
                session.rows(f"CREATE TABLE {schema}.T{number} (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER)")
        server.capture(*((schema, f"T{number}") for number in range(count)))
        return {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.dbname": server.database,
            "driver.securityMechanism": "3",
            "table.include.list": rf"{schema}\.T.*",
        }

    @override
    def write(self, count: int, key: int) -> None:
        with self.server.session() as session:
            session.transaction(*(f"INSERT INTO G{count}.T{number} VALUES ({key}, 0)" for number in range(count)))
        self.server.settle()


@dataclass
class SqlServerTables(Tables):
    """Implements Tables."""

    server: SqlServerClient
    connector = "sqlserver"

    @override
    def create(self, count: int) -> dict[str, str]:
        server, database = self.server, f"g{count}"
        server.execute(f"CREATE DATABASE {database}")
        with closing(server.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute("EXEC sys.sp_cdc_enable_db")
            for number in range(count):
                cursor.execute(f"CREATE TABLE t{number} (id int NOT NULL PRIMARY KEY, v int)")
                named = f"@source_schema = N'dbo', @source_name = N't{number}', @role_name = NULL"
                cursor.execute(f"EXEC sys.sp_cdc_enable_table {named}")
        return {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.names": database,
        }

    @override
    def write(self, count: int, key: int) -> None:
        inserts = "; ".join(f"INSERT INTO t{number} VALUES ({key}, 0)" for number in range(count))
        self.server.execute(f"BEGIN TRANSACTION; {inserts}; COMMIT", "EXEC sys.sp_cdc_scan", database=f"g{count}")


def timed(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median seconds, and median CPU seconds of this process."""
    runs = []
    for _ in range(times):
        begin, cpu = time.perf_counter(), time.process_time()
        work()
        runs.append((time.perf_counter() - begin, time.process_time() - cpu))
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def measure(tables: Tables, count: int) -> None:
    """A pipeline over `count` tables."""
    given = tables.create(count)
    package = registry.named(tables.connector).load()
    config = package.resolve({**given, "topic.prefix": "g", "snapshot.mode": "no_data"})
    capture = Capture(package.connector(config))
    offset = capture.begin()

    def read() -> int:
        nonlocal offset
        start, offset = offset, capture.head(offset, None)
        chunks = (chunk for split in capture.plan(start, offset) for chunk in capture.read(split))
        return sum(batch.rows.num_rows for chunk in chunks for batch in chunk.batches)

    def read_each() -> None:
        rows = 0
        while rows < count:
            rows += read()

    for _ in range(3):
        read()
    idle = timed(lambda: capture.head(offset, None), POLLS)
    runs = []
    for key in range(3):
        tables.write(count, key)
        runs.append(timed(read_each, 1))
    seconds, cpu = (statistics.median(run[place] for run in runs) for place in (0, 1))
    print(
        f"{count:>4} tables: idle poll {idle[0] * 1000:,.1f} ms ({idle[1] * 1000:,.1f} ms of CPU); "
        f"a row in each {seconds * 1000:,.0f} ms ({cpu * 1000:,.0f} ms of CPU)",
        flush=True,
    )
    capture.close()


def main() -> None:
    """The database, and the numbers of tables."""
    database, *given = sys.argv[1:]
    counts = [int(each) for each in given] or [1, 10, 100, 500]
    if database == "db2":
        with Db2() as server:
            for count in counts:
                measure(Db2Tables(server), count)
    else:
        with double() as (client, _):
            for count in counts:
                measure(SqlServerTables(client), count)


if __name__ == "__main__":
    main()
