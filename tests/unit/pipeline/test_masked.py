"""Secrets are in no answer and in no archive."""

from __future__ import annotations

import pytest

from tailrace.config.converter_names import CONFLUENT_AVRO
from tailrace.errors import SourceError
from tailrace.pipeline.masked import masked, secrets, shown, without_secrets
from tests.unit.operate.made import figures


def test_defaults_are_shown_and_references_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "hidden-place")
    found = figures(**{"database.hostname": "${env:PLACE}", "database.password": "hidden"})
    visible = shown(found.definition, found.config)
    assert visible["database.hostname"] == "${env:PLACE}"
    assert visible["database.password"] == "********"
    assert visible["skipped.operations"] == "none"
    assert visible["database.dbname"] == "d"


def test_a_text_loses_secrets_and_nothing_else() -> None:
    kafka = {"kafka": {"bootstrap.servers": "k:9", "properties": {"sasl.password": "s3cret", "linger.ms": 20}}}
    found = figures(sink=kafka, **{"database.password": "hidden"})
    text = 'cannot log in as u with "hidden" and s3cret at postgres://me:pass@h:1/d, linger.ms 20'
    assert without_secrets(text, found.definition, found.config) == (
        'cannot log in as u with "********" and ******** at postgres://********@h:1/d, linger.ms 20'
    )


@pytest.mark.parametrize(
    ("replica", "secrets"),
    [
        (
            {
                "path": "az://lake/shop",
                "storage_options": {"azure_storage_account_key": "s3cret-1", "azure_storage_sas_key": "s3cret-2"},
                "names": "catalog",
                "namespace": "main.shop",
                "catalog": {"type": "unity", "uri": "https://host", "token": "s3cret-3"},
            },
            3,
        ),
        (
            {
                "path": "s3://lake/shop",
                "names": "catalog",
                "namespace": "shop",
                "catalog": {"type": "glue", "glue.secret-access-key": "s3cret-1", "glue.session-token": "s3cret-2"},
            },
            2,
        ),
        ({"format": "iceberg", "namespace": "shop", "catalog": {"type": "rest", "credential": "s3cret-1"}}, 1),
        ({"format": "postgres", "namespace": "shop", "url": "postgresql://u@h/d", "password": "s3cret-1"}, 1),
    ],
    ids=["unity", "glue", "iceberg", "postgres"],
)
def test_secrets_of_a_replicas_storage_and_catalog_are_taken_out(replica: dict[str, object], secrets: int) -> None:
    found = figures(sink={"replica": replica})
    text = ", ".join(f"s3cret-{number}" for number in range(1, secrets + 1))
    assert without_secrets(text, found.definition, found.config) == ", ".join(["********"] * secrets)


def test_an_error_is_told_without_secrets() -> None:
    found = figures(**{"database.password": "s3cret"})
    error = SourceError("no answer for s3cret", where="https://u:other@h/s3cret", remedy="look at s3cret")
    told = masked(error, secrets(found.definition, found.config))
    assert str(told) == "https://********@h/********: no answer for ********\n  Remedy: look at ********"
    bare = masked(SourceError("no answer"), [])
    assert (bare.what, bare.where, bare.remedy) == ("no answer", None, None)


def test_a_header_of_a_registrys_requests_is_a_secret() -> None:
    name = "value.converter.request.header.Authorization"
    given = {"value.converter": CONFLUENT_AVRO, "value.converter.schema.registry.url": "http://r:1"}
    found = figures(**given, **{name: "Bearer s3cret"})
    assert shown(found.definition, found.config)[name] == "********"
    assert without_secrets("the proxy got Bearer s3cret", found.definition, found.config) == "the proxy got ********"
