"""The sample events of the specification of SQL Server, in their own format and in the current one.

Where it is wrong (a boolean `snapshot` in the schema, quoted numbers, swapped parts of names), the intended form is
tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors.sqlserver.options import COMPAT_VERSION
from tests.behaviour.stepping import Record, Stepped, stepping
from tests.conformance.sqlserver import SqlServerSource
from tests.servers.sqlserver.server import SqlServer

SAMPLES = Path(__file__).parent / "samples"
ERAS = ("current", "2.3")
NAME = "seed4"
TOPIC = f"server1.{NAME}.dbo.customers"
INSERT = (
    "SET IDENTITY_INSERT customers ON; INSERT INTO customers (id, first_name, last_name, email) "
    "VALUES (1005, 'john', 'doe', 'john.doe@example.org'); SET IDENTITY_INSERT customers OFF"
)
UPDATE = "UPDATE customers SET email = 'noreply@example.org' WHERE id = 1005"
DELETE = "DELETE FROM customers WHERE id = 1005"


def sample(number: int) -> Any:
    """A sample of the document."""
    (path,) = SAMPLES.glob(f"004-{number:02}-*")
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


@pytest.fixture(scope="module")
def source(sqlserver: SqlServer) -> Iterator[SqlServerSource]:
    """The document's database with its table."""
    source = SqlServerSource(sqlserver, NAME)
    source.run(sample(21))
    enable = "EXEC sys.sp_cdc_enable_table @source_schema = 'dbo', @source_name = 'customers', @role_name = NULL"
    source.run(enable)
    yield source
    source.close()


@pytest.fixture(params=ERAS)
def stream(source: SqlServerSource, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    """A pipeline over the document's table in each shape of records."""
    source.run("DELETE FROM customers")
    source.settle()
    given = {"topic__prefix": "server1", "table__include__list": r"dbo\.customers", "snapshot__mode": "no_data"}
    with stepping("sqlserver", source, compat__version=request.param, **given) as stream:
        yield stream


def is_old(stream: Stepped) -> bool:
    return stream.config[COMPAT_VERSION] == "2.3"


def fields(schema: Record) -> dict[str, Record]:
    """A struct's fields by name, in order."""
    return {field["field"]: field for field in schema["fields"]}


def test_the_schemas_of_the_sample(source: SqlServerSource, stream: Stepped) -> None:
    source.run(INSERT)
    stream.step()
    (record,) = stream.records
    schema, expected = record["value"]["schema"], sample(23)["schema"]
    assert (schema["name"], schema["optional"]) == (f"{TOPIC}.Envelope", False)
    own, theirs = fields(schema), fields(expected)
    for image in ("before", "after"):
        columns = fields(own[image])
        assert own[image]["name"] == f"{TOPIC}.Value"
        assert columns == fields(theirs[image])
    names, known = fields(own["source"]), fields(theirs["source"])
    assert own["source"]["name"] == "io.debezium.connector.sqlserver.Source"
    assert {name: field for name, field in names.items() if name in known and name != "snapshot"} == {
        name: field for name, field in known.items() if name != "snapshot"
    }
    if is_old(stream):
        assert list(own) == list(theirs)
        assert list(names) == list(known)
        assert names["snapshot"]["parameters"] == {"allowed": "true,last,false,incremental"}
    assert bool(record["headers"]) != is_old(stream)
    assert record["key"]["payload"] == sample(22)["payload"] | {"id": 1005}


def test_the_samples_of_changes(source: SqlServerSource, stream: Stepped) -> None:
    source.run(INSERT)
    source.run(UPDATE)
    source.run(DELETE)
    stream.step()
    *events, tombstone = stream.records
    for number, record in zip((23, 24, 25), events, strict=True):
        found, expected = record["value"]["payload"], sample(number)["payload"]
        assert [found[name] for name in ("op", "before", "after")] == [
            expected.get(name) for name in ("op", "before", "after")
        ]
        of_source = {**expected["source"], "db": NAME, "snapshot": "false"}
        volatile = ("version", "ts_ms", "change_lsn", "commit_lsn")
        of_source["event_serial_no"] = int(of_source["event_serial_no"])
        for name, value in of_source.items():
            assert name in volatile or found["source"][name] == value, name
        if is_old(stream):
            assert list(found["source"]) == list(of_source)
    assert (tombstone["value"], tombstone["key"]) == (None, events[-1]["key"])


@pytest.mark.parametrize(("era", "places"), [("current", ["first", "true", "last"]), ("2.3", ["true", "true", "last"])])
def test_places_in_a_snapshot(source: SqlServerSource, era: str, places: list[str]) -> None:
    rows = ", ".join(f"('a', 'b', 'c{number}')" for number in range(3))
    source.run("DELETE FROM customers", f"INSERT INTO customers (first_name, last_name, email) VALUES {rows}")
    given = {"topic.prefix": "server1", "table.include.list": r"dbo\.customers", "compat.version": era}
    stream = Stepped("sqlserver", source, given)
    try:
        found = [*stream.step()[0], *stream.step()[0]]
        assert [each["source"]["snapshot"] for each in found] == places
    finally:
        stream.close()
