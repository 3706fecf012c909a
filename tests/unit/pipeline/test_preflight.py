"""What is checked before a pipeline starts, by where its checkpoint lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.connectors.finding import Finding
from tailrace.errors import SourceError
from tailrace.pipeline import preflight
from tailrace.pipeline.definition import from_content
from tests.unit.operate.made import CONFIGS

PROBLEM = Finding("slot", False, "the role may not replicate", "ALTER ROLE cdc REPLICATION")


def before_start(checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    monkeypatch.setattr(preflight, "findings", lambda _: [PROBLEM])
    config = {**CONFIGS["postgres"], "topic.prefix": "t"}
    content = {"name": "p", "source": {"config": config}, "sink": {"null": {}}, "checkpoint": checkpoint}
    return preflight.before_start(from_content(content, base=Path("/nowhere"), where="test"))


def test_a_checkpoint_with_a_url_is_no_reason_to_check_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="the role may not replicate"):
        before_start(f"file://{tmp_path}/state", monkeypatch)


def test_where_spark_alone_reads_the_checkpoint_properties_alone_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert before_start("odd://store/state", monkeypatch) == []
