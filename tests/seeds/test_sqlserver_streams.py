"""The requirements of SQL Server's specification for stream, structures and values, S004-79 to S004-152."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from tailrace.config.topics import TopicNaming
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.log.end import AGENT_DOWN, AgentCheck
from tailrace.connectors.sqlserver.types.values import SqlType, value_type
from tailrace.events.schema_change import SchemaChangeWriter
from tailrace.events.transactions import TransactionTracker
from tests.behaviour.stepping import Record, Stepped
from tests.conformance.sqlserver import SqlServerSource
from tests.seeds.sqlserver import DEMANDS, SERVER, enable, events, keys, pipeline, sample, seed
from tests.servers.sqlserver.server import SqlServer

DOCS = Path(__file__).parents[2] / "docs"
BASE = {"database.hostname": "h", "database.names": "testDB", "topic.prefix": SERVER}


@pytest.fixture
def source(sqlserver: SqlServer) -> Iterator[SqlServerSource]:
    """The document's database."""
    source = SqlServerSource(sqlserver, f"seed{uuid4().hex[:8]}")
    source.run(sample(21))
    enable(source, "customers")
    source.run("CREATE TABLE tablea (id int PRIMARY KEY, aa int)")
    source.run("CREATE TABLE tableb (id int PRIMARY KEY, aa int)")
    for table in ("tablea", "tableb"):
        enable(source, table)
    yield source
    source.close()


@pytest.fixture
def stream(source: SqlServerSource) -> Iterator[Stepped]:
    """A pipeline that reads the log alone, and has begun."""
    with pipeline(source, snapshot__mode="no_data", provide__transaction__metadata="true") as stream:
        events(stream, 2)
        yield stream


def structures(stream: Stepped, steps: int = 2) -> list[Record]:
    """The changes of structure that the next steps tell."""
    return [each for _ in range(steps) for each in stream.step()[1]]


@seed(80, 81, 82, 92, 93, 115, 117)
def test_changes_in_the_order_of_the_log(source: SqlServerSource, stream: Stepped) -> None:
    for number in range(4):
        table = "tableb" if number % 2 else "tablea"
        source.run(f"INSERT INTO {table} VALUES ({number}, 0)", f"UPDATE {table} SET aa = 1 WHERE id = {number}")
    found = events(stream)
    assert keys(found) == [
        (op, "tableb" if number % 2 else "tablea", number) for number in range(4) for op in ("c", "u")
    ]
    places = [(each["source"]["commit_lsn"], each["source"]["change_lsn"]) for each in found]
    assert places == sorted(places)
    topics = {record["topic"] for record in stream.records}
    assert topics == {f"{SERVER}.{source.name}.dbo.{table}" for table in ("tablea", "tableb")}
    example = sample(17)
    assert example["topics"][0] == f"{example['topic.prefix']}.{example['database']}.dbo.products"
    resumed_at = stream.offset
    source.run("DELETE FROM tablea")
    assert keys(events(stream)) == [("d", "tablea", 0), ("d", "tablea", 2)]
    stream.offset = resumed_at
    assert keys(events(stream)) == [("d", "tablea", 0), ("d", "tablea", 2)], "read again from the offset"


@seed(79, 83, 84, 97, 99, 100, 102, 104, 105, 107, 108, 109, 110, 111, 112, 113, 114)
def test_the_sample_of_a_schema_change(source: SqlServerSource) -> None:
    with pipeline(source) as stream:
        told = structures(stream, 1)
        found = next(each for each in told if each["tableChanges"][0]["id"].endswith('"customers"'))
        expected = json.loads(json.dumps(sample(18)["payload"]).replace("testDB", source.name))
        assert [each for each in found if each in expected] == list(expected)
        for name in ("databaseName", "schemaName", "ddl"):
            assert found[name] == expected[name]
        for name in ("connector", "name", "snapshot", "db", "schema", "table", "change_lsn", "event_serial_no"):
            assert found["source"][name] == expected["source"][name], name
        assert found["source"]["commit_lsn"]
        assert isinstance(found["ts_ms"], int)
        (change,), (meant,) = found["tableChanges"], expected["tableChanges"]
        assert (change["type"], change["id"]) == (meant["type"], meant["id"])
        assert change["table"]["primaryKeyColumnNames"] == meant["table"]["primaryKeyColumnNames"]
        for column, known in zip(change["table"]["columns"], meant["table"]["columns"], strict=True):
            # An identity is auto-incremented for the driver, whatever the sample says.
            assert {name: column[name] for name in known if name != "autoIncremented"} == {
                name: value for name, value in known.items() if name != "autoIncremented"
            }
        source.run("CREATE TABLE later (id int PRIMARY KEY)")
        enable(source, "later")
        source.run("INSERT INTO later VALUES (1)")
        later = structures(stream)
        assert [(each["type"], each["id"]) for told in later for each in told["tableChanges"]] == [
            ("CREATE", f'"{source.name}"."dbo"."later"')
        ]
        disable = "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', @source_name = 'later', "
        source.run(disable + "@capture_instance = 'all'")
        source.run("INSERT INTO tablea VALUES (1, 1)")
        assert [each["type"] for told in structures(stream) for each in told["tableChanges"]] == ["DROP"]
        assert {each["ddl"] for each in later} == {None}


@seed(27, 96, 97, 98, 106)
def test_each_event_has_the_structure_of_its_time(source: SqlServerSource, stream: Stepped) -> None:
    source.run("INSERT INTO customers (first_name, last_name, email) VALUES ('a', 'b', 'c')")
    source.run("ALTER TABLE customers ADD phone varchar(20)")
    enable(source, "customers', @capture_instance = 'customers2")
    source.run("INSERT INTO customers (first_name, last_name, email, phone) VALUES ('a', 'b', 'd', '1')")
    at_start = stream.offset
    expected = [("phone" in each["after"]) for each in events(stream, 2)]
    assert expected == [False, True]
    with pipeline(source, snapshot__mode="no_data") as restarted:
        restarted.offset = at_start
        found, told = restarted.step()
        assert [("phone" in each["after"]) for each in found] == expected
        (change,) = [each for one in told for each in one["tableChanges"] if each["type"] == "ALTER"]
        assert [column["name"] for column in change["table"]["columns"]][-1] == "phone"


@seed(101)
def test_the_sample_of_a_schema_changes_key(source: SqlServerSource) -> None:
    with pipeline(source) as stream:
        writer = SchemaChangeWriter(stream.config, stream._block)
        end = stream.capture.head(stream.offset, None)
        batches = [
            batch
            for split in stream.capture.plan(stream.offset, end)
            for chunk in stream.capture.read(split)
            for batch in chunk.batches
        ]
        told = [writer.record(batch) for batch in batches if batch.schema_change is not None]
    control = [each for each in told if each is not None]
    assert {each.topic for each in control} == {SERVER}
    key, expected = control[0].key_schema, sample(19)
    assert json.loads(control[0].rows.column("key")[0].as_py()) == {"databaseName": source.name}
    assert (key.name, [each.name for each in key.fields]) == (expected["schema"]["name"], ["databaseName"])


@seed(85, 86, 87, 88, 89, 90)
@pytest.mark.parametrize("query", [None, "15-agent-status-query.sql", "16-agent-status-query-own.sql"])
@pytest.mark.parametrize("runs", [True, False])
def test_the_state_of_the_agent(query: str | None, runs: bool, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    class Answers:
        def value(self, statement: str) -> int:
            asked.append(statement)
            return int(runs)

    own = {} if query is None else {"database.sqlserver.agent.status.query": sample(query.removesuffix(".sql")).strip()}
    check = AgentCheck(resolve({**BASE, "database.user": "u", "database.password": "p", **own}))
    with caplog.at_level(logging.INFO):
        check.look(Answers(), "shop", "00000025:00000d98:00a2")  # type: ignore[arg-type]
        assert asked == [], "it is not asked for where there is an end of the log"
        check.look(Answers(), "shop", "")  # type: ignore[arg-type]
    (statement,) = asked
    if query == "16-agent-status-query-own.sql":
        assert statement == "SELECT [shop].func_is_sql_server_agent_running()"
    else:
        plain = " ".join(statement.replace("[shop].", "").split()).rstrip(";")
        document = " ".join(sample("15-agent-status-query").replace("[#db].", "").split()).rstrip(";")
        assert plain.lower().replace("[", "").replace("]", "") == document.lower().replace("[", "").replace("]", "")
    assert (AGENT_DOWN in caplog.text) != runs
    assert AGENT_DOWN == "No maximum LSN recorded in the database; SQL Server Agent is not running"


@seed(94, 95, 140)
@pytest.mark.parametrize("name", [None, "marks"])
def test_names_of_topics(source: SqlServerSource, name: str | None) -> None:
    given = {} if name is None else {"topic__transaction": name}
    with pipeline(source, **given) as stream:
        assert TopicNaming(stream.config).transaction == f"{SERVER}.{name or 'transaction'}"


@seed(116, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 132, 133, 134, 153)
def test_the_parts_of_an_event(source: SqlServerSource, stream: Stepped) -> None:
    source.run(
        "SET IDENTITY_INSERT customers ON; INSERT INTO customers (id, first_name, last_name, email) "
        "VALUES (1005, 'john', 'doe', 'j@example.org'); SET IDENTITY_INSERT customers OFF"
    )
    source.run("UPDATE customers SET email = 'noreply@example.org' WHERE id = 1005")
    source.run("DELETE FROM customers WHERE id = 1005")
    stream.step()
    *found, tombstone = stream.records
    parts = [(each["part"], each["field"]) for each in sample(20)]
    for record in found:
        assert [(part, field) for part in ("key", "value") for field in record[part]] == parts
        topic = f"{SERVER}.{source.name}.dbo.customers"
        assert (record["key"]["schema"]["name"], record["key"]["schema"]["optional"]) == (f"{topic}.Key", False)
        assert record["key"]["payload"] == {"id": 1005}
        assert record["value"]["schema"]["name"] == f"{topic}.Envelope"
        assert record["value"]["schema"] == found[0]["value"]["schema"]
    create, update, delete = (record["value"]["payload"] for record in found)
    assert [each["op"] for each in (create, update, delete)] == ["c", "u", "d"]
    assert (create["before"], delete["after"]) == (None, None)
    assert update["before"] == create["after"]
    assert delete["before"] == update["after"]
    assert [each["source"]["event_serial_no"] for each in (create, update, delete)] == [1, 2, 1]
    assert (tombstone["key"], tombstone["value"]) == (found[-1]["key"], None)
    assert all(each["ts_ms"] >= each["source"]["ts_ms"] > 0 for each in (create, update, delete))


@seed(118)
def test_names_that_avro_does_not_take(source: SqlServerSource) -> None:
    source.run("CREATE TABLE [odd-name] (id int PRIMARY KEY)")
    enable(source, "odd-name")
    for given, name in (({}, "odd-name"), ({"schema__name__adjustment__mode": "avro"}, "odd_name")):
        with pipeline(source, snapshot__mode="no_data", table__include__list="dbo.odd-name", **given) as stream:
            events(stream, 2)
            source.run("DELETE FROM [odd-name]", "INSERT INTO [odd-name] VALUES (1)")
            stream.step()
            record = stream.records[-1]
            assert record["value"]["schema"]["name"] == f"{SERVER}.{source.name}.dbo.{name}.Envelope"


@seed(131)
def test_a_new_key_is_three_records(source: SqlServerSource, stream: Stepped) -> None:
    source.run("INSERT INTO tablea VALUES (1, 1)")
    stream.step()
    source.run("UPDATE tablea SET id = 2")
    stream.step()
    assert [
        (record["value"] and record["value"]["payload"]["op"], record["key"]["payload"]["id"])
        for record in stream.records
    ] == [("d", 1), (None, 1), ("c", 2)]


@seed(144)
def test_a_default_is_in_the_fields_schema(source: SqlServerSource) -> None:
    source.run("CREATE TABLE defaults (id int PRIMARY KEY, n int NOT NULL DEFAULT 5, t varchar(9) DEFAULT 'x')")
    enable(source, "defaults")
    with pipeline(source, snapshot__mode="no_data", table__include__list="dbo.defaults") as stream:
        events(stream, 2)
        source.run("INSERT INTO defaults (id) VALUES (1)")
        (found,) = events(stream)
        after = next(each for each in stream.records[0]["value"]["schema"]["fields"] if each["field"] == "after")
    assert found["after"] == {"id": 1, "n": 5, "t": "x"}
    assert {each["field"]: each.get("default") for each in after["fields"]} == {"id": None, "n": 5, "t": "x"}


# Declared types with the parts that a catalogue has: precision and scale.
_SCALES = {"DATETIME2": 7, "DATETIMEOFFSET": 7, "TIME": 7, "DATETIME": 3, "SMALLDATETIME": 0}
_SCALES |= {"MONEY": 4, "SMALLMONEY": 4}
_LITERALS = {"float": "FLOAT32", "double": "FLOAT64"}


def typed(declared: str, **properties: str) -> tuple[str, str | None, dict[str, str]]:
    """Literal type, semantic type and parameters of a column."""
    name, _, rest = declared.lower().rstrip(")").partition("(")
    scale = int(rest.rpartition(",")[2]) if rest.isdecimal() else _SCALES.get(name.upper(), 2)
    config = resolve({**BASE, **{key.replace("__", "."): text for key, text in properties.items()}})
    found = value_type(SqlType(name, 10, 10, scale), config)
    assert found is not None, declared
    literal = _LITERALS.get(found.schema.type, found.schema.type.upper())
    return literal, found.schema.name, dict(found.schema.parameters or ())


@seed(142, 143)
def test_the_table_of_basic_types() -> None:
    for row in sample(31):
        literal, semantic, _ = typed(row["type"])
        expected = None if row["type"] == "XML" else row["semantic"]
        assert (literal, None if row["type"] == "XML" else semantic) == (row["literal"], expected), row["type"]


@seed(145, 146)
def test_the_table_of_temporal_types() -> None:
    for row in sample(32):
        assert typed(row["type"])[:2] == (row["literal"], row["semantic"]), row["type"]
    for mode in ("adaptive", "connect"):
        assert typed("DATETIMEOFFSET", time__precision__mode=mode)[:2] == ("STRING", "io.debezium.time.ZonedTimestamp")


@seed(147)
def test_the_table_of_kafkas_temporal_types() -> None:
    for row in sample(33):
        assert typed(row["type"], time__precision__mode="connect")[:2] == (row["literal"], row["semantic"])


@seed(148, 149)
def test_a_time_without_a_zone_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sample(29)
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        found = value_type(SqlType("datetime2", 8, 26, 6), resolve(BASE))
        assert found is not None
        assert found.schema.name == expected["schema"]
        assert found.convert(pa.array([expected["value"]]))[0].as_py() == expected["payload"]


@seed(150, 151, 152)
def test_the_tables_of_decimal_types() -> None:
    for row in sample(30):
        literal, semantic, parameters = typed(row["type"], decimal__handling__mode=row["decimal.handling.mode"])
        assert (literal, semantic) == (row["literal"], row["semantic"]), row
        assert set(row.get("parameters") or ()) <= set(parameters)
    for mode, literal in (("double", "FLOAT64"), ("string", "STRING")):
        for name in ("NUMERIC", "DECIMAL", "SMALLMONEY", "MONEY"):
            assert typed(name, decimal__handling__mode=mode)[0] == literal


@seed(91, 98, 103)
def test_the_page_has_the_promised_statements() -> None:
    page = (DOCS / "connectors" / "sqlserver.md").read_text(encoding="utf-8").lower()
    for word in ("indexed views", "an administrator creates a second one", "may change with a release"):
        assert word in page, word


@seed(135, 136, 137, 138, 139, 141)
def test_the_samples_of_a_transaction(source: SqlServerSource, stream: Stepped) -> None:
    source.run("INSERT INTO tablea VALUES (2, 1)", "INSERT INTO tableb VALUES (2, 1)")
    source.settle()
    tracker = TransactionTracker(TopicNaming(stream.config), stream._block)
    start, end = stream.offset, stream.capture.head(stream.offset, None)
    found: list[Any] = []
    marks: list[Any] = []
    for split in stream.capture.plan(start, end):
        for chunk in stream.capture.read(split):
            batches, control = tracker.track(chunk.batches, chunk.marks)
            found += [row for batch in batches for row in batch.rows.column("transaction").to_pylist()]
            marks += [] if control is None else control.rows.column("value").to_pylist()
    begin, last = (json.loads(mark)["payload"] if "payload" in mark else json.loads(mark) for mark in marks)
    lsn = begin["id"]
    for told, expected in ((begin, sample(26)), (last, sample(27))):
        assert set(told) == set(expected)
        assert (told["status"], told["event_count"], told["id"]) == (expected["status"], expected["event_count"], lsn)
    assert last["data_collections"] == [
        {"data_collection": f"{source.name}.dbo.{table}", "event_count": 1} for table in ("tablea", "tableb")
    ]
    enriched = sample(28)["transaction"]
    assert found[0] == {**{name: int(value) for name, value in enriched.items() if name != "id"}, "id": lsn}
    assert [(each["total_order"], each["data_collection_order"]) for each in found] == [(1, 1), (2, 1)]


def test_each_requirement_is_named_by_a_test(request: pytest.FixtureRequest) -> None:
    folder = Path(__file__).parent
    items = [item for item in request.session.items if item.path.parent == folder and "sqlserver" in item.path.name]
    named = {name for item in items for mark in item.iter_markers("seed") for name in mark.args}
    if len({item.path for item in items}) == 3:
        wanted = {f"S004-{number:02}" for number in range(1, DEMANDS + 1)}
        assert sorted(wanted - named) == []
