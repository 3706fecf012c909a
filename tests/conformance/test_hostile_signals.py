"""A signal that would write, run more than its condition or run code is given up by name, and the pipeline goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.stepped import pipeline, row
from tests.conformance.subject import Insert, Source, Subject

KINDS = ("incremental", "blocking")


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_signal_is_given_up_and_writes_nothing(
    subject: Subject, source: Source, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    victim, file = f"victim_{kind}", tmp_path / "notices.jsonl"
    source.create(victim)
    source.commit(*(Insert(victim, row(key)) for key in (1, 2, 3)))
    source.clear_signals()
    told = {"notification__enabled__channels": "file", "notification__file": str(file)}
    with pipeline(subject, source, **told) as line:
        texts = source.hostile(kind, line.table, victim)
        for number, text in enumerate(texts):
            line.ask(f"{kind}-{number}", text, kind)
        assert line.steps() == [], "no row is read for any of them"
        assert len(source.rows(victim)) == 3
        for number, text in enumerate(texts):
            lines = [record.getMessage() for record in caplog.records if f" {kind}-{number} (" in record.getMessage()]
            assert any("given up" in each for each in lines), text
        assert line.incomplete == [str(source.id(line.table))]
        assert len([each for each in notices(file) if each["additional_data"].get("error")]) == len(texts)

        source.commit(Insert(line.table, row(2)))
        line.ask("good", source.harmless(kind, line.table, 2), kind)
        assert {("c", 2), ("r", 2)} <= {*line.steps()}
        assert line.incomplete == []
    assert "Traceback" not in caplog.text


def notices(file: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
