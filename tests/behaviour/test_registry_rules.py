"""A real registry while tables change: rules, subjects that are deleted, restarts, and schemas in other languages."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest

from tailrace.config.topics import TopicNaming
from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import SinkError
from tailrace.events.envelope import envelope
from tailrace.events.registry import http
from tailrace.events.registry.form import registry_form
from tailrace.events.registry.registry import forget
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tests.behaviour.avro_records import confluent, datum, encoded, read
from tests.servers.registry import Registry
from tests.unit.events.changes import changes
from tests.unit.events.event_recordings import configured

CONFLUENT_JSON = "io.confluent.connect.json.JsonSchemaConverter"
APICURIO_JSON = "io.apicurio.registry.utils.converter.ExtJsonConverter"
CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"


@pytest.fixture(autouse=True)
def cold() -> None:
    """No test has the ids of another."""
    forget()


def named() -> str:
    """A name of a table that no test has used."""
    return f"t{uuid4().hex[:12]}"


def column(name: str, kind: str = "string", optional: bool = True, default: Any = None) -> Column:
    types = {"string": pa.string(), "int32": pa.int32(), "int64": pa.int64()}
    return Column(name, ConnectSchema(kind, optional, default=default), types[kind])


ID, CODE, NOTE = column("id", "int32", False), column("code", optional=False), column("note")


def created(name: str, *columns: Column) -> Any:
    """A create of a row of a table with these columns beside `id`."""
    all_columns = (ID, *columns)
    table = TableSchema(
        TableId("golden", "public", name), all_columns, ("id",), tuple(each.name for each in all_columns)
    )
    values = {each.name: 1 if each.schema.type != "string" else "1" for each in all_columns}
    return changes(table, {"op": "c", "after": values})


# What a table of `code text NOT NULL, note text, size int` becomes, and the rules that allow it.
SIZE = column("size", "int32")
ALTERED: dict[str, tuple[tuple[Column, ...], set[str]]] = {
    "a nullable column is added": ((CODE, NOTE, SIZE, column("more")), {"BACKWARD", "FORWARD", "FULL"}),
    "a column with a default is added": (
        (CODE, NOTE, SIZE, column("more", optional=False, default="x")),
        {"BACKWARD", "FORWARD", "FULL"},
    ),
    "a NOT NULL column is added": ((CODE, NOTE, SIZE, column("more", optional=False)), {"FORWARD"}),
    "a nullable column is dropped": ((CODE, SIZE), {"BACKWARD", "FORWARD", "FULL"}),
    "a NOT NULL column is dropped": ((NOTE, SIZE), {"BACKWARD"}),
    "a nullable column is renamed": ((CODE, column("remark"), SIZE), {"BACKWARD", "FORWARD", "FULL"}),
    "a NOT NULL column is renamed": ((column("label", optional=False), NOTE, SIZE), set()),
    "a number becomes wider": ((CODE, NOTE, column("size", "int64")), {"BACKWARD"}),
    "a number becomes a text": ((CODE, NOTE, column("size")), set()),
}


@pytest.mark.parametrize(
    "rule", ["BACKWARD", pytest.param("FORWARD", marks=pytest.mark.long), pytest.param("FULL", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("alteration", ALTERED)
def test_what_a_rule_allows(registry: Registry, alteration: str, rule: str) -> None:
    """What is allowed is a new version; what is not stops with the rule, and goes on once it is another one."""
    columns, allowing = ALTERED[alteration]
    name, properties = named(), confluent(registry)
    topic = encoded(created(name, CODE, NOTE, SIZE), properties)[0]["topic"]
    subject = f"/subjects/{topic}-value/versions"
    registry.ask("PUT", f"/config/{topic}-value", {"compatibility": rule})
    if rule not in allowing:
        with pytest.raises(SinkError) as caught:
            encoded(created(name, *columns), properties)
        assert caught.value.where == f"subject {topic}-value, rule {rule}"
        assert registry.ask("GET", subject) == [1]
        assert encoded(created(name, CODE, NOTE, SIZE), properties)  # rows of before need nothing new
        registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "NONE"})
    (record,) = encoded(created(name, *columns), properties)
    assert registry.ask("GET", subject) == [1, 2]
    assert set(read(registry, record["value"])["after"]) == {"id", *(each.name for each in columns)}


def test_a_subject_that_is_deleted_is_registered_again_by_a_restart(registry: Registry) -> None:
    name, properties = named(), confluent(registry)
    (before,) = encoded(created(name, CODE), properties)
    subject = f"{before['topic']}-value"
    registry.ask("DELETE", f"/subjects/{subject}")
    assert "error_code" in registry.ask("GET", f"/subjects/{subject}/versions")
    # A process that has the id needs no registry.
    (same,) = encoded(created(name, CODE), properties)
    assert same["value"][:5] == before["value"][:5]
    assert "error_code" in registry.ask("GET", f"/subjects/{subject}/versions")
    forget()
    (again,) = encoded(created(name, CODE), properties)
    assert len(registry.ask("GET", f"/subjects/{subject}/versions")) == 1
    assert read(registry, again["value"])["after"] == {"id": 1, "code": "1"}


def test_a_new_version_of_a_deleted_subject_is_registered_while_running(registry: Registry) -> None:
    name, properties = named(), confluent(registry)
    (before,) = encoded(created(name, CODE), properties)
    registry.ask("DELETE", f"/subjects/{before['topic']}-value")
    (after,) = encoded(created(name, CODE, NOTE), properties)
    assert read(registry, after["value"])["after"] == {"id": 1, "code": "1", "note": "1"}


def test_a_restart_asks_once_for_each_subject_and_has_the_same_ids(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = http.RegistryConnection.ask

    def counted(self: http.RegistryConnection, method: str, path: str, *more: Any, **others: Any) -> Any:
        asked.append(f"{method} {path}")
        return ask(self, method, path, *more, **others)

    tables, properties = [named() for _ in range(3)], confluent(registry)
    before = [encoded(created(each, CODE), properties) for each in tables]
    monkeypatch.setattr(http.RegistryConnection, "ask", counted)
    assert [encoded(created(each, CODE), properties) for each in tables]
    assert asked == []
    forget()
    after = [encoded(created(each, CODE), properties) for each in tables]
    assert len(asked) == 2 * len(tables)
    assert [[each["key"], each["value"][:5]] for (each,) in before] == [[e["key"], e["value"][:5]] for (e,) in after]


def of_both(kind: str, **own: str) -> dict[str, str]:
    both = {f"{part}.converter": kind for part in ("key", "value")}
    settings = {name.replace("__", "."): value for name, value in own.items()}
    return both | {f"{part}.converter.{name}": each for part in ("key", "value") for name, each in settings.items()}


def test_json_schemas_are_registered_as_such_and_each_change_is_a_version(registry: Registry) -> None:
    name, properties = named(), of_both(CONFLUENT_JSON, schema__registry__url=registry.confluent)
    (record,) = encoded(created(name, CODE), properties)
    topic = record["topic"]
    for part, subject in (("key", f"{topic}-key"), ("value", f"{topic}-value")):
        latest = registry.ask("GET", f"/subjects/{subject}/versions/latest")
        assert latest["schemaType"] == "JSON"
        assert record[part][:5] == b"\x00" + latest["id"].to_bytes(4, "big")
    schema = json.loads(registry.schema(int.from_bytes(record["value"][1:5], "big")))
    assert schema["title"] == f"{topic}.Envelope"
    assert json.loads(record["value"][5:])["after"] == {"id": 1, "code": "1"}
    forget()
    assert encoded(created(name, CODE), properties)[0]["value"][:5] == record["value"][:5]
    registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "NONE"})
    encoded(created(name, CODE, NOTE), properties)
    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1, 2]


def test_a_json_schema_that_a_rule_forbids_names_the_change(registry: Registry) -> None:
    name, properties = named(), of_both(CONFLUENT_JSON, schema__registry__url=registry.confluent)
    topic = encoded(created(name, CODE, SIZE), properties)[0]["topic"]
    registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "BACKWARD"})
    with pytest.raises(SinkError, match=r"before.size was integer and is string") as caught:
        encoded(created(name, CODE, column("size")), properties)
    assert caught.value.where == f"subject {topic}-value, rule BACKWARD"


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_apicurios_json_names_its_schema_by_an_id(registry: Registry, version: str) -> None:
    url = f"{registry.base}/apis/registry/{version}"
    own = {"apicurio__registry__url": url, "apicurio__registry__auto-register": "true"}
    (record,) = encoded(created(named(), CODE), of_both(APICURIO_JSON, **own))
    found = json.loads(record["value"])
    assert found["payload"]["after"] == {"id": 1, "code": "1"}
    kind = {"v2": "globalIds", "v3": "contentIds"}[version]
    schema = httpx.get(f"{registry.base}/apis/registry/v3/ids/{kind}/{found['schemaId']}", timeout=30).json()
    assert (schema["type"], schema["name"]) == ("struct", f"{record['topic']}.Envelope")
    path = f"{registry.base}/apis/registry/v3/groups/default/artifacts/{record['topic']}-value"
    assert httpx.get(path, timeout=30).json()["artifactType"] == "KCONNECT"


def test_cloud_events_in_avro_say_where_the_schema_of_their_data_is(registry: Registry) -> None:
    own = {
        "serializer.type": "avro",
        "data.serializer.type": "avro",
        "avro.schema.registry.url": registry.confluent,
    }
    properties = {"value.converter": CLOUD_EVENTS, **{f"value.converter.{name}": each for name, each in own.items()}}
    (record,) = encoded(created(named(), CODE), properties)
    event = read(registry, record["value"])
    assert event["type"] == "io.debezium.connector.postgresql.DataChangeEvent"
    schema = httpx.get(event["dataschema"], timeout=30).json()["schema"]
    assert datum(schema, event["data"][5:]) == {"before": None, "after": {"id": 1, "code": "1"}}
    assert registry.ask("GET", f"/subjects/{record['topic']}-data-value/versions") == [1]


def test_a_check_says_what_a_transitive_rule_refuses_of_an_older_version(registry: Registry) -> None:
    """A column without a default is compatible with the latest version, where it had one, and not with the first."""
    name, properties = named(), confluent(registry)
    topic = encoded(created(name, CODE), properties)[0]["topic"]
    with_default = (CODE, column("part", "int32", False, 1))
    encoded(created(name, *with_default), properties)
    form = registry_form(configured({**properties, "schema.name.adjustment.mode": "avro"}), "value")
    naming = TopicNaming(configured(properties))
    (batch,) = [created(name, CODE, column("part", "int32", False))]
    wanted = form.wanted(envelope(batch.table, naming, SOURCE).value, topic)
    for rule, is_refused in (("BACKWARD", False), ("BACKWARD_TRANSITIVE", True)):
        registry.ask("PUT", f"/config/{topic}-value", {"compatibility": rule})
        refusal = form.registry.refusal(wanted)
        assert (refusal is not None) is is_refused
    assert refusal is not None
    assert refusal.where == f"subject {topic}-value, rule BACKWARD_TRANSITIVE"
    with pytest.raises(SinkError, match="the schema registry refuses the schema"):
        form.registry.id(wanted)
