"""The commands with another database: an installed connector whose positions are no numbers and have no distance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.pipeline.definition import load
from tailrace.pipeline.following import Follower
from tailrace.pipeline.preflight import before_start
from tests.unit.connectors.installed import install

LAMP = """
from dataclasses import dataclass

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.kinds import TEXT, optional
from tailrace.config.option import Option, OptionTable
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin, ConnectorPackage, Detail, NewSource, SourceState, TableOverview
from tailrace.connectors.registry import ConnectorEntry
from tailrace.model.table import TableId

ENTRY = ConnectorEntry(
    name="lamp", product="Lamp", format="lamp-cdc", package="lamp_cdc:LampPackage", classes=("com.acme.LampConnector",),
    schemes=("lamp://",), url="lamp:///folder",
)
FOLDER = Option("lamp.folder", TEXT, None, "Folder.", required=True)
SECRET = Option("lamp.secret", optional(TEXT), None, "Secret.", secret=True)
CLASS = Option("connector.class", optional(TEXT), None, "Class.")
GROUPS = ("SPARK", "FILTERS", "VALUES", "MASKS", "TOPICS", "CONVERTERS", "SIGNALS", "RUNTIME")
OPTIONS = OptionTable({"Lamp": (FOLDER, SECRET, CLASS), **{group: getattr(shared, group) for group in GROUPS}})


@dataclass(frozen=True, order=True)
class Word:
    word: str

    def to_text(self):
        return self.word

    def distance(self, other):
        return None


class LampAdmin(Admin):
    def __init__(self, config):
        self.folder = config[FOLDER]

    def checks(self, begun=None):
        return [Finding("folder", None, f"{self.folder} is small, begun: {begun is not None}", "buy a larger one")]

    def overview(self):
        return [TableOverview(TableId("", "s", "t"), 3, 30, True), TableOverview(TableId("", "s", "u"), 0, 0, False)]

    def position(self, offset):
        return Word(offset["place"]) if "place" in offset else None

    def state(self, pipeline=None):
        return SourceState(Word("n"), "its lamp is out", False, (Detail("lamp", "out", False),), {"lamp": "out"})

    def problems(self, *, begun):
        return []

    def owned(self):
        return f"the notes in {self.folder}"

    def drop(self, begun, *, force=False):
        return [f"notes of {self.folder}: dropped"]


class LampPackage(ConnectorPackage):
    include_list, exclude_list, stop_property = "table.include.list", "table.exclude.list", None
    replica_properties = {}

    def resolve(self, properties, checks=()):
        return resolution.resolve(properties, OPTIONS, checks)

    def admin(self, config):
        return LampAdmin(config)

    def new_source(self, url):
        folder = url.removeprefix("lamp://")
        properties = {"lamp.folder": folder, "lamp.secret": "${env:LAMP_SECRET}", "topic.prefix": "lamps"}
        return NewSource("lamps", folder, properties, {}, {"lamp.secret": "LAMP_SECRET"}, {"lamp.secret": "Secret"})

    def capturing(self, tables):
        return {"table.include.list": ",".join(table.name for table in tables)}
"""


@pytest.fixture(autouse=True)
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed").mkdir()
    install(tmp_path / "installed", monkeypatch, "lamp_cdc", LAMP, "lamp = lamp_cdc:ENTRY")
    monkeypatch.setenv("LAMP_SECRET", "hush")


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """The file that `init` writes, with a checkpoint that has one committed batch."""
    file = tmp_path / "pipeline.yaml"
    output_of(0, "init", "lamp:///box", "-o", str(file), "--sink", "console")
    for folder in ("offsets", "commits"):
        (tmp_path / "checkpoint" / folder).mkdir(parents=True)
        offset = json.dumps({"phase": "stream", "place": "m", "pipeline": "p", "ts_us": 1})
        (tmp_path / "checkpoint" / folder / "0").write_text(f"v1\n{{}}\n{offset}", encoding="utf-8")
    return file


def output_of(code: int, *arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def test_init_finds_the_connector_by_the_url(pipeline: Path) -> None:
    text = pipeline.read_text(encoding="utf-8")
    assert "connector: lamp\n" in text
    assert "hush" not in text
    assert "lamp.secret: ${env:LAMP_SECRET}" in text
    assert load(pipeline).config().values["lamp.secret"] == "hush"


def test_check_uses_the_connector_of_the_pipeline_or_of_the_class(pipeline: Path, tmp_path: Path) -> None:
    assert "folder: /box is small, begun: True" in output_of(3, "check", str(pipeline))
    file = tmp_path / "connector.json"
    given = {"connector.class": "com.acme.LampConnector", "topic.prefix": "t", "lamp.folder": "/bag"}
    file.write_text(json.dumps(given), encoding="utf-8")
    assert "folder: /bag is small, begun: False" in output_of(3, "check", str(file))


def test_check_and_run_name_ignored_properties_that_change_what_arrives(pipeline: Path, tmp_path: Path) -> None:
    given = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "heartbeat.intervall.ms": "1"}
    content = yaml.safe_load(pipeline.read_text(encoding="utf-8"))
    content["source"]["config"] |= {**given, "topic.creation.default.partitions": 3, "errors.log.enable": "true"}
    pipeline.write_text(yaml.safe_dump(content), encoding="utf-8")
    found = json.loads(output_of(3, "check", str(pipeline), "--json"))
    names = {*given, "folder", "topic.creation.default.partitions"}
    assert {finding["name"] for finding in found} == names
    assert all(finding["remedy"] for finding in found)
    assert "errors.tolerance: has no effect, a faulty record stops the pipeline" in output_of(3, "check", str(pipeline))
    assert {finding.name for finding in before_start(load(pipeline))} == names
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"connector.class": "com.acme.LampConnector", **content["source"]["config"]}), "utf-8")
    assert {finding["name"] for finding in json.loads(output_of(3, "check", str(file), "--json"))} == {*given, "folder"}


def test_status_prints_the_details_of_the_database(pipeline: Path) -> None:
    shown = json.loads(output_of(0, "status", str(pipeline), "--json"))
    assert {name: shown[name] for name in ("position", "current", "lag_bytes", "lamp")} == {
        "position": "m",
        "current": "n",
        "lag_bytes": None,
        "lamp": "out",
    }
    text = output_of(0, "status", str(pipeline))
    assert "lamp" in text
    assert "slot" not in text


def test_drop_shows_what_it_is_about_to_remove(pipeline: Path) -> None:
    done = CliRunner().invoke(app, ["drop", str(pipeline)], input="y\n")
    assert "Drop the notes in /box?" in done.output
    assert "notes of /box: dropped" in done.output


def test_a_follower_compares_positions_without_knowing_them(pipeline: Path) -> None:
    follower = Follower(load(pipeline), timeout=0)
    here = follower.position()
    assert here is not None
    assert follower.reaches(None)
    assert follower.reaches(here)
    assert not follower.reaches(type(here)("n"))  # type: ignore[call-arg]
    assert follower.position_text() == "the pipeline does not run (its lamp is out): it is at m, behind the server"
