"""What tables cost Db2's connector, on the stand-in: an idle poll, and one row in each of 1 to 500 change tables.

`python benchmarks/db2_growth.py [TABLES ...]`. Seconds are medians; CPU is that of this process, not the server's.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tailrace.capture.capture import Capture
from tailrace.connectors import registry
from tests.servers.db2.server import Db2

POLLS = 20


def timed(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median seconds, and median CPU seconds of this process."""
    runs = []
    for _ in range(times):
        begin, cpu = time.perf_counter(), time.process_time()
        work()
        runs.append((time.perf_counter() - begin, time.process_time() - cpu))
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def measure(server: Db2, count: int) -> None:
    """A pipeline over `count` tables."""
    schema = f"G{count}"
    with server.session() as session:
        session.rows(f"CREATE SCHEMA {schema}")
        for number in range(count):
            session.rows(f"CREATE TABLE {schema}.T{number} (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER)")
    server.capture(*((schema, f"T{number}") for number in range(count)))
    package = registry.named("db2").load()
    config = package.resolve(
        {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.dbname": server.database,
            "driver.securityMechanism": "3",
            "topic.prefix": "g",
            "table.include.list": rf"{schema}\.T.*",
            "snapshot.mode": "no_data",
        }
    )
    capture = Capture(package.connector(config))
    offset = capture.begin()
    for _ in range(3):
        start, offset = offset, capture.head(offset, None)
        for split in capture.plan(start, offset):
            for _chunk in capture.read(split):
                pass
    idle = timed(lambda: capture.head(offset, None), POLLS)

    def a_row_each() -> None:
        nonlocal offset
        rows = 0
        while rows < count:
            start, offset = offset, capture.head(offset, None)
            for split in capture.plan(start, offset):
                rows += sum(batch.rows.num_rows for chunk in capture.read(split) for batch in chunk.batches)

    numbers = iter(range(1, 100))

    def write() -> None:
        key = next(numbers)
        with server.session() as session:
            session.transaction(*(f"INSERT INTO {schema}.T{number} VALUES ({key}, 0)" for number in range(count)))
        time.sleep(2)  # for the capture program

    runs = []
    for _ in range(3):
        write()
        runs.append(timed(a_row_each, 1))
    seconds, cpu = (statistics.median(run[place] for run in runs) for place in (0, 1))
    print(
        f"{count:>4} tables: idle poll {idle[0] * 1000:,.1f} ms ({idle[1] * 1000:,.1f} ms of CPU); "
        f"a row in each {seconds * 1000:,.0f} ms ({cpu * 1000:,.0f} ms of CPU)",
        flush=True,
    )
    capture.close()


if __name__ == "__main__":
    with Db2() as stand_in:
        for tables in [int(each) for each in sys.argv[1:]] or [1, 10, 100, 500]:
            measure(stand_in, tables)
