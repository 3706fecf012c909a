"""The requirements of the specification of SQL Server for snapshots and signals, S004-1 to S004-78.

Where today's reference goes further (blocking snapshots, other channels, schema changes meanwhile), or Tailrace resumes
where the specification starts again, the test verifies what still holds of the requirement.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from tailrace.config.options.snapshot import INCREMENTAL_SNAPSHOT_CHUNK_SIZE, SNAPSHOT_MODE
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import topic
from tests.behaviour.stepping import Record, Stepped
from tests.conformance.sqlserver import SqlServerSource
from tests.seeds.sqlserver import SERVER, enable, events, keys, pipeline, sample, seed
from tests.servers.sqlserver.server import SqlServer

ROWS = [(1, "'blue'", 5, "'MyBrand'"), (2, "'red'", 50, "'MyBrand'"), (3, "'blue'", 50, "NULL")]
TABLES = ("schema1.table1", "schema1.table2", "schema2.table2", "schema1.products")


@pytest.fixture
def source(sqlserver: SqlServer) -> Iterator[SqlServerSource]:
    """The document's tables, each with three rows."""
    source = SqlServerSource(sqlserver, f"seed{uuid4().hex[:8]}")
    source.run("CREATE SCHEMA schema1")
    source.run("CREATE SCHEMA schema2")
    for name in TABLES:
        schema, table = name.split(".")
        source.run(f"CREATE TABLE {name} (id int PRIMARY KEY, color varchar(10), quantity int, brand varchar(10))")
        enable(source, table, schema)
        source.run(f"INSERT INTO {name} VALUES {', '.join('({}, {}, {}, {})'.format(*row) for row in ROWS)}")
    yield source
    source.close()


@pytest.fixture
def stream(source: SqlServerSource) -> Iterator[Stepped]:
    """A pipeline that reads the log alone, and has begun."""
    signals = {"signal__data__collection": f"{source.name}.dbo.signals", "incremental__snapshot__chunk__size": "2"}
    with pipeline(source, snapshot__mode="no_data", table__include__list=r"schema.*\..*", **signals) as stream:
        events(stream, 2)
        yield stream


def ask(source: SqlServerSource, statement: str) -> None:
    """Run a statement of the document on our table of signals, with names that have the database."""
    for name in TABLES:
        statement = statement.replace(f'"{name}"', f'"{source.name}.{name}"')
    source.run(statement.replace("myschema.debezium_signal", "signals").replace("color=blue", "color=''blue''"))


def of_snapshot(found: list[Record]) -> list[tuple[str, int]]:
    """Table and key of the rows that an incremental snapshot has read."""
    read = [each for each in found if each["source"]["snapshot"] == "incremental"]
    assert {each["op"] for each in read} <= {"r"}
    return [(table, key) for _, table, key in keys(read)]


def whole(*tables: str) -> list[tuple[str, int]]:
    return [(table, key) for table in tables for key in (1, 2, 3)]


@seed(1, 2, 3, 4, 6, 7, 8, 11, 12, 13, 15, 16, 17, 52, 82)
def test_a_first_start(source: SqlServerSource) -> None:
    lists = {"table__include__list": r"schema1\..*", "column__exclude__list": r"schema1\.table1\.brand"}
    with pipeline(source, **lists) as stream:
        assert stream.config[SNAPSHOT_MODE] == "initial"
        source.settle()
        ((newest,),) = source.run("SELECT CONVERT(varchar(30), sys.fn_cdc_get_max_lsn(), 2)")
        read, structures = stream.step()
        assert sorted(keys(read)) == [
            ("r", table, key) for table in ("products", "table1", "table2") for key in (1, 2, 3)
        ]
        assert all(("brand" in each["after"]) == (each["source"]["table"] != "table1") for each in read)
        assert {each["source"]["commit_lsn"].replace(":", "") for each in read} == {newest.lower()}
        told = [change["id"].replace('"', "") for each in structures for change in each["tableChanges"]]
        assert sorted(told) == sorted(f"{source.name}.{name}" for name in (*TABLES, "dbo.signals"))
        assert {record["topic"] for record in stream.records} == {
            f"{SERVER}.{source.name}.{name}" for name in TABLES if name.startswith("schema1.")
        }
        source.run("INSERT INTO schema1.table1 VALUES (4, 'blue', 1, NULL)")
        after = stream.offset
        assert keys(events(stream, 2)) == [("c", "table1", 4)]
    with pipeline(source, **lists) as resumed:
        resumed.offset = after
        assert keys(events(resumed, 2)) == [("c", "table1", 4)], "the offset has the whole snapshot"


@seed(14)
def test_an_interrupted_snapshot_loses_nothing(source: SqlServerSource) -> None:
    given = {"table__include__list": r"schema1\..*", "snapshot__max__threads": "1"}
    with pipeline(source, **given) as stream:
        first = events(stream, 2)
        offset = stream.offset
        assert 0 < len(first) < 9
    source.run("INSERT INTO schema1.table2 VALUES (4, 'blue', 1, NULL)")
    with pipeline(source, **given) as resumed:
        resumed.offset = offset
        found = {(table, key) for _, table, key in keys([*first, *events(resumed, 6)])}
    assert sorted(found) == sorted([*whole("products", "table1", "table2"), ("table2", 4)])


@seed(5, 9)
@pytest.mark.parametrize("mode", ["repeatable_read", "exclusive", "snapshot", "read_committed", "read_uncommitted"])
def test_writers_are_not_blocked_after_a_snapshot(source: SqlServerSource, mode: str) -> None:
    source.run(f"ALTER DATABASE {source.name} SET ALLOW_SNAPSHOT_ISOLATION ON")
    with pipeline(source, table__include__list=r"schema1\.table1", snapshot__isolation__mode=mode) as stream:
        assert of_snapshot(events(stream)) == []
        source.run("ALTER TABLE schema1.table1 ADD more int", "INSERT INTO schema1.table1 VALUES (4, 'x', 1, NULL, 7)")
        assert keys(events(stream, 2)) == [("c", "table1", 4)]


@seed(10, 83)
def test_a_table_that_is_added_later_is_streamed(source: SqlServerSource) -> None:
    with pipeline(source, table__include__list=r"schema1\.table1,dbo\.late") as stream:
        assert len(events(stream)) == 3
        source.create("late")
        source.run("INSERT INTO late VALUES (1, 1, N'a')")
        _, structures = stream.step()
        later, more = stream.step()
        found = keys([*later, *events(stream)])
        assert [change["type"] for each in (*structures, *more) for change in each["tableChanges"]] == ["CREATE"]
    with pipeline(source, table__include__list=r"dbo\.late", snapshot__mode="no_data") as fresh:
        events(fresh, 2)
        source.run("INSERT INTO late VALUES (2, 1, N'a')")
        found += keys(events(fresh))
    assert found[-1] == ("c", "late", 2)


@seed(18, 19, 23)
@pytest.mark.parametrize("name", ["schema.history.internal.", "database.history."])
def test_structures_of_captured_tables_alone(source: SqlServerSource, name: str) -> None:
    given = {f"{name}store.only.captured.tables.ddl": "true", f"{name}store.only.captured.databases.ddl": "true"}
    with pipeline(source, table__include__list=r"schema1\.table1", **given) as stream:
        _, structures = stream.step()
    assert [change["id"] for each in structures for change in each["tableChanges"]] == [
        f'"{source.name}"."schema1"."table1"'
    ]


@seed(20, 21, 22, 24, 25, 26, 28, 29, 30, 31, 45)
@pytest.mark.parametrize("is_altered", [False, True])
def test_a_table_is_added_to_the_list(source: SqlServerSource, is_altered: bool) -> None:
    """No history can lack a structure, so the same steps do for each of the document's cases: add it, signal it."""
    signals = {"signal__data__collection": f"{source.name}.dbo.signals"}
    with pipeline(source, snapshot__mode="schema_only", table__include__list=r"schema1\.table1", **signals) as stream:
        assert events(stream, 2) == []
        offset = stream.offset
    source.run("INSERT INTO schema1.products VALUES (4, 'blue', 1, NULL)")
    if is_altered:
        source.run("ALTER TABLE schema1.products ADD more int")
        enable(source, "products', @capture_instance = 'products2", "schema1")
        source.run("UPDATE schema1.products SET more = 7 WHERE id = 4")
    wider = r"schema1\.table1,schema1\.products"
    with pipeline(source, snapshot__mode="no_data", table__include__list=wider, **signals) as stream:
        stream.offset = offset
        streamed = events(stream, 2)
        data = json.dumps({"data-collections": [f"{source.name}.schema1.products"]})
        source.run(f"INSERT INTO signals VALUES ('add', 'execute-snapshot', '{data}')")
        read = events(stream, 6)
    assert [key for op, _, key in keys(streamed) if op == "c"] == [4]
    assert [key for _, key in of_snapshot(read)] == [1, 2, 3, 4]
    if is_altered:
        assert ["more" in each["after"] for each in streamed] == [False, True]
        assert read[-1]["after"]["more"] == 7


@seed(32, 33, 34, 35, 36, 40, 42, 43, 51, 54, 55, 59, 60, 61, 62)
def test_the_sample_of_a_signal(source: SqlServerSource, stream: Stepped) -> None:
    assert events(stream, 2) == [], "nothing is read unless it is asked for"
    assert stream.config[INCREMENTAL_SNAPSHOT_CHUNK_SIZE] == 2, "1024 is the default, see the reference"
    ask(source, sample("04-execute-snapshot.sql").replace("color=blue", "1=1"))
    source.run("INSERT INTO schema1.table1 VALUES (9, 'x', 1, NULL)")
    found = events(stream, 8)
    assert of_snapshot([each for each in found if each["after"]["id"] != 9]) == whole("table1", "table2")
    assert ("c", "table1", 9) in keys(found), "the log is read meanwhile"
    ask(source, sample("04-execute-snapshot.sql").replace("color=blue", "1=1").replace("ad-hoc-1", "ad-hoc-2"))
    assert set(whole("table1", "table2")) <= set(of_snapshot(events(stream, 8))), "as often as it is asked for"


@seed(37, 38, 56, 64, 65, 66)
@pytest.mark.parametrize(("name", "expected"), [("06-execute-snapshot-one", [1, 3]), ("07-execute-snapshot-two", [3])])
def test_the_samples_with_conditions(source: SqlServerSource, stream: Stepped, name: str, expected: list[int]) -> None:
    ask(source, sample(f"{name}-condition{'s' * name.endswith('two')}.sql"))
    assert of_snapshot(events(stream, 6)) == [("products", key) for key in expected]


@seed(37, 39, 41, 56, 57, 58, 63)
@pytest.mark.parametrize(
    ("names", "more", "expected"),
    [
        ([r"{db}\.schema1\.table.*"], {}, whole("table1", "table2")),
        (['"{db}"."schema1"."products"'], {"type": "INCREMENTAL"}, whole("products")),
        (["{db}.schema1.products"], {"surrogate-key": "quantity"}, whole("products")),
        ([], {"type": "incremental"}, []),
    ],
)
def test_what_a_signal_may_say(
    source: SqlServerSource,
    stream: Stepped,
    names: list[str],
    more: dict[str, str],
    expected: list[tuple[str, int]],
) -> None:
    data = {"data-collections": [name.replace("{db}", source.name) for name in names], **more}
    source.run(f"INSERT INTO signals VALUES ('any id', 'execute-snapshot', '{json.dumps(data)}')")
    assert of_snapshot(events(stream, 8)) == expected


@seed(44)
def test_an_interrupted_incremental_snapshot_resumes(source: SqlServerSource, stream: Stepped) -> None:
    ask(source, sample("04-execute-snapshot.sql").replace("color=blue", "1=1"))
    found = events(stream, 2)
    assert 0 < len(of_snapshot(found)) < 6
    with pipeline(source, **{name.replace(".", "__"): text for name, text in stream.config.given.items()}) as resumed:
        resumed.offset = stream.offset
        again = of_snapshot(events(resumed, 8))
    rows = [*of_snapshot(found), *again]
    assert sorted(set(rows)) == whole("table1", "table2")
    assert len(rows) <= 6 + 2, "at most one chunk is read again"


@seed(43, 46, 47, 48, 49, 50, 51)
def test_reads_never_override_newer_changes(source: SqlServerSource, stream: Stepped) -> None:
    source.run("INSERT INTO schema1.table1 SELECT value, 'x', 0, NULL FROM GENERATE_SERIES(4, 40, 1)")
    events(stream)
    ask(source, sample("04-execute-snapshot.sql").replace("color=blue", "1=1"))
    last, read = dict.fromkeys(range(1, 41), 0), set()
    for number in range(60, 100):
        source.run(f"UPDATE schema1.table1 SET quantity = {number} WHERE id % 5 = {number % 5}")
        for each in events(stream):
            key, value = each["after"]["id"], each["after"]["quantity"]
            if each["source"]["table"] == "table1":
                assert value >= last[key] or value in (5, 50), "no event is older than one before it"
                last[key] = value
                read |= {key} if each["op"] == "r" else set()
    assert read, "some rows have no newer change"
    assert last == {row[0]: row[1] for row in source.run("SELECT id, quantity FROM schema1.table1")}


@seed(53)
def test_a_column_that_is_added_meanwhile(source: SqlServerSource, stream: Stepped) -> None:
    ask(source, sample("04-execute-snapshot.sql").replace("color=blue", "1=1"))
    found = events(stream)
    source.run("ALTER TABLE schema1.table1 ADD more int")
    enable(source, "table1', @capture_instance = 'table1_2", "schema1")
    found += events(stream, 10)
    assert set(of_snapshot(found)) == set(whole("table1", "table2"))


@seed(67, 68)
def test_the_sample_of_an_incremental_event(source: SqlServerSource, stream: Stepped) -> None:
    ask(source, sample("06-execute-snapshot-one-condition.sql"))
    found, expected = events(stream, 4)[0], sample(8)
    for name in ("before", "op", "transaction"):
        assert found.get(name) == expected[name]
    assert found["source"]["snapshot"] == expected["source"]["snapshot"]
    assert list(found["after"]) == ["id", "color", "quantity", "brand"]
    assert isinstance(found["ts_ms"], int), "the sample has it in quotes"


@seed(69, 70, 71, 72, 73, 77, 78)
def test_the_samples_by_kafka(source: SqlServerSource, kafka: EmbeddedKafka) -> None:
    name = topic(kafka)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def send(number: int, key: str = SERVER) -> None:
        text = json.dumps(sample(number)["value"])
        for table in TABLES:
            text = text.replace(f'"{table}"', f'"{source.name}.{table}"')
        producer.produce(name, text, key)
        assert producer.flush(30) == 0

    given = {
        "signal__data__collection": f"{source.name}.dbo.signals",
        "signal__enabled__channels": "source,kafka",
        "signal__kafka__topic": name,
        "signal__kafka__bootstrap__servers": kafka.bootstrap,
        "signal__kafka__groupId": name,
        "signal__poll__interval__ms": "1",
        "snapshot__mode": "no_data",
        "table__include__list": r"schema.*\..*",
    }
    with pipeline(source, **given) as stream:
        events(stream, 2)

        def read_until(least: int) -> list[tuple[str, int]]:
            found: list[tuple[str, int]] = []
            deadline = time.monotonic() + 120
            while len(found) < least and time.monotonic() < deadline:
                found += of_snapshot(events(stream))
            return [*found, *of_snapshot(events(stream, 6))]

        send(9, key="another")
        send(9)
        assert read_until(6) == whole("table1", "table2")
        send(10)
        assert read_until(2) == [("products", 1), ("products", 3)]
        send(11)
        assert read_until(1) == [("products", 1)]
        send(14)
        send(10)
        assert read_until(2) == [("products", 1), ("products", 3)], "a stop of what is not read does no harm"


@seed(74, 75, 76)
@pytest.mark.parametrize("is_whole", [False, True])
def test_the_sample_of_a_stop(source: SqlServerSource, stream: Stepped, is_whole: bool) -> None:
    names = [f"{source.name}.schema1.products", *(f"{source.name}.{name}" for name in TABLES[:2])]
    data = json.dumps({"data-collections": names})
    source.run(f"INSERT INTO signals VALUES ('1', 'execute-snapshot', '{data}')")
    found = of_snapshot(events(stream))
    stop = sample("13-stop-snapshot.sql").replace("schema2.table2", "schema1.table2")
    if is_whole:
        stop = f"INSERT INTO signals VALUES ('2', 'stop-snapshot', '{json.dumps({'type': 'incremental'})}')"
    ask(source, stop)
    found += of_snapshot(events(stream, 8))
    assert {table for table, _ in found} <= {"products"}
    assert (set(found) == set(whole("products"))) != is_whole
