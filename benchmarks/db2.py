"""Change tables of Db2, on the stand-in: Tailrace, a Debezium engine and a bare loop of the driver read one backlog.

`python benchmarks/db2.py [--rows N] [--times N] [--json FILE] [--snapshot]`. The change table is filled by hand, and
shown to a contestant that streams by the position in the register, so that nothing is captured while it reads.
`--snapshot` measures a first snapshot of as many rows.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import ibm_db
import measure
import pyarrow as pa
from contestants import Result
from harness import Course, arguments, run

from tailrace.override import override

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.servers.db2.client import Session
from tests.servers.db2.server import Db2

TABLE, NUMBERS, CHANGES = "BENCH.ITEMS", "BENCH.NUMBERS", 'ASNCDC."CDC_BENCH_ITEMS"'
A_TRANSACTION, AT_ONCE = 100, 100_000
BEFORE = 0x6000000


def lsn(number: int) -> str:
    """A log sequence number in SQL."""
    return f"X'{BEFORE + number:032x}'"


@dataclass
class Db2Course(Course):
    """A table of eight columns, whose change table has inserts alone; or the table itself, for a first snapshot."""

    db2: Db2
    rows: int
    is_snapshot: bool
    connector = "db2"

    @property
    @override
    def is_hidden(self) -> bool:  # type: ignore[override]  # a snapshot has nothing to hide
        return not self.is_snapshot

    @property
    @override
    def server(self) -> measure.Tree:
        """Derby; the filter's time is not in it."""
        return measure.Tree(self.db2.pid)

    @override
    def properties(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.db2.Db2Connector",
            "database.hostname": self.db2.host,
            "database.port": str(self.db2.port),
            "database.user": self.db2.user,
            "database.password": self.db2.password,
            "database.dbname": self.db2.database,
            "driver.securityMechanism": "3",
            "database.query.timeout.ms": "0",
            "poll.interval.ms": "100",
            "topic.prefix": "bench",
            "table.include.list": TABLE,
            "snapshot.mode": "initial_only" if self.is_snapshot else "no_data",
            "include.schema.changes": "false",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }

    def fill(self) -> None:
        """Write the table, or its change table and units of work."""
        with self.db2.session() as session:
            session.rows("CREATE SCHEMA BENCH")
            columns = "ID INTEGER NOT NULL PRIMARY KEY, G INTEGER, NAME VARCHAR(40), PRICE DECIMAL(12,2)"
            session.rows(
                f"CREATE TABLE {TABLE} ({columns}, AT_TIME TIMESTAMP, ACTIVE SMALLINT, D DOUBLE, NOTE VARCHAR(60))"
            )
            self._number(session)
        if self.is_snapshot:
            self._insert(TABLE, _ROW, self.rows)
        self.db2.capture(("BENCH", "ITEMS"))
        self.db2.services("stop")
        if not self.is_snapshot:
            self._insert(CHANGES, f"{_lsn(f'N - MOD(N, {A_TRANSACTION})')}, {_lsn('N')}, 'I', {_ROW}", self.rows)
            names = "IBMSNAP_UOWID, IBMSNAP_COMMITSEQ, IBMSNAP_LOGMARKER, IBMSNAP_AUTHTKN, IBMSNAP_AUTHID"
            unit = f"X'{0:020x}', {_lsn(f'N * {A_TRANSACTION}')}, CURRENT_TIMESTAMP, '', 'BENCH'"
            self._insert(f"ASNCDC.IBMSNAP_UOW ({names})", unit, -(-self.rows // A_TRANSACTION))

    def _number(self, session: Session) -> None:
        """The numbers of rows, doubled until there are enough: each statement of the server's is compiled."""
        session.rows(f"CREATE TABLE {NUMBERS} (N INTEGER NOT NULL PRIMARY KEY)")
        session.rows(f"INSERT INTO {NUMBERS} VALUES 0")
        there = 1
        while there < self.rows:
            session.rows(f"INSERT INTO {NUMBERS} SELECT N + {there} FROM {NUMBERS} WHERE N + {there} < {self.rows}")
            there *= 2

    def _insert(self, table: str, row: str, count: int) -> None:
        with self.db2.session() as session:
            for first in range(0, count, AT_ONCE):
                last = min(first + AT_ONCE, count)
                session.rows(f"INSERT INTO {table} SELECT {row} FROM {NUMBERS} WHERE N >= {first} AND N < {last}")

    @override
    def hide(self) -> None:
        if not self.is_snapshot:
            self._end(lsn(-1))

    @override
    def show(self) -> None:
        if not self.is_snapshot:
            self._end(lsn(self.rows))

    def _end(self, end: str) -> None:
        self.db2.execute(
            f"UPDATE ASNCDC.IBMSNAP_REGISTER SET SYNCHPOINT = {end}, CD_NEW_SYNCHPOINT = {end}, "
            "SYNCHTIME = CURRENT_TIMESTAMP"
        )

    @override
    def bare(self) -> Result:
        """Rows into Arrow columns."""
        server = self.server
        own, server_before, begin, rows = time.process_time(), server.cpu(), time.monotonic(), 0
        connection = ibm_db.connect(self.db2.dsn(), "", "")
        table = TABLE if self.is_snapshot else f"{CHANGES} ORDER BY IBMSNAP_COMMITSEQ, IBMSNAP_INTENTSEQ"
        found = ibm_db.exec_immediate(connection, f"SELECT * FROM {table}")
        while block := ibm_db.fetchmany(found, 10_000):
            columns = [pa.array(values) for values in zip(*block, strict=True)]
            rows += len(columns[0])
        ibm_db.free_stmt(found)
        ibm_db.close(connection)
        seconds, cpu = time.monotonic() - begin, time.process_time() - own
        if rows != self.rows:
            raise SystemExit(f"the loop read {rows} rows; there are {self.rows}")
        return Result(rows, seconds, cpu, server.cpu() - server_before, 0, {})


def _lsn(number: str) -> str:
    """A log sequence number of a number in SQL."""
    return f"ASNCDCLOG.LSN({BEFORE} + CAST({number} AS BIGINT))"


_ROW = (
    "N, MOD(N, 100), 'item ' || TRIM(CHAR(N)), CAST(N AS DECIMAL(12,2)) / 100, TIMESTAMP('2026-01-02 03:04:05.678'), "
    "CAST(MOD(N, 2) AS SMALLINT), N * 0.5E0, 'a note of the item ' || TRIM(CHAR(N))"
)


def main() -> None:
    """Measure all in turn, several times."""
    given = arguments(__doc__ or "", snapshot=True)
    with Db2() as server:
        course = Db2Course(server, given.rows, given.snapshot)
        course.fill()
        run(course, given)


if __name__ == "__main__":
    main()
