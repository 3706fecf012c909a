"""`tailrace drop` beside a run: refused before the server is asked, whatever the server sees of the run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tailrace.cli.main import app
from tailrace.errors import ConfigError
from tailrace.pipeline.lease import Owner
from tailrace.pipeline.run_state import LEASE
from tests.unit.operate.made import CONFIGS


@pytest.mark.parametrize("connector", CONFIGS)
@pytest.mark.parametrize("arguments", [["--yes"], ["--yes", "--force"]])
def test_what_a_run_needs_is_not_dropped(connector: str, arguments: list[str], tmp_path: Path) -> None:
    content = {
        "name": "shop",
        "source": {"connector": connector, "config": {**CONFIGS[connector], "topic.prefix": "shop"}},
        "sink": {"replica": {"path": "lake"}},
        "checkpoint": "state",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / LEASE).write_text(Owner.me().content, encoding="utf-8")
    error = CliRunner().invoke(app, ["drop", str(file), *arguments]).exception
    assert isinstance(error, ConfigError)
    assert "the pipeline needs what would be dropped: it is running: process" in error.what
    assert "PUT /connectors/<name>/stop" in (error.remedy or "")
