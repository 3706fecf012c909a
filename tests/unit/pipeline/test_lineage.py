"""Lineage events: datasets, columns, masks, transforms, and that no fault of it reaches a pipeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.errors import ConfigError, SourceError
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.pipeline import lineage
from tailrace.pipeline.definition import Definition
from tests.unit.operate.made import figures
from tests.unit.pipeline.lineage_events import sent, to_file

pytest.importorskip("openlineage.client")
KAFKA = {"kafka": {"bootstrap.servers": "k1:9092,k2:9092"}}
PATH = {
    "postgres": ("postgres://h:5432", "d.public.orders"),
    "mongodb": ("mongodb://h:27017", "shop.orders"),
    "sqlserver": ("mssql://h:1433", "shop.dbo.orders"),
    "db2": ("db2://h:50000", "d.CDC.ORDERS"),
}
IDS = {
    "postgres": TableId("", "public", "orders"),
    "mongodb": TableId("shop", "", "orders", ("database", "table")),
    "sqlserver": TableId("shop", "dbo", "orders", ("database", "schema", "table")),
    "db2": TableId("", "CDC", "ORDERS"),
}


def table(id_: TableId) -> TableSchema:
    text = ConnectSchema("string", optional=True)
    columns = (Column("Id", ConnectSchema("int32"), pa.int32()), Column("E-Mail", text, pa.string()))
    return TableSchema(id_, columns, ("Id",), ())


def made(monkeypatch: pytest.MonkeyPatch, *ids: TableId, **given: Any) -> Definition:
    """The definition of a pipeline whose source has these tables; `faults` are raised instead, one after another."""
    faults = given.pop("faults", [])
    definition = figures(**given).definition

    class Now:
        def table(self, id_: TableId) -> TableSchema:
            if faults:
                raise faults.pop(0)
            return table(id_)

    @contextmanager
    def now() -> Iterator[Now]:
        yield Now()

    monkeypatch.setattr(lineage, "captured_now", lambda _: list(ids))
    monkeypatch.setattr(type(definition), "admin", lambda self: SimpleNamespace(now=now))
    return definition


def events(folder: Path, definition: Definition, error: Exception | None = None) -> list[dict[str, Any]]:
    """The events of a run that begins and ends."""
    told = lineage.lineage_of(definition)
    assert told is not None
    deadline = time.monotonic() + 60
    while not sent(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    told.ended(error)  # type: ignore[arg-type]
    told.ended(None)
    return sent(folder)


@pytest.mark.parametrize("connector", PATH)
def test_a_column_of_the_database_is_a_column_of_the_lake(
    connector: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = {"replica": {"path": str(tmp_path / "lake"), "names": "catalog"}}
    has_masks = connector != "mongodb"
    some = {"column.mask.hash.SHA-256.with.salt.s": ".*E-Mail", "column.propagate.source.type": ".*Id"}
    masks = some if has_masks else {}
    definition = made(monkeypatch, IDS[connector], connector=connector, sink=replica, **masks, **to_file(tmp_path))
    start, end = events(tmp_path, definition)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("shop.prefix", "shop.prefix.0")
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    ((read,), (written,)) = start["inputs"], start["outputs"]
    assert (read["namespace"], read["name"]) == PATH[connector]
    assert read["facets"]["schema"]["fields"] == [
        {"name": "Id", "type": "int32", "fields": []},
        {"name": "E-Mail", "type": "string", "fields": []},
    ]
    name = str(IDS[connector]).lower().replace(".", "_")
    assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "lake" / name))
    found = written["facets"]["columnLineage"]["fields"]
    assert {name: each["inputFields"][0]["field"] for name, each in found.items()} == {"id": "Id", "e_mail": "E-Mail"}
    kinds = {name: each["inputFields"][0]["transformations"][0] for name, each in found.items()}
    assert (kinds["id"]["subtype"], kinds["id"]["masking"]) == ("IDENTITY", False)
    assert kinds["e_mail"]["subtype"] == ("TRANSFORMATION" if has_masks else "IDENTITY")
    assert kinds["e_mail"]["masking"] == has_masks
    assert end["outputs"] == start["outputs"]


ICEBERG = {"format": "iceberg", "namespace": "shop.main"}
UNITY = {"type": "unity", "uri": "https://u.example.com:8443", "token": "s3cret"}
GLUE = {"type": "glue", "glue.region": "eu-west-1", "glue.id": "123456789012"}
DELTA = {"path": "s3a://lake/shop", "names": "catalog"}
NAMES = {
    "delta": ({**DELTA}, ("s3://lake", "shop/public_orders"), None),
    "unity": (
        {**DELTA, "namespace": "main.shop", "catalog": UNITY},
        ("s3://lake", "shop/public_orders"),
        ("unitycatalog://u.example.com:8443", "main.shop.public_orders"),
    ),
    "hive": (
        {**DELTA, "namespace": "shop", "catalog": {"type": "hive", "uri": "m:9083"}},
        ("s3://lake", "shop/public_orders"),
        ("hive://m:9083", "shop.public_orders"),
    ),
    "glue": (
        {**DELTA, "namespace": "shop", "catalog": GLUE},
        ("s3://lake", "shop/public_orders"),
        ("arn:aws:glue:eu-west-1:123456789012", "table/shop/public_orders"),
    ),
    "iceberg of rest": (
        {**ICEBERG, "catalog": {"type": "rest", "uri": "https://u:s3cret@c.example.com/api/", "warehouse": "w"}},
        ("https://c.example.com/api", "shop.main.public.orders"),
        None,
    ),
    "iceberg of sqlite": (
        {**ICEBERG, "catalog": {"type": "sql", "uri": "sqlite:////lake/catalog.db", "warehouse": "file:///lake"}},
        ("sqlite:////lake/catalog.db", "shop.main.public.orders"),
        None,
    ),
    "iceberg of hive": (
        {**ICEBERG, "names": "catalog", "catalog": {"type": "hive", "uri": "thrift://m:9083"}},
        ("hive://m:9083", "shop.main.public_orders"),
        None,
    ),
    "iceberg of dynamodb": (
        {**ICEBERG, "catalog": {"type": "dynamodb", "warehouse": "s3://lake/shop/"}},
        ("s3://lake/shop", "shop.main.public.orders"),
        None,
    ),
    "postgres": (
        {"format": "postgres", "url": "postgresql://u:s3cret@h/d", "namespace": "replica"},
        ("postgres://h:5432", "d.replica.public.orders"),
        None,
    ),
    "postgres with a port": (
        {"format": "postgres", "url": "postgresql://u@[::1]:5433,h/d%20e", "namespace": "replica"},
        ("postgres://[::1]:5433", "d e.replica.public.orders"),
        None,
    ),
}


@pytest.mark.parametrize("kind", NAMES)
def test_tables_of_a_replica_have_the_names_that_others_give_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, name, link = NAMES[kind]
    definition = made(monkeypatch, IDS["postgres"], sink={"replica": replica}, **to_file(tmp_path))
    (written,) = events(tmp_path, definition)[0]["outputs"]
    assert (written["namespace"], written["name"]) == name
    found = written["facets"].get("symlinks", {"identifiers": []})["identifiers"]
    assert [(each["namespace"], each["name"], each["type"]) for each in found] == (
        [] if link is None else [(*link, "TABLE")]
    )
    assert "s3cret" not in (tmp_path / "events.jsonl").read_text(encoding="utf-8")


def test_topics_of_several_tables_and_transforms_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [TableId("", "public", f"orders_{number}") for number in (1, 2)]
    one_topic = {
        "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
        "topic.regex": "(.*)_\\d",
        "topic.replacement": "$1",
    }
    start = events(tmp_path, made(monkeypatch, *ids, sink=KAFKA, **one_topic, **to_file(tmp_path)))[0]
    (topic,) = start["outputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://k1:9092", "shop.prefix.orders")
    found = topic["facets"]["columnLineage"]["fields"]["after.Id"]["inputFields"]
    assert [each["name"] for each in found] == ["d.public.orders_1", "d.public.orders_2"]

    (tmp_path / "events.jsonl").unlink()
    unwrap = {"transforms": "flat", "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState"}
    start = events(tmp_path, made(monkeypatch, ids[0], sink=KAFKA, **unwrap, **to_file(tmp_path)))[0]
    facet = start["outputs"][0]["facets"]["columnLineage"]
    assert facet["fields"] == {}
    (change,) = facet["dataset"][0]["transformations"]
    assert change["description"] == "flat: io.debezium.transforms.ExtractNewRecordState"


def test_what_the_properties_say_of_the_job_and_how_a_run_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {
        "openlineage.integration.job.namespace": "cdc",
        "openlineage.integration.job.description": "orders",
        "openlineage.integration.job.tags": "env=prod, team=data",
        "openlineage.integration.job.owners": "Ann=maintainer",
    }
    definition = made(monkeypatch, IDS["postgres"], **more, **to_file(tmp_path))
    start, end = events(tmp_path, definition, SourceError("the slot is gone", remedy="drop the checkpoint"))
    assert start["job"]["namespace"] == "cdc"
    facets = start["job"]["facets"]
    assert facets["documentation"]["description"] == "orders"
    assert [(each["key"], each["value"]) for each in facets["tags"]["tags"]] == [("env", "prod"), ("team", "data")]
    assert facets["ownership"]["owners"] == [{"name": "Ann", "type": "maintainer"}]
    assert end["eventType"] == "FAIL"
    assert "the slot is gone" in end["run"]["facets"]["errorMessage"]["message"]


def test_a_run_goes_on_and_what_does_not_answer_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lineage, "_PAUSE_SECONDS", 0.02)
    faults = [SourceError("the database is away"), SourceError("still away")]
    definition = made(monkeypatch, IDS["postgres"], faults=faults, **to_file(tmp_path))
    found = events(tmp_path, definition)
    assert {each["eventType"] for each in found[:-1]} == {"RUNNING"}, "the start was not told"
    assert found[-1]["eventType"] == "COMPLETE"
    assert caplog.text.count("is not sent") == 1
    assert "lineage of shop is not sent: the database is away; the pipeline goes on" in caplog.text


def test_it_is_off_and_a_wrong_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lineage.lineage_of(figures().definition) is None
    on = {"openlineage.integration.enabled": "true", "openlineage.integration.config.file.path": str(tmp_path / "no")}
    with pytest.raises(ConfigError, match="no cannot be read: No such file"):
        lineage.lineage_of(figures(**on).definition)
    (tmp_path / "no").write_text("transport: {type: pigeon}", encoding="utf-8")
    with pytest.raises(ConfigError, match="client does not take"):
        lineage.lineage_of(figures(**on).definition)
    monkeypatch.setattr("tailrace.config.shared.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="lineage events need openlineage-python"):
        figures(**on)
