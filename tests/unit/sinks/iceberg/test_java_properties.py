"""Properties of catalogs, as pyiceberg has them and as Iceberg's Java code has them."""

from __future__ import annotations

import pytest

from tailrace.sinks.replica.iceberg.java_properties import CLASS, driver, spark_properties

COMMON = {"": CLASS, "cache-enabled": "false", "io-impl": "org.apache.iceberg.io.ResolvingFileIO"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            {"type": "sql", "uri": "sqlite:////data/catalog.db", "warehouse": "file:///data", "echo": "true"},
            {"type": "jdbc", "uri": "jdbc:sqlite:/data/catalog.db", "warehouse": "file:///data"},
        ),
        ({"uri": "sqlite:///here.db"}, {"type": "jdbc", "uri": "jdbc:sqlite:here.db"}),
        (
            {"type": "sql", "uri": "postgresql+psycopg2://me:a%40b@host:5433/lake?sslmode=require"},
            {
                "type": "jdbc",
                "uri": "jdbc:postgresql://host:5433/lake?sslmode=require",
                "jdbc.user": "me",
                "jdbc.password": "a@b",
            },
        ),
        (
            {"type": "rest", "uri": "https://host", "token": "t", "warehouse": "w", "header.X-Y": "z"},
            {"type": "rest", "uri": "https://host", "token": "t", "warehouse": "w", "header.X-Y": "z"},
        ),
        ({"uri": "http://host", "credential": "a:b"}, {"type": "rest", "uri": "http://host", "credential": "a:b"}),
        ({"type": "hive", "uri": "thrift://host:9083"}, {"type": "hive", "uri": "thrift://host:9083"}),
        (
            {"type": "glue", "glue.region": "eu-central-1", "glue.id": "1"},
            {"type": "glue", "client.region": "eu-central-1", "glue.id": "1"},
        ),
        (
            {"type": "glue", "s3.endpoint": "http://host", "s3.region": "r", "s3.access-key-id": "k"},
            {
                "type": "glue",
                "s3.endpoint": "http://host",
                "client.region": "r",
                "s3.access-key-id": "k",
                "s3.path-style-access": "true",
            },
        ),
        (
            {"type": "rest", "uri": "http://h", "s3.force-virtual-addressing": "true", "s3.endpoint": "http://host"},
            {
                "type": "rest",
                "uri": "http://h",
                "s3.path-style-access": "false",
                "s3.endpoint": "http://host",
            },
        ),
    ],
)
def test_properties_have_counterparts(given: dict[str, str], found: dict[str, str]) -> None:
    assert spark_properties(given) == {**COMMON, **found}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "dynamodb"}, "knows catalogs of the types sql, rest, hive, glue"),
        ({"py-catalog-impl": "mine.Catalog"}, "knows catalogs of the types"),
        ({"type": "sql", "uri": "mssql://h/d"}, "in sqlite, postgresql, mysql, and this one is in mssql"),
        ({"type": "sql", "uri": "sqlite:///:memory:"}, "in memory"),
        ({"type": "sql", "uri": "sqlite://"}, "in memory"),
        (
            {"type": "glue", "glue.profile-name": "p", "glue.access-key-id": "s3cret"},
            "glue.access-key-id, glue.profile",
        ),
        ({"type": "hive", "uri": "thrift://h:1", "hive.kerberos-authentication": "true"}, "hive.kerberos"),
        ({"type": "rest", "uri": "http://h", "s3.role-arn": "s3cret"}, "has nothing for s3.role-arn; leave engine out"),
    ],
)
def test_what_java_has_nothing_for_is_refused_in_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=r"`engine: spark`.*leave engine out") as caught:
        spark_properties(given)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_databases_have_drivers() -> None:
    assert (driver({"uri": "sqlite:////x"}) or "").startswith("org.xerial:sqlite-jdbc:")
    assert driver({"type": "rest", "uri": "http://h"}) is None
