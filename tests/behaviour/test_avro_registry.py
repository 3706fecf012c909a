"""Avro converters and a real schema registry: ids, subjects, registration, refusals, and a registry that is away."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
import threading
import time
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, SinkAwayError, SinkError
from tailrace.events.parts import text_of
from tailrace.events.payload import array, from_json
from tailrace.events.records import RecordPart
from tailrace.events.registry import http
from tailrace.events.registry.form import registry_form
from tailrace.events.registry.registry import forget
from tailrace.model.schema import ConnectSchema
from tests.behaviour.avro_records import APICURIO, apicurio, confluent, datum, encoded, read, whole
from tests.servers.registry import Registry
from tests.unit.events.changes import changes, table
from tests.unit.events.event_recordings import configured
from tests.unit.events.test_avro_recordings import RECORDED

IMAGE = {"id": 1, "code": "a", "note": None}


@pytest.fixture(autouse=True)
def cold() -> None:
    """No test has the ids of another."""
    forget()


def batch(name: str) -> Any:
    """A create, an update and a delete of a table of that name."""
    other = {**IMAGE, "note": "n"}
    rows = [
        {"op": "c", "after": IMAGE},
        {"op": "u", "before": IMAGE, "after": other},
        {"op": "d", "before": other},
    ]
    return changes(table(name), *rows)


def named() -> str:
    """A name of a table that no test has used."""
    return f"t{uuid4().hex[:12]}"


def test_records_have_the_ids_of_their_schemas_and_fastavro_reads_them(registry: Registry) -> None:
    name = named()
    records = encoded(batch(name), confluent(registry))
    assert [read(registry, each["key"]) for each in records] == [{"id": 1}] * 4
    values = [read(registry, each["value"]) for each in records]
    assert [value and value["op"] for value in values] == ["c", "u", "d", None]
    assert values[1]["before"] == IMAGE
    assert values[1]["after"] == {**IMAGE, "note": "n"}
    assert values[2]["after"] is None
    assert values[0]["source"]["table"] == name
    topic = records[0]["topic"]
    assert {f"{topic}-key", f"{topic}-value"} <= set(registry.ask("GET", "/subjects"))


def test_a_schema_is_asked_for_once_in_a_process(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = http.RegistryConnection.ask

    def counted(
        self: http.RegistryConnection, method: str, path: str, *more: Any, **named: Any
    ) -> http.RegistryResponse:
        asked.append(path)
        return ask(self, method, path, *more, **named)

    monkeypatch.setattr(http.RegistryConnection, "ask", counted)
    name = named()
    for _ in range(3):
        encoded(batch(name), confluent(registry))
    assert len(asked) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "key", "value"),
    [
        ("TopicNameStrategy", "{topic}-key", "{topic}-value"),
        ("RecordNameStrategy", "{topic}.Key", "{topic}.Envelope"),
        ("TopicRecordNameStrategy", "{topic}-{topic}.Key", "{topic}-{topic}.Envelope"),
    ],
)
def test_subjects_are_named_by_the_strategy(registry: Registry, strategy: str, key: str, value: str) -> None:
    full = f"io.confluent.kafka.serializers.subject.{strategy}"
    own = {"key.converter.key.subject.name.strategy": full, "value.converter.value.subject.name.strategy": full}
    records = encoded(batch(named()), {**confluent(registry), **own})
    subjects = registry.ask("GET", "/subjects")
    assert {key.format(topic=records[0]["topic"]), value.format(topic=records[0]["topic"])} <= set(subjects)


@pytest.mark.long
def test_a_record_name_strategy_needs_records(registry: Registry) -> None:
    own = {
        "key.converter.key.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        "transforms": "key",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.key.field": "id",
    }
    with pytest.raises(SinkError, match="the key is no record"):
        encoded(batch(named()), {**confluent(registry), **own})


def test_a_schema_that_a_rule_forbids_names_subject_rule_and_change(registry: Registry) -> None:
    name = named()
    topic = encoded(batch(name), confluent(registry))[0]["topic"]
    registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "BACKWARD"})
    masked = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
    with pytest.raises(SinkError) as caught:
        encoded(batch(name), {**confluent(registry), **masked})
    assert caught.value.where == f"subject {topic}-value, rule BACKWARD"
    assert "before is dropped" in caught.value.what
    assert "id is added" in caught.value.what
    assert "set another rule" in (caught.value.remedy or "")


def test_a_name_that_the_registry_does_not_take_is_told_with_the_setting(registry: Registry) -> None:
    with pytest.raises(SinkError, match=r"Avro does not allow the name a-b.public.t") as caught:
        encoded(batch("t"), {**confluent(registry), "topic.prefix": "a-b"})
    assert "schema.name.adjustment.mode=avro" in (caught.value.remedy or "")


def test_without_registration_a_schema_has_to_be_there(registry: Registry) -> None:
    name = named()
    properties = confluent(registry, auto__register__schemas="false")
    with pytest.raises(SinkError, match="is not registered") as caught:
        encoded(batch(name), properties)
    assert "auto.register.schemas=true" in (caught.value.remedy or "")
    before = encoded(batch(name), confluent(registry))
    forget()
    after = encoded(batch(name), properties)
    assert [each["key"] for each in after] == [each["key"] for each in before]


def test_the_latest_version_is_used_where_the_records_have_its_layout(registry: Registry) -> None:
    name = named()
    latest = confluent(registry, auto__register__schemas="false", use__latest__version="true")
    topic = encoded(batch(name), confluent(registry, connect__meta__data="false"))[0]["topic"]
    forget()
    record = encoded(batch(name), latest)[0]
    assert "connect.name" not in registry.schema(int.from_bytes(record["value"][1:5], "big"))
    assert read(registry, record["value"])["after"] == IMAGE
    forget()
    registry.ask("POST", f"/subjects/{topic}-value/versions", {"schema": '{"type":"record","name":"x","fields":[]}'})
    with pytest.raises(SinkError, match=r"do not have the layout of the latest version.*before is added"):
        encoded(batch(name), latest)


def test_a_registry_that_is_away_is_waited_for_and_told(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http, "_FIRST_PAUSE", 0.05)
    caplog.set_level(logging.INFO)
    away = {**confluent(registry), "key.converter.schema.registry.url": "http://127.0.0.1:9"}
    client = http.RegistryConnection(http.Address(("http://127.0.0.1:9",)), patience_seconds=0.3)
    with pytest.raises(SinkAwayError, match="the schema registry does not answer"):
        client.ask("GET", "/subjects")
    client.close()
    assert "http://127.0.0.1:9 does not answer, waiting" in caplog.text
    # Another address of the list answers.
    away["key.converter.schema.registry.url"] = f"http://127.0.0.1:9,{registry.confluent}"
    assert encoded(batch(named()), away)


@pytest.mark.long
def test_a_registry_that_comes_back_is_told(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Registry()
    threading.Timer(0.5, server.start).start()
    started = time.monotonic()
    client = http.RegistryConnection(http.Address((server.confluent,)), patience_seconds=60)
    assert client.ask("GET", "/subjects").is_good
    assert time.monotonic() - started > 0.5
    assert "answers again" in caplog.text
    client.close()
    server.close()


@pytest.mark.long
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize(("id_name", "kind"), [("contentId", "contentIds"), ("globalId", "globalIds")])
def test_apicurios_ids_have_four_bytes_or_eight(registry: Registry, size: int, id_name: str, kind: str) -> None:
    handler = {4: "Default4ByteIdHandler", 8: "Legacy8ByteIdHandler"}[size]
    own = {"id-handler": f"io.apicurio.registry.serde.{handler}", "use-id": id_name}
    records = encoded(batch(named()), apicurio(registry, **own))
    for record in records:
        raw = record["value"]
        if raw is not None:
            assert raw[0] == 0
            text = whole(registry, kind, int.from_bytes(raw[1 : 1 + size], "big"))
            assert datum(text, raw[1 + size :])["source"]["connector"] == "postgresql"


def test_apicurios_nested_records_are_artifacts_of_their_own(registry: Registry) -> None:
    topic = encoded(batch(named()), apicurio(registry))[0]["topic"]
    path = f"{registry.base}/apis/registry/v3/groups/default/artifacts"
    value = httpx.get(f"{path}/{topic}-value/versions/branch=latest/content", timeout=30).json()
    assert [field["type"] for field in value["fields"][:2]] == [["null", "Value"], ["null", "Value"]]
    references = httpx.get(f"{path}/{topic}-value/versions/branch=latest/references", timeout=30).json()
    names = {each["artifactId"] for each in references}
    assert names == {f"{topic}.Value", "io.debezium.connector.postgresql.Source", "event.block"}
    own = encoded(batch(named()), apicurio(registry, **{"dereference-schema": "true"}))[0]
    assert read(registry, own["value"])["after"] == IMAGE


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_schema_that_is_a_list_keeps_its_text(registry: Registry, version: str) -> None:
    """As the key of an outbox, which may be null."""
    topic, schema = named(), ConnectSchema("int64", optional=True)
    url = f"{registry.base}/apis/registry/{version}"
    form = registry_form(configured(apicurio(registry, url=url, **{"use-id": "globalId"})), "key")
    id_ = form.registry.id(form.wanted(schema, topic))
    found = httpx.get(f"{registry.base}/apis/registry/v3/ids/globalIds/{id_}", timeout=30)
    assert found.text == '["null","long"]'


def test_apicurios_headers_may_have_the_ids(registry: Registry) -> None:
    own = {"headers.enabled": "true", "dereference-schema": "true"}
    records = encoded(batch(named()), apicurio(registry, **own))
    headers = {each["key"]: each["value"] for each in records[0]["headers"]}
    assert headers["apicurio.value.encoding"] == headers["apicurio.key.encoding"] == b"BINARY"
    text = whole(registry, "contentIds", int.from_bytes(headers["apicurio.value.contentId"], "big"))
    assert datum(text, records[0]["value"])["after"] == IMAGE
    names = [each["key"] for each in records[0]["headers"]]
    assert names[-4:] == [f"apicurio.{part}.{what}" for part in ("key", "value") for what in ("contentId", "encoding")]
    assert not any("apicurio.value" in each["key"] for each in records[3]["headers"])  # the tombstone


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "group", "artifact"),
    [
        ("strategy.TopicIdStrategy", "default", "{topic}-value"),
        ("strategy.SimpleTopicIdStrategy", "default", "{topic}"),
        ("avro.strategy.QualifiedRecordIdStrategy", "default", "{topic}.Envelope"),
        ("avro.strategy.RecordIdStrategy", "{topic}", "Envelope"),
        ("avro.strategy.TopicRecordIdStrategy", "{topic}", "{topic}-Envelope"),
    ],
)
def test_artifacts_are_named_by_the_strategy(registry: Registry, strategy: str, group: str, artifact: str) -> None:
    own = {"artifact-resolver-strategy": f"io.apicurio.registry.serde.{strategy}"}
    properties = {name: each for name, each in apicurio(registry, **own).items() if name.startswith("value.")}
    topic = encoded(batch(named()), properties)[0]["topic"]
    place = f"/groups/{group.format(topic=topic)}/artifacts/{artifact.format(topic=topic)}"
    assert httpx.get(f"{registry.base}/apis/registry/v3{place}", timeout=30).status_code == 200


@pytest.mark.long
def test_apicurios_group_and_artifact_may_be_given(registry: Registry) -> None:
    group = named()
    own = {"artifact.group-id": group, "artifact.artifact-id": "all", "auto-register.if-exists": "CREATE_VERSION"}
    encoded(batch(named()), apicurio(registry, **own))
    base = f"{registry.base}/apis/registry/v3/groups/{group}/artifacts"
    assert httpx.get(f"{base}/all", timeout=30).status_code == 200
    assert httpx.get(f"{base}/event.block", timeout=30).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize("how", [{}, {"find-latest": "true"}])
@pytest.mark.parametrize("whole_schemas", ["true", "false"])
def test_apicurios_schemas_may_have_to_be_there(
    registry: Registry, how: dict[str, str], version: str, whole_schemas: str
) -> None:
    name = named()
    url = {"url": f"{registry.base}/apis/registry/{version}", "dereference-schema": whole_schemas}
    missing = apicurio(registry, **url, **how, **{"auto-register": "false"})
    with pytest.raises(SinkError, match="is not registered") as caught:
        encoded(batch(name), missing)
    assert "auto-register=true" in (caught.value.remedy or "")
    before = encoded(batch(name), apicurio(registry, **url))
    forget()
    after = encoded(batch(name), missing)
    assert [each["key"] for each in after] == [each["key"] for each in before]
    ids = [[each for each in row["headers"] if each["key"].endswith("Id")] for row in (*before, *after)]
    assert ids[: len(before)] == ids[len(before) :]


def test_a_rule_of_apicurios_names_artifact_rule_and_change(registry: Registry) -> None:
    name = named()
    topic = encoded(batch(name), apicurio(registry, **{"dereference-schema": "true"}))[0]["topic"]
    rules = f"{registry.base}/apis/registry/v3/groups/default/artifacts/{topic}-value/rules"
    httpx.post(rules, json={"ruleType": "COMPATIBILITY", "config": "BACKWARD"}, timeout=30)
    own = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
    with pytest.raises(SinkError) as caught:
        encoded(batch(name), {**apicurio(registry, **{"dereference-schema": "true"}), **own})
    assert caught.value.where == f"subject {topic}-value, rule BACKWARD"
    assert "id is added" in caught.value.what


def test_an_address_is_required_and_named() -> None:
    with pytest.raises(ConfigError, match=r"value.converter.apicurio.registry.url: A value is required"):
        encoded(batch(named()), {"value.converter": APICURIO})
    with pytest.raises(ConfigError, match=r"key.converter.schema.registry.url: A value is required"):
        encoded(batch(named()), {"key.converter": "io.confluent.connect.avro.AvroConverter"})


def test_keys_of_a_control_topic_are_avro_as_well(registry: Registry) -> None:
    from tailrace.capture.heartbeat import heartbeat
    from tailrace.config.topics import TopicNaming
    from tests.unit.events.event_recordings import config

    naming = TopicNaming(config(**{"topic.prefix": named()}))
    (record,) = encoded(heartbeat(naming, 5), confluent(registry))
    assert read(registry, record["key"]) == {"serverName": naming.heartbeat_server}
    assert read(registry, record["value"]) == {"ts_ms": 5}


ENVELOPES = [each for each in RECORDED if str(each["schema"].get("name")).endswith(".Envelope")]


@pytest.mark.long
@pytest.mark.parametrize("recorded", ENVELOPES, ids=[each["schema"]["name"] for each in ENVELOPES])
def test_subjects_that_debezium_filled_get_no_new_version(registry: Registry, recorded: dict[str, Any]) -> None:
    topic = named()
    id_ = registry.ask("POST", f"/subjects/{topic}-value/versions", {"schema": recorded["avro"]})["id"]
    schema = ConnectSchema.from_json(recorded["schema"])
    part = RecordPart(schema, array([from_json(recorded["payload"], schema)], schema))
    form = registry_form(configured(confluent(registry)), "value")
    written = text_of(form.parts(part, pa.array([topic])), 0, 1, topic)[0].as_py()
    assert written == b"\x00" + id_.to_bytes(4, "big") + base64.b64decode(recorded["datum"])
    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]


@pytest.mark.long
def test_a_thousand_schemas_of_processes_that_register_at_the_same_time(registry: Registry) -> None:
    prefix, properties = named(), confluent(registry)
    tables = [f"{prefix}_{number}" for number in range(500)]
    command = (
        "import sys; from tests.behaviour.avro_records import encoded; from tests.unit.events.changes import batch\n"
        f"for name in {tables!r}:\n"
        f"    sys.stdout.write(encoded(batch('c', table=name), {properties!r})[0]['value'][:5].hex() + ' ')"
    )
    running = [subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    one, other = (process.communicate(timeout=250)[0].split() for process in running)
    assert len(set(one)) == 500
    assert one == other
    for name in (tables[0], tables[-1]):  # the list of subjects ends after a thousand
        assert registry.ask("GET", f"/subjects/server1.public.{name}-value/versions") == [1]
