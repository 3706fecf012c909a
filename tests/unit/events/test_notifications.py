"""Notifications by every channel, and what a channel that fails does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tailrace.connectors.notifications import INITIAL, STARTED, Notice, notify, scanned
from tailrace.connectors.postgres.config import resolve
from tailrace.errors import ConfigError

MINIMAL = {"database.hostname": "db", "database.user": "cdc", "database.dbname": "shop", "topic.prefix": "shop"}
TOLD = (Notice(INITIAL, STARTED), scanned(INITIAL, "public.t", "public.t").with_rows(3))


def notified(**properties: object) -> list[dict[str, Any]]:
    """What `notify` makes for a topic with these properties, dots written as two underscores."""
    given = {name.replace("__", "."): str(value) for name, value in properties.items()}
    batches = notify(resolve({**MINIMAL, **given}), TOLD)
    return [row for batch in batches for row in batch.rows.to_pylist()]


def test_every_channel_gets_the_same_notifications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    (tmp_path / "shop_notes.py").write_text("seen = []\n\ndef note(payload):\n    seen.append(payload)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "told.jsonl"
    records = notified(
        notification__enabled__channels="sink, log,file,callback",
        notification__sink__topic__name="notes",
        notification__file=file,
        notification__callback="shop_notes:note",
    )
    import shop_notes  # type: ignore[import-not-found]

    found = shop_notes.seen
    assert [note["type"] for note in found] == ["STARTED", "TABLE_SCAN_COMPLETED"]
    assert found[1]["additional_data"]["total_rows_scanned"] == "3"
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == found
    assert [json.loads(record["value"]) for record in records] == found
    assert [json.loads(text.partition("  ")[2]) for text in caplog.messages] == found


def test_a_channel_that_fails_is_logged_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notified(
        notification__enabled__channels="file,callback",
        notification__file=tmp_path / "none" / "told.jsonl",
        notification__callback="nowhere.at.all:note",
    )
    assert "told.jsonl cannot be written: No such file or directory" in caplog.text
    assert "notification.callback nowhere.at.all:note failed" in caplog.text


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"notification__enabled__channels": "file"}, r"notification\.file: A value is required"),
        ({"notification__enabled__channels": "callback"}, r"notification\.callback: A value is required"),
        ({"notification__callback": "just_a_name"}, "A function is expected"),
        ({"notification__enabled__channels": "jmx"}, "use sink, log, file, callback or http"),
    ],
)
def test_what_a_channel_needs(properties: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        notified(**properties)
