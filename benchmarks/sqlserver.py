"""Change tables of SQL Server, on the stand-in: Tailrace, a Debezium engine and a bare loop read one backlog.

`python benchmarks/sqlserver.py [--rows N] [--times N] [--json FILE] [--snapshot]`. The backlog is captured before, and
shown to a contestant that streams by the table of commits, so that nothing is captured while it reads. `--snapshot`
measures a first snapshot of as many rows.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import measure
import mssql_python
from contestants import Result
from harness import Course, arguments, run

from tailrace.override import override

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.servers.sqlserver.client import SqlServerClient

mssql_python.native_provider = "mssql-odbc"  # type: ignore[attr-defined]

DATABASE, TABLE, CHANGES = "bench", "dbo.items", "cdc.dbo_items_CT"
A_TRANSACTION, AT_ONCE = 100, 10_000
COLUMNS = (
    "id int NOT NULL PRIMARY KEY, g int, name varchar(40), price decimal(12,2), at_time datetime2(3), active bit, "
    "d float, note varchar(60)"
)
VALUES = (
    "value, value % 100, CONCAT('item ', value), value / 100.0, '2026-01-02T03:04:05.678', value % 2, value * 0.5, "
    "CONCAT('a note of the item ', value)"
)


@dataclass
class SqlServerCourse(Course):
    """A table of eight columns, whose change table has inserts alone; or the table itself, for a first snapshot."""

    double: SqlServerClient
    rows: int
    is_snapshot: bool
    pid: int
    connector = "sqlserver"

    @property
    @override
    def is_hidden(self) -> bool:  # type: ignore[override]  # a snapshot has nothing to hide
        return not self.is_snapshot

    @property
    @override
    def server(self) -> measure.Tree:
        """The stand-in, in a process of its own, and the engine below."""
        return measure.Tree(self.pid)

    @override
    def properties(self) -> dict[str, str]:
        double = self.double
        return {
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.hostname": double.host,
            "database.port": str(double.port),
            "database.user": double.user,
            "database.password": double.password,
            "database.names": DATABASE,
            "driver.encrypt": "false",
            "poll.interval.ms": "100",
            "topic.prefix": "bench",
            "table.include.list": TABLE,
            "snapshot.mode": "initial_only" if self.is_snapshot else "no_data",
            "include.schema.changes": "false",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }

    def fill(self) -> None:
        """Write the rows, have them captured, and keep their commits apart."""
        self.double.execute(f"CREATE DATABASE {DATABASE}")
        named = "@source_schema = N'dbo', @source_name = N'items', @role_name = NULL, @supports_net_changes = 0"
        with closing(self.double.connect(DATABASE)) as connection, connection.cursor() as cursor:
            cursor.execute("EXEC sys.sp_cdc_enable_db")
            cursor.execute(f"CREATE TABLE {TABLE} ({COLUMNS})")
            if not self.is_snapshot:
                cursor.execute(f"EXEC sys.sp_cdc_enable_table {named}")
            step = AT_ONCE if self.is_snapshot else A_TRANSACTION
            for first in range(1, self.rows + 1, step):
                last = min(first + step - 1, self.rows)
                cursor.execute(f"INSERT INTO {TABLE} SELECT {VALUES} FROM GENERATE_SERIES({first}, {last}, 1)")
            if self.is_snapshot:
                cursor.execute(f"EXEC sys.sp_cdc_enable_table {named}")
                return
            cursor.execute("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
            cursor.execute("EXEC sys.sp_cdc_scan")
            names = "start_lsn, tran_begin_time, tran_end_time, tran_id, tran_begin_lsn"
            types = "binary(10) PRIMARY KEY, datetime, datetime, varbinary(10), binary(10)"
            listed = ", ".join(map(" ".join, zip(names.split(", "), types.split(", "), strict=True)))
            cursor.execute(f"CREATE TABLE dbo.kept ({listed})")
            commits = f"SELECT [__$start_lsn] FROM {CHANGES}"
            cursor.execute(
                f"INSERT INTO dbo.kept SELECT {names} FROM cdc.lsn_time_mapping WHERE start_lsn IN ({commits})"
            )

    @override
    def hide(self) -> None:
        if not self.is_snapshot:
            self.double.execute(
                "DELETE FROM cdc.lsn_time_mapping WHERE start_lsn IN (SELECT start_lsn FROM dbo.kept)",
                database=DATABASE,
            )

    @override
    def show(self) -> None:
        if not self.is_snapshot:
            self.double.execute("INSERT INTO cdc.lsn_time_mapping SELECT * FROM dbo.kept", database=DATABASE)

    @override
    def bare(self) -> Result:
        """Arrow columns of Microsoft's driver."""
        table = TABLE if self.is_snapshot else f"{CHANGES} ORDER BY [__$start_lsn], [__$seqval], [__$operation]"
        server = self.server
        server_before, begin, rows = server.cpu(), time.monotonic(), 0
        own = time.thread_time()
        double = self.double
        where = f"SERVER={double.host},{double.port};DATABASE={DATABASE};UID={double.user};PWD={{{double.password}}};"
        with mssql_python.connect(f"{where}Encrypt=no;TrustServerCertificate=yes;", autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT * FROM {table}")
            while block := cursor.arrow_batch(10_000).num_rows:
                rows += block
        seconds, cpu = time.monotonic() - begin, time.thread_time() - own
        if rows != self.rows:
            raise SystemExit(f"the loop read {rows} rows; there are {self.rows}")
        return Result(rows, seconds, cpu, server.cpu() - server_before, 0, {})


@contextmanager
def double() -> Iterator[tuple[SqlServerClient, int]]:
    """The stand-in as a process, so that no contestant shares one with it: how to ask it, and its number."""
    password = "Double-Password-1"
    command = [sys.executable, "-m", "tests.servers.sqlserver", "--port", "0", "--password", password]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            found = re.search(r" on (\S+), user (\w+)", said)
            if found is None:
                raise SystemExit(f"the stand-in says {said!r}")
            yield SqlServerClient(f"mssql://{found[2]}:{password}@{found[1]}"), process.pid
        finally:
            process.terminate()


def main() -> None:
    """Measure all in turn, several times."""
    given = arguments(__doc__ or "", snapshot=True)
    with double() as (server, pid):
        course = SqlServerCourse(server, given.rows, given.snapshot, pid)
        course.fill()
        run(course, given)


if __name__ == "__main__":
    main()
