"""Which changes of files start the pipelines of a folder again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tailrace.errors import TailraceError
from tailrace.operate import fleet as module
from tailrace.operate.fleet import Fleet
from tailrace.operate.steering import Steering
from tailrace.pipeline.definition import Definition
from tests.unit.operate.made import CONFIGS

REFERENCES = "${file:FOLDER/db.properties:user}", "${dir:FOLDER:password}"


class Started:
    """In place of a pipeline that runs: remembers which ones were started."""

    properties: list[dict[str, str]]

    def __init__(self, definition: Definition, *_: object, **__: object) -> None:
        self.definition, self.error, self.is_over, self.steering = definition, None, False, Steering()
        self.properties.append(definition.properties())

    def close(self) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a pipeline whose connector's file takes its user and password from other files."""
    monkeypatch.setattr(Started, "properties", [], raising=False)
    monkeypatch.setattr(module, "FleetMember", Started)
    user, password = (each.replace("FOLDER", str(tmp_path / "secrets")) for each in REFERENCES)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "db.properties").write_text("user=ann", encoding="utf-8")
    (tmp_path / "secrets" / "password").write_text("one", encoding="utf-8")
    given = {**CONFIGS["postgres"], "topic.prefix": "t", "database.user": user, "database.password": password}
    connector = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", **given}
    (tmp_path / "connector.json").write_text(json.dumps(connector), encoding="utf-8")
    content = {"name": "p", "source": {"config": "../connector.json"}, "sink": {"null": {}}, "checkpoint": "state"}
    (tmp_path / "pipelines" / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return tmp_path


@pytest.fixture
def fleet(folder: Path) -> Fleet:
    nothing: Any = SimpleNamespace()
    found = Fleet(folder / "pipelines", nothing, {}, lambda _: nothing, lambda *_: None)
    found.look()
    assert len(Started.properties) == 1
    found.look()
    assert len(Started.properties) == 1, "nothing has changed"
    return found


def test_a_changed_file_of_the_connector_starts_its_pipeline_again(folder: Path, fleet: Fleet) -> None:
    connector = folder / "connector.json"
    found = json.loads(connector.read_text(encoding="utf-8"))
    connector.write_text(json.dumps({**found, "table.include.list": "public.orders"}), encoding="utf-8")
    fleet.look()
    assert Started.properties[-1]["table.include.list"] == "public.orders"
    fleet.look()
    assert len(Started.properties) == 2


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [("db.properties", "user=bob", "database.user"), ("password", "bob", "database.password")],
)
def test_a_changed_secret_starts_its_pipeline_again(
    folder: Path, fleet: Fleet, file: str, content: str, name: str
) -> None:
    (folder / "secrets" / file).write_text(content, encoding="utf-8")
    fleet.look()
    assert [each[name] for each in Started.properties][-1] == "bob"
    assert len(Started.properties) == 2


def test_a_file_that_is_gone_leaves_the_pipeline_running_and_is_read_once_it_is_back(
    folder: Path, fleet: Fleet
) -> None:
    connector = folder / "connector.json"
    content = connector.read_text(encoding="utf-8")
    connector.unlink()
    fleet.look()
    assert len(Started.properties) == 1
    assert isinstance(fleet.broken()["p.yaml"], TailraceError)
    connector.write_text(content, encoding="utf-8")
    fleet.look()
    assert not fleet.broken()
    assert len(Started.properties) == 2
