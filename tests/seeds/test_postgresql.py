"""The requirements of PostgreSQL's specification, S003-1 to S003-104: each test names those that it verifies.

The samples are the specification's. Where it is wrong (quoted numbers, a wrong schema part in a name, `snapshot` true
on a create), the intended form is tested; `current` is the current superset, `1.7` the format of that release.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors.postgres.options import COMPATIBILITY
from tests.behaviour.capture import Capture, capturing
from tests.conftest import Database
from tests.seeds.postgresql import (
    BASE,
    DELETE,
    DEMANDS,
    INSERT,
    UPDATE,
    Record,
    payloads,
    records,
    sample,
)


def fields(schema: Record) -> dict[str, Record]:
    """A struct's fields by name, in order."""
    return {field["field"]: field for field in schema["fields"]}


def subset(expected: Any, found: Any) -> None:
    """Every field of the sample is there with its value, whatever else there is."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            subset(value, found[name])
    else:
        assert found == expected


def without_volatile(payload: Record, *more: str) -> Record:
    """A sample's payload without positions, times, and what the document slipped in."""
    dropped = ("version", "ts_ms", "txId", "lsn", "db", "snapshot", "sequence", *more)
    source = {name: value for name, value in payload["source"].items() if name not in dropped}
    return {**{name: value for name, value in payload.items() if name != "ts_ms"}, "source": source}


@pytest.mark.seed(
    "S003-01", "S003-02", "S003-03", "S003-05", "S003-08", "S003-10", "S003-18", "S003-37", "S003-66", "S003-82"
)
def test_one_event_a_change_with_key_and_value(database: Database, capture: Capture) -> None:
    parts = {(item["part"], item["field"]) for item in sample(1)}
    database.execute(INSERT, UPDATE, DELETE)
    found = [record for record in records(capture) if record["value"] is not None]
    assert [payload["op"] for payload in payloads(found)] == ["c", "u", "d"]
    for record in found:
        assert {(part, name) for part in ("key", "value") for name in record[part]} == parts
    assert found[0]["value"]["schema"] == found[1]["value"]["schema"] == found[2]["value"]["schema"]


@pytest.mark.seed("S003-05", "S003-49")
@pytest.mark.parametrize("side", ["key", "value"])
def test_the_converter_leaves_schemas_out(database: Database, side: str) -> None:
    database.execute(sample(2))
    settings = {f"{side}__converter__schemas__enable": "false"}
    with capturing(database, **BASE, **settings) as capture:
        capture.step()
        database.execute(INSERT)
        (record,) = records(capture)
    other = "value" if side == "key" else "key"
    assert set(record[other]) == {"schema", "payload"}
    assert "payload" not in record[side]
    assert len(json.dumps(record[side])) < 1000


@pytest.mark.seed("S003-04")
def test_a_registry_without_its_address_is_refused_with_a_sentence(database: Database) -> None:
    from tailrace.errors import ConfigError

    settings = {"value__converter": "io.confluent.connect.avro.AvroConverter"}
    said = r"value\.converter\.schema\.registry\.url: A value is required"
    with pytest.raises(ConfigError, match=said), capturing(database, **BASE, **settings):
        pass


@pytest.mark.seed(
    *("S003-06", "S003-16", "S003-19", "S003-20"),
    *("S003-22", "S003-23", "S003-25", "S003-26", "S003-42"),
)
def test_the_sample_key(database: Database, capture: Capture, era: str) -> None:
    database.execute(INSERT, UPDATE)
    first, second = records(capture)
    printed, meant = sample(3), sample(4)
    assert first["key"] == second["key"]
    assert first["key"]["payload"] == meant["payload"]
    assert first["key"]["schema"]["name"] == meant["schema"]["name"] == printed["schema"]["name"]
    assert first["key"]["schema"]["optional"] is meant["schema"]["optional"] is False
    (field,) = first["key"]["schema"]["fields"]
    subset(meant["schema"]["fields"][0], field)
    assert printed["schema"]["fields"][0]["schema"]["type"].lower() == field["type"]


@pytest.mark.seed("S003-07", "S003-27")
def test_message_key_columns_and_filters_of_columns(database: Database) -> None:
    database.execute(sample(2))
    settings = {
        "message__key__columns": r"public\.customers:email,first_name",
        "column__exclude__list": r"public\.customers\.email",
    }
    with capturing(database, **BASE, **settings) as capture:
        capture.step()
        database.execute(INSERT)
        (record,) = records(capture)
    assert list(record["key"]["payload"]) == ["email", "first_name"]
    assert list(fields(record["key"]["schema"])) == ["email", "first_name"]
    assert list(record["value"]["payload"]["after"]) == ["id", "first_name", "last_name"]


@pytest.mark.seed("S003-09", "S003-39", "S003-40", "S003-41", "S003-43", "S003-46", "S003-47")
def test_the_schemas_of_a_value(database: Database, capture: Capture, era: str) -> None:
    database.execute(INSERT)
    schema = records(capture)[0]["value"]["schema"]
    assert schema["name"] == "PostgreSQL_server.public.customers.Envelope"
    assert schema["optional"] is False
    assert schema.get("version") == (None if era == "1.7" else 2)
    value = fields(schema)
    for image in ("before", "after"):
        assert value[image]["name"] == "PostgreSQL_server.public.customers.Value"
        assert value[image]["optional"] is True
        assert list(fields(value[image])) == ["id", "first_name", "last_name", "email"]
    assert value["source"]["name"] == "io.debezium.connector.postgresql.Source"
    assert value["source"]["optional"] is False
    assert (value["op"]["optional"], value["ts_ms"]["optional"]) == (False, True)
    assert (value["op"]["type"], value["ts_ms"]["type"]) == ("string", "int64")


@pytest.mark.seed(
    "S003-44",
    "S003-45",
    "S003-48",
    "S003-53",
    "S003-54",
    "S003-55",
    "S003-56",
    "S003-57",
    "S003-58",
    "S003-59",
    "S003-60",
    "S003-61",
)
def test_the_source_of_the_sample(database: Database, capture: Capture, era: str) -> None:
    expected = {field["field"]: field for field in fields(sample(5)["schema"])["source"]["fields"]}
    database.execute(INSERT)
    (record,) = records(capture)
    found = fields(fields(record["value"]["schema"])["source"])
    assert [name for name in found if name in expected] == list(expected)
    for name, field in expected.items():
        if name != "snapshot" or era == "1.7":
            assert found[name] == field
    if era == "1.7":
        assert list(found) == [*list(expected)[:6], "sequence", *list(expected)[6:]]
    source = record["value"]["payload"]["source"]
    assert (source["connector"], source["name"]) == ("postgresql", "PostgreSQL_server")
    assert (source["schema"], source["table"], source["db"]) == ("public", "customers", database.name)
    assert source["snapshot"] == (False if era == "1.7" else "false")
    assert source["xmin"] is None
    before, current = json.loads(source["sequence"])
    assert (before, current) == (None, str(source["lsn"]))
    assert source["version"]
    assert source["txId"] > 0
    assert source["ts_ms"] > 1_600_000_000_000


@pytest.mark.seed("S003-38", "S003-42", "S003-50", "S003-51", "S003-52", "S003-62", "S003-63")
def test_the_sample_create(database: Database, capture: Capture, era: str) -> None:
    expected = sample(5)
    database.execute(INSERT)
    (record,) = records(capture)
    subset(without_volatile(expected["payload"]), record["value"]["payload"])
    columns, meant = (fields(fields(schema)["after"]) for schema in (record["value"]["schema"], expected["schema"]))
    for name, field in meant.items():
        subset(field, columns[name])
    # The document's own shape: nothing more than it shows, but the default of a serial column.
    if era == "1.7":
        assert list(fields(record["value"]["schema"])) == list(fields(expected["schema"]))
        assert record["headers"] == {}


@pytest.mark.seed(
    *("S003-30", "S003-31", "S003-67", "S003-68"),
    *("S003-69", "S003-71", "S003-72", "S003-73", "S003-74"),
)
def test_the_sample_update(database: Database, capture: Capture, era: str) -> None:
    expected = sample(6)["payload"]
    database.execute(INSERT, UPDATE)
    payload = payloads(records(capture))[1]
    before = expected.pop("before")
    subset(without_volatile(expected), payload)
    if era == "1.7":
        assert payload["before"]["id"] == before["id"]
        assert (payload["before"]["first_name"], payload["source"]["snapshot"]) == ("", False)
    else:
        assert payload["before"] is None
        assert payload["source"]["snapshot"] == "false"


@pytest.mark.seed("S003-83", "S003-84", "S003-85", "S003-86", "S003-87", "S003-88", "S003-89", "S003-91")
def test_the_sample_delete(database: Database, capture: Capture, era: str) -> None:
    expected = sample(7)["payload"]
    database.execute(INSERT, DELETE)
    payload = payloads(records(capture))[1]
    before = expected.pop("before")
    subset(without_volatile(expected), payload)
    assert payload["before"]["id"] == before["id"]
    assert payload["before"]["email"] == ""
    assert payload["source"]["snapshot"] == (False if era == "1.7" else "false")


@pytest.mark.seed("S003-94", "S003-95")
def test_a_tombstone_follows_a_delete(database: Database, capture: Capture) -> None:
    database.execute(INSERT, DELETE)
    created, deleted, tombstone = records(capture)
    assert tombstone["value"] is None
    assert tombstone["key"] == deleted["key"] == created["key"]


@pytest.mark.seed("S003-96", "S003-97", "S003-98", "S003-99", "S003-100", "S003-101", "S003-102", "S003-103")
def test_the_sample_truncate(database: Database, capture: Capture, era: str) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)", "TRUNCATE customers, orders")
    found = records(capture)
    assert sorted(payload["source"]["table"] for payload in payloads(found)) == ["customers", "orders"]
    customers = next(record for record in found if record["value"]["payload"]["source"]["table"] == "customers")
    assert customers["key"] is None
    subset(without_volatile(sample(8)["payload"]), customers["value"]["payload"])
    assert customers["value"]["payload"]["before"] is customers["value"]["payload"]["after"] is None
    assert customers["value"]["payload"]["source"]["snapshot"] == (False if era == "1.7" else "false")
    assert customers["value"]["payload"]["ts_ms"] > 0


@pytest.mark.seed("S003-104")
def test_the_order_of_truncates_is_documented() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "docs").rglob("*.md")]
    paragraphs = [paragraph.lower() for page in pages for paragraph in page.split("\n\n")]
    assert any(all(word in paragraph for word in ("truncate", "order", "partition")) for paragraph in paragraphs)


@pytest.mark.seed("S003-64", "S003-65", "S003-75", "S003-90")
def test_the_time_fields_give_the_lag(database: Database, capture: Capture) -> None:
    database.execute(INSERT, UPDATE, DELETE)
    found = [payload for payload in payloads(records(capture)) if payload is not None]
    assert len(found) >= 3
    assert all(0 <= payload["ts_ms"] - payload["source"]["ts_ms"] < 60_000 for payload in found)


@pytest.mark.parametrize("op", ["c", "u", "d", "r"])
@pytest.mark.seed("S003-63")
def test_operations(database: Database, capture: Capture, op: str) -> None:
    database.execute(INSERT, UPDATE, DELETE, INSERT)
    if op != "r":
        assert op in [payload["op"] for payload in payloads(records(capture)) if payload]
        return
    with capturing(database, compat__version=capture.config[COMPATIBILITY], slot__name="read") as reading:
        (payload,) = payloads(records(reading))
    assert payload["op"] == "r"
    assert payload["source"]["snapshot"] in (True, "last")


def test_each_requirement_is_named_by_a_test(request: pytest.FixtureRequest) -> None:
    files = set(Path(__file__).parent.glob("test_postgresql*.py"))
    named = {
        name
        for item in request.session.items
        if item.path in files
        for mark in item.iter_markers("seed")
        for name in mark.args
    }
    if files <= {item.path for item in request.session.items}:
        assert {f"S003-{number:02}" for number in range(1, DEMANDS + 1)} <= named
