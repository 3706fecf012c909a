"""The archive of `tailrace doctor`: files of a checkpoint anywhere, the log of a folder, and no secret of anybody."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tailrace.operate import doctor
from tailrace.operate.fleet import log_of
from tailrace.pipeline.definition import load
from tests.unit.operate.made import CONFIGS


def put(folder: Path, name: str, checkpoint: str = "", password: str = "s3cret") -> Path:
    config = {**CONFIGS["postgres"], "topic.prefix": name, "database.password": password}
    content = {"name": name, "source": {"config": config}, "sink": {"null": {}}}
    file = folder / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump({**content, "checkpoint": checkpoint or f"../state_{name}"}), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "findings", lambda _: [])
    monkeypatch.setattr(doctor, "_status", lambda _: {})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()


def archived(file: Path) -> dict[str, str]:
    archive = file.parent.parent / "doctor.zip"
    names = doctor.write(load(file), file, archive)
    with zipfile.ZipFile(archive) as found:
        assert found.namelist() == names
        return {name: found.read(name).decode() for name in names}


def test_a_checkpoint_of_a_url_is_read_as_a_folder_is(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for name in ("metadata", "last_run.json", "other", *(f"offsets/{number}" for number in range(12))):
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text(f"{name} s3cret", encoding="utf-8")
    found = archived(put(tmp_path / "pipelines", "shop", f"file://{state}"))
    names = ["metadata", "last_run.json", "offsets/9", "offsets/10", "offsets/11"]
    assert [name for name in found if name.startswith("checkpoint/")] == [f"checkpoint/{name}" for name in names]
    assert found["checkpoint/offsets/11"] == "offsets/11 ********"


def test_a_checkpoint_that_spark_alone_can_read_is_said_to_be_so(tmp_path: Path) -> None:
    found = archived(put(tmp_path / "pipelines", "shop", "odd://store/state"))
    assert "this process cannot open the file system of the checkpoint" in found["checkpoint/unread.txt"]


def test_the_log_of_a_folder_is_in_it_without_the_secrets_of_its_other_pipelines(tmp_path: Path) -> None:
    file = put(tmp_path / "pipelines", "shop")
    put(tmp_path / "pipelines", "other", password="hidden")
    log_of(file.parent).write_text("shop: s3cret\nother: hidden\n", encoding="utf-8")
    assert archived(file)["log/tailrace-pipelines.log"] == "shop: ********\nother: ********\n"


def test_the_log_of_a_folder_is_left_out_where_its_secrets_are_not_known(tmp_path: Path) -> None:
    file = put(tmp_path / "pipelines", "shop")
    (file.parent / "broken.yaml").write_text("name: [", encoding="utf-8")
    log_of(file.parent).write_text("hidden", encoding="utf-8")
    found = archived(file)["log/tailrace-pipelines.log"]
    assert found.startswith("left out: it may have secrets of a pipeline that cannot be read: ")
    assert "broken.yaml" in found
    assert "hidden" not in found
