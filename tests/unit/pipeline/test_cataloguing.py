"""What `check` and `status` say of the catalogue of a replica."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.connectors.finding import Finding
from tailrace.errors import TailraceError
from tailrace.pipeline.cataloguing import FILE, check, stored_problems
from tailrace.pipeline.definition import Definition, from_content
from tests.servers.unity.server import UnityDouble


def pipeline(folder: Path, uri: str | None) -> Definition:
    catalog = {"names": "catalog", "namespace": "main.shop", "catalog": {"type": "unity", "uri": uri}}
    replica = {"path": "replica", **({} if uri is None else catalog)}
    config = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    content = {"source": {"config": config}, "sink": {"replica": replica}, "checkpoint": "state"}
    return from_content(content, base=folder, where="test")


def checked(definition: Definition) -> Finding:
    assert definition.sink.replica is not None
    return check(definition.sink.replica)


def test_a_catalog_is_checked(tmp_path: Path) -> None:
    with UnityDouble() as double:
        definition = pipeline(tmp_path, double.uri)
        assert checked(definition) == Finding(
            "catalog", True, "Unity Catalog answers and has the schema main.shop", None
        )
        assert not double.tables, "nothing is registered by a check"
        double.schemas.clear()
        missing = checked(definition)
    assert (missing.ok, missing.remedy) == (False, "create the schema main.shop, or set another `namespace`")
    away = checked(definition)
    assert away.ok is False
    assert "does not answer" in away.what


def test_what_a_run_has_noted_is_shown(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, "https://host")
    assert stored_problems(definition) == ()
    file = tmp_path / "state" / FILE
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 1, "problems": ["it is away; remedy: start it", "no more"]}))
    assert stored_problems(definition) == (
        Finding("catalog", None, "it is away", "start it"),
        Finding("catalog", None, "no more", None),
    )
    assert stored_problems(pipeline(tmp_path, None)) == (), "of a pipeline that has no catalog any more"
    file.write_text("{")
    with pytest.raises(TailraceError, match="cannot be read"):
        stored_problems(definition)
