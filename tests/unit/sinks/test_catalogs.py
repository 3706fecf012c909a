"""Entries of catalogues, and what Glue (moto) and a double of Unity Catalog's server take of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto import mock_aws

from tailrace.errors import ConfigError, SinkAwayError, SinkError, TableError
from tailrace.sinks.replica.catalogs.catalog import Catalog, put, take_away
from tailrace.sinks.replica.catalogs.entry import CatalogTable, EntryColumn, TableDescription, entry, shortened
from tailrace.sinks.replica.catalogs.glue import Glue
from tailrace.sinks.replica.catalogs.kinds import catalog_of, problem
from tailrace.sinks.replica.catalogs.unity import Unity
from tests.servers.unity.server import UnityDouble

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us")),
        ("seen", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("more", pa.map_(pa.string(), pa.int32())),
        ("held", pa.struct([("value", pa.int16()), ("text", pa.string())])),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("is_done", pa.bool_()),
    ]
)
SOURCE = TableDescription("what was ordered", {"price": "in euros", "tags": "a\n  list"}, ("id",))
ORDERS = entry("public_orders", "public.orders", "s3://lake/replica/public_orders", SCHEMA, SOURCE)
TYPES = [
    *("bigint", "decimal(9,2)", "timestamp", "timestamp", "array<string>", "map<string,int>"),
    *("struct<value:smallint,text:string>", "binary", "date", "boolean"),
]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tester")
    with mock_aws():
        client = boto3.client("glue", region_name="eu-west-1")
        client.create_database(DatabaseInput={"Name": "shop"})
        yield client


@pytest.fixture
def unity() -> Iterator[UnityDouble]:
    with UnityDouble() as double:
        yield double


@pytest.fixture(params=["glue", "unity"])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    if request.param == "glue":
        request.getfixturevalue("aws")
        return Glue({"glue.region": "eu-west-1"}, "shop")
    return Unity(request.getfixturevalue("unity").uri, "main.shop", None)


def test_types_are_those_of_sql() -> None:
    assert [each.type_text({"timestamp_ntz": "timestamp"}) for each in ORDERS.columns] == TYPES
    assert ORDERS.columns[2].type_text() == "timestamp_ntz"


def test_a_key_whose_column_the_replica_lacks_is_no_key() -> None:
    assert entry("t", "t", "/t", SCHEMA, replace(SOURCE, key=("id", "gone"))).key == ()


def test_a_comment_is_cut_between_characters() -> None:
    assert shortened("é" * 200, 255) == "é" * 126 + "…"
    assert shortened("é" * 127, 255) == "é" * 127
    assert shortened(None, 3) is None


@pytest.mark.parametrize("place", ["file:/lake/t", "file:///lake/t", "/lake/t/", "file:///lake/t/"])
def test_a_local_place_is_the_same_however_it_is_written(place: str) -> None:
    assert CatalogTable(place, None, None).is_at("file:///lake/t")
    assert not CatalogTable(place, None, None).is_at("file:///lake/t2")


def test_what_is_registered_again_changes_nothing_and_what_is_new_does(catalog: Catalog) -> None:
    put(catalog, ORDERS)
    assert catalog.find("public_orders") == CatalogTable(ORDERS.location, "public.orders", ORDERS.digest)
    put(catalog, ORDERS)
    changed = replace(ORDERS, columns=(*ORDERS.columns[1:], EntryColumn("note", "string", "by hand")))
    put(catalog, changed)
    found = catalog.find("public_orders")
    assert found is not None
    assert found.digest == changed.digest != ORDERS.digest
    take_away(catalog, "public_orders", "public.other", ORDERS.location)
    take_away(catalog, "public_orders", "public.orders", "s3://elsewhere")
    assert catalog.find("public_orders") is not None, "not ours"
    take_away(catalog, "public_orders", "public.orders", ORDERS.location)
    take_away(catalog, "public_orders", "public.orders", ORDERS.location)
    assert catalog.find("public_orders") is None


@pytest.mark.parametrize(
    "other",
    [replace(ORDERS, location="s3://lake/elsewhere"), replace(ORDERS, table="Public.orders")],
    ids=["another-place", "another-table"],
)
def test_another_table_of_the_name_is_never_overwritten(catalog: Catalog, other: Any) -> None:
    put(catalog, other)
    with pytest.raises(TableError, match="has another table of the name public_orders") as caught:
        put(catalog, ORDERS)
    assert "drop or rename" in (caught.value.remedy or "")
    found = catalog.find("public_orders")
    assert found is not None
    assert found.digest == other.digest


def test_glue_has_what_athena_and_spark_look_for(aws: Any) -> None:
    glue = Glue({"glue.region": "eu-west-1"}, "shop")
    assert glue.look() == "Glue answers, and tables of the database shop may be read, changed and deleted"
    put(glue, ORDERS)
    table = aws.get_table(DatabaseName="shop", Name="public_orders")["Table"]
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Description"] == "what was ordered"
    expected = {
        "EXTERNAL": "TRUE",
        "spark.sql.sources.provider": "delta",
        "table_type": "DELTA",
        "classification": "delta",
        "tailrace.table": "public.orders",
        "tailrace.key": "id",
        "tailrace.entry": ORDERS.digest,
    }
    assert table["Parameters"] == expected
    storage = table["StorageDescriptor"]
    assert storage["Location"] == storage["SerdeInfo"]["Parameters"]["path"] == ORDERS.location
    assert [each["Type"] for each in storage["Columns"]] == TYPES
    assert [storage["Columns"][place]["Comment"] for place in (1, 4)] == ["in euros", "a list"]
    # What others have added stays.
    parameters = {**table["Parameters"], "owner_team": "sales"}
    aws.update_table(DatabaseName="shop", TableInput={"Name": "public_orders", "Parameters": parameters})
    aws_table = {"Name": "public_orders", "Parameters": parameters, "StorageDescriptor": storage}
    aws.update_table(DatabaseName="shop", TableInput=aws_table)
    put(glue, replace(ORDERS, comment="other"))
    table = aws.get_table(DatabaseName="shop", Name="public_orders")["Table"]
    assert (table["Parameters"]["owner_team"], table["Description"]) == ("sales", "other")


def test_glue_tells_what_is_missing(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SinkError, match="Glue has no database nobody") as caught:
        Glue({"glue.region": "eu-west-1"}, "nobody").look()
    assert "aws glue create-database" in str(caught.value)
    with pytest.raises(SinkError, match="Glue has no database nobody"):
        put(Glue({"glue.region": "eu-west-1"}, "nobody"), ORDERS)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="Glue cannot be asked: You must specify a region"):
        Glue({}, "shop").look()


def test_glue_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tester")
    with pytest.raises(SinkAwayError, match="Glue does not answer"):
        Glue({"glue.region": "eu-west-1", "glue.endpoint": "http://127.0.0.1:9"}, "shop").look()


def test_unity_gets_columns_as_its_interface_describes_them(unity: UnityDouble) -> None:
    catalog = Unity(unity.uri + "/", "main.shop", None)
    assert catalog.look() == "Unity Catalog answers and has the schema main.shop"
    put(catalog, ORDERS)
    table = unity.tables["main.shop.public_orders"]
    assert (table["table_type"], table["data_source_format"], table["comment"]) == (
        *("EXTERNAL", "DELTA"),
        "what was ordered",
    )
    price, at = table["columns"][1:3]
    assert json.loads(price.pop("type_json")) == {
        "name": "price",
        "type": "decimal(9,2)",
        "nullable": True,
        "metadata": {"comment": "in euros"},
    }
    assert price == {
        "name": "price",
        "type_text": "decimal(9,2)",
        "type_name": "DECIMAL",
        "position": 1,
        "nullable": True,
        "type_precision": 9,
        "type_scale": 2,
        "comment": "in euros",
    }
    assert (at["type_text"], at["type_name"]) == ("timestamp_ntz", "TIMESTAMP_NTZ")
    names = [each["type_name"] for each in table["columns"]]
    assert names[4:] == ["ARRAY", "MAP", "STRUCT", "BINARY", "DATE", "BOOLEAN"]


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (401, SinkError, "TAILRACE_CATALOG_TOKEN"),
        (403, SinkError, "CREATE TABLE on main.shop"),
        (400, SinkError, "external locations"),
        (429, SinkAwayError, "does not answer: 429"),
        (503, SinkAwayError, "does not answer: 503"),
    ],
)
def test_unity_tells_what_it_refuses(unity: UnityDouble, status: int, kind: type[SinkError], said: str) -> None:
    unity.refuses = status
    with pytest.raises(kind, match=said) as caught:
        put(Unity(unity.uri, "main.shop", None), ORDERS)
    assert type(caught.value) is kind
    assert "not now" in str(caught.value)


def test_unity_takes_its_token_from_settings_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with UnityDouble(token="secret") as double:
        with pytest.raises(SinkError, match="401 who are you") as caught:
            Unity(double.uri, "main.shop", "wrong-secret").look()
        assert "wrong-secret" not in str(caught.value)
        Unity(double.uri, "main.shop", "secret").look()
        monkeypatch.setenv("TAILRACE_CATALOG_TOKEN", "secret")
        Unity(double.uri, "main.shop", None).look()
        with pytest.raises(SinkError, match=r"create the schema main\.other"):
            Unity(double.uri, "main.other", None).look()
    with pytest.raises(SinkAwayError, match="does not answer"):
        Unity(double.uri, "main.shop", "secret").look()


@pytest.mark.parametrize(
    ("properties", "namespace", "said"),
    [
        ({"type": "rest"}, "shop", "catalog.type should be glue, hive, unity; Delta tables"),
        ({"uri": "thrift://a"}, "shop", "catalog.type should be"),
        ({"type": "hive", "url": "thrift://a"}, "shop", "catalog.url: unknown key; did you mean uri?"),
        ({"type": "hive"}, "shop", "catalog.uri is missing"),
        ({"type": "hive", "uri": "thrift://a"}, "main.shop", "namespace is needed beside a catalog of type hive"),
        ({"type": "unity", "uri": "https://a"}, "shop", "catalog and schema with a dot between them"),
        ({"type": "unity", "uri": "https://a"}, None, "catalog and schema with a dot between them"),
        ({"type": "glue", "glue.region": "eu-west-1", "location": "s3a://x"}, "shop", None),
    ],
)
def test_settings_are_checked(properties: dict[str, str], namespace: str | None, said: str | None) -> None:
    found = problem(properties, namespace)
    assert found is said if said is None else said in (found or "")


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.sinks.replica.catalogs.kinds.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs the package thrift") as caught:
        catalog_of({"type": "hive", "uri": "thrift://a"}, "shop")
    assert caught.value.remedy == "pip install 'tailrace[hive]'"
