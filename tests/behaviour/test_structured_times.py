"""time.precision.mode=structured on real servers: a row of each temporal type, from the snapshot and from the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors import registry
from tests.behaviour.capture import capturing
from tests.behaviour.kept import keeping
from tests.behaviour.stepping import Stepped
from tests.conformance.db2 import Db2Source
from tests.conformance.sqlserver import SqlServerSource
from tests.conftest import Database
from tests.servers.db2.server import Db2
from tests.servers.sqlserver.server import SqlServer

STRUCTURED = {"time.precision.mode": "structured"}
DAY = {"year": 2018, "month": 6, "day": 20}


def clock(nanos: int, **more: Any) -> dict[str, Any]:
    """The parts of 15:13:16 and so many nanoseconds."""
    return {"hour": 15, "minute": 13, "second": 16, "nanos": nanos, **more}


def special(**more: Any) -> dict[str, Any]:
    return {**more, "specialValue": None}


POSTGRES = {
    "d": special(**DAY),
    "t": clock(945_104_000, precision=6),
    "tz": clock(945_000_000, offsetSeconds=-3600, precision=3),
    "s": {**special(**DAY), **clock(950_000_000, precision=2)},
    "sz": {**special(**DAY), **clock(945_104_000, offsetSeconds=0, zoneId="Z", precision=6)},
    "i": {"years": 1, "months": 2, "days": 3, "hours": 4, "minutes": 5, "seconds": 6, "nanos": 789_000_000,
          "precision": 6},
    "a": [special(**DAY), None],
}  # fmt: skip


def test_rows_of_postgresql(database: Database) -> None:
    database.execute(
        "CREATE TABLE times (id int, d date, t time, tz timetz(3), s timestamp(2), sz timestamptz, i interval, "
        "a date[], PRIMARY KEY (id, d))",
        "INSERT INTO times VALUES (1, '2018-06-20', '15:13:16.945104', '15:13:16.945-01', '2018-06-20 15:13:16.95', "
        "'2018-06-20 17:13:16.945104+02', '1 year 2 months 3 days 04:05:06.789', '{2018-06-20,NULL}')",
    )
    with capturing(database, time__precision__mode="structured") as capture:
        (read,) = capture.step()
        database.execute("INSERT INTO times SELECT 2, d, t, tz, s, sz, i, a FROM times")
        (created,) = capture.step()
        database.execute("UPDATE times SET d = 'infinity' WHERE id = 2")
        (moved,) = capture.step()
    assert read["after"] == {"id": 1, **POSTGRES}
    assert created["after"] == {"id": 2, **POSTGRES}
    assert moved["after"]["d"] == {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}


def test_a_replica_has_dates_whatever_the_form_of_events(database: Database, tmp_path: Path) -> None:
    values = "'2018-06-20', '2018-06-20 15:13:16.945104', '2018-06-20 15:13:16+00', '(1,1),(0,0)'"
    create = "CREATE TABLE times (id int PRIMARY KEY, d date, s timestamp, sz timestamptz, b box)"
    own = {**registry.named("postgres").load().replica_properties, **STRUCTURED, "compat.version": "3.7"}
    properties = {name.replace(".", "__"): value for name, value in own.items()}
    with keeping(database, tmp_path, create, f"INSERT INTO times VALUES (1, {values})", **properties) as kept:
        database.execute(f"INSERT INTO times VALUES (2, {values})")
        kept.follow()
        rows = kept.rows("times")
    moment = datetime(2018, 6, 20, 15, 13, 16)
    assert rows == [
        {
            "id": id_,
            "d": moment.date(),
            "s": moment.replace(microsecond=945_104),
            "sz": moment.replace(tzinfo=timezone.utc),
            "b": b"(1,1),(0,0)",
        }
        for id_ in (1, 2)
    ]


@contextmanager
def stepped(connector: str, source: Any, properties: dict[str, str]) -> Iterator[Stepped]:
    with closing(source), closing(Stepped(connector, source, properties)) as stream:
        yield stream


@pytest.fixture
def sqlserver_source(sqlserver: SqlServer) -> SqlServerSource:
    return SqlServerSource(sqlserver, "structured_times")


def test_rows_of_sql_server(sqlserver_source: SqlServerSource) -> None:
    sqlserver_source.run(
        "CREATE TABLE times (d date NOT NULL PRIMARY KEY, t time(6), dt datetime, s smalldatetime, d2 datetime2(6), "
        "o datetimeoffset(6))"
    )
    sqlserver_source._capture("times")
    values = "'15:13:16.945104', '2018-06-20 15:13:16.947', '2018-06-20 15:13', '2018-06-20 15:13:16.945104', "
    values += "'2018-06-20 15:13:16.945104 -01:30'"
    sqlserver_source.run(f"INSERT INTO times VALUES ('2018-06-20', {values})")
    with stepped("sqlserver", sqlserver_source, {**STRUCTURED, "table.include.list": "dbo.times"}) as stream:
        (read,) = stream.step()[0]
        sqlserver_source.run(f"INSERT INTO times VALUES ('9999-12-31', {values})")
        (created,) = stream.step()[0] or stream.step()[0]
        key = stream.records[0]["key"]["payload"]
    row = {
        "t": clock(945_104_000, precision=6),
        "dt": {**special(**DAY), **clock(947_000_000, precision=3)},
        "s": {**special(**DAY), **clock(0, precision=0), "second": 0},
        "d2": {**special(**DAY), **clock(945_104_000, precision=6)},
        "o": {**special(**DAY), **clock(945_104_000, offsetSeconds=-5400, zoneId=None, precision=6)},
    }
    assert read["after"] == {"d": special(**DAY), **row}
    assert created["after"] == {"d": special(year=9999, month=12, day=31), **row}
    assert key == {"d": special(year=9999, month=12, day=31)}


@pytest.fixture
def db2_source(db2: Db2) -> Db2Source:
    return Db2Source(db2, "STRUCTURED")


def test_rows_of_db2(db2_source: Db2Source) -> None:
    schema = db2_source.schema
    db2_source.run(f'CREATE TABLE {schema}."times" (d DATE NOT NULL PRIMARY KEY, t TIME, s TIMESTAMP)')
    db2_source.server.capture((schema, "times"))
    row = "'15:13:16', '2018-06-20 15:13:16.945104'"
    db2_source.run(f"INSERT INTO {schema}.\"times\" VALUES ('2018-06-20', {row})")
    properties = {"table.include.list": rf"{schema}\.times", "snapshot.isolation.mode": "read_committed"}
    with stepped("db2", db2_source, {**STRUCTURED, **properties}) as stream:
        (read,) = stream.step()[0]
        db2_source.run(f"INSERT INTO {schema}.\"times\" VALUES ('0001-01-01', {row})")
        (created,) = stream.step()[0] or stream.step()[0]
    times = {"T": clock(0, precision=0), "S": {**special(**DAY), **clock(945_104_000, precision=6)}}
    assert read["after"] == {"D": special(**DAY), **times}
    assert created["after"] == {"D": special(year=1, month=1, day=1), **times}
