"""Secrets are in no answer and in no archive."""

from __future__ import annotations

import pytest

from tailrace.operate.masked import shown, without_secrets
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
