"""Signals by files: what is one, when its file goes, and that none is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.config import Config
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.signal import Signal
from tailrace.errors import ConfigError
from tailrace.snapshot import actions
from tailrace.snapshot.channels import MOST_FILES, Channels, send
from tailrace.snapshot.topic import settings

MINIMAL = {"database.hostname": "db", "database.user": "cdc", "database.dbname": "shop", "topic.prefix": "shop"}
AT_ONCE = {"signal.poll.interval.ms": "1"}


def configured(properties: Mapping[str, object]) -> Config:
    return resolve({**MINIMAL, **AT_ONCE, **properties})


def line(id_: str, **data: Any) -> str:
    return json.dumps({"id": id_, "type": "log", "data": data}) + "\n"


def polled(channels: Channels, files: tuple[str, ...] = ()) -> tuple[list[str], tuple[str, ...]]:
    """Ids of the signals that came, and the files they were in."""
    channels._next = 0
    arrived = channels.poll(files, None)
    assert arrived is not None
    return [signal.id for signal in arrived.signals], arrived.files


def test_a_folder_keeps_a_signal_until_an_offset_that_holds_it_is_committed(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "signals"
    channels = Channels(configured({"signal.folder": str(folder)}))
    assert polled(channels) == ([], ())
    send(str(folder), Signal("a", "log", '{"message": "x"}'))
    send(str(folder), Signal("b", "log", None))
    ids, files = polled(channels)
    assert ids == ["a", "b"]
    assert polled(channels) == (ids, files), "the batch was not committed: it is planned again"
    assert polled(channels, files) == ([], ())
    assert list(folder.iterdir()) == []


def test_a_poll_reads_some_files_and_the_next_one_the_others(tmp_path: Path) -> None:
    channels = Channels(configured({"signal.folder": str(tmp_path)}))
    for number in range(MOST_FILES + 5):
        send(str(tmp_path), Signal(str(number), "log", None))
    ids, files = polled(channels)
    assert len(files) == MOST_FILES
    more, files = polled(channels, files)
    assert ids + more == [str(number) for number in range(MOST_FILES + 5)]
    assert len(files) == 5


def test_what_is_being_written_is_no_signal_yet(tmp_path: Path) -> None:
    (tmp_path / "1.part").write_text(line("half"), encoding="utf-8")
    assert polled(Channels(configured({"signal.folder": str(tmp_path)}))) == ([], ())


def test_a_file_is_emptied_and_lost_by_no_crash(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "signals.txt"
    config = configured({"signal.enabled.channels": "file", "signal.file": str(file)})
    channels = Channels(config)
    assert polled(channels) == ([], ())
    file.write_text(line("a") + "no signal\n\n" + line("b"), encoding="utf-8")
    ids, first = polled(channels)
    assert (ids, file.read_text(encoding="utf-8")) == (["a", "b"], "")
    assert "ignored: no signal" in caplog.text
    file.write_text(line("a"), encoding="utf-8")
    assert polled(Channels(config))[0] == ["a", "b", "a"], "after a crash all are there"
    ids, second = polled(Channels(config), first)
    assert ids == ["a"]
    assert polled(Channels(config), second) == ([], ())
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("mode", ["a", "w"])
def test_who_keeps_the_file_open_may_write_on(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "signals.txt"
    channels = Channels(configured({"signal.enabled.channels": "file", "signal.file": str(file)}))
    files: tuple[str, ...] = ()
    with file.open(mode, encoding="utf-8") as stream:
        for name in ("a", "b", "c"):
            stream.write(line(name))
            stream.flush()
            ids, files = polled(channels, files)
            assert ids == [name]
    assert polled(channels, files) == ([], ())
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_crash_while_the_file_is_emptied_loses_nothing_and_repeats_nothing(tmp_path: Path, is_emptied: bool) -> None:
    file = tmp_path / "signals.txt"
    (tmp_path / "signals.txt.part").write_text(line("a"), encoding="utf-8")
    file.write_text("" if is_emptied else line("a") + line("b"), encoding="utf-8")
    channels = Channels(configured({"signal.enabled.channels": "file", "signal.file": str(file)}))
    ids, files = polled(channels)
    assert ids == (["a"] if is_emptied else ["a", "b"])
    assert polled(channels, files) == ([], ())
    assert list(tmp_path.iterdir()) == [file]


def test_channels_are_polled_no_more_often_than_configured(tmp_path: Path) -> None:
    channels = Channels(configured({"signal.folder": str(tmp_path), "signal.poll.interval.ms": "60000"}))
    assert channels.poll((), None) is not None
    assert channels.poll((), None) is None


def test_a_folder_that_cannot_be_read_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    channels = Channels(configured({"signal.folder": "nosuch://bucket/signals"}))
    polled(channels)
    polled(channels)
    assert caplog.text.count("signals cannot be read from nosuch://bucket/signals") == 1
    with pytest.raises(ConfigError, match="cannot be written"):
        send("nosuch://bucket/signals", Signal("a", "log", None))


def test_the_python_function_sends_to_a_pipeline_and_to_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    content = {"source": {"config": MINIMAL}, "sink": "console", "checkpoint": "state"}
    file.write_text(json.dumps(content), encoding="utf-8")
    id_ = tailrace.signal(file, "execute-snapshot", {"data-collections": ["public.t"]})
    folder = tmp_path / "state" / "signals"
    assert tailrace.signal(folder, "log", id="two") == "two"
    assert polled(Channels(configured({"signal.folder": str(folder)})))[0] == [id_, "two"]


def test_the_signal_log_and_user_supplied_actions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    actions.act(Signal("1", "log", '{"message": "at {} it was {}"}'), {"lsn": "0/1"})
    assert "at {'lsn': '0/1'} it was {}" in caplog.text
    actions.act(Signal("2", "log", "{}"), {})
    assert "signal 2 (log) has no message: {}" in caplog.text
    actions.act(Signal("3", "dance", None), {})
    assert "its type 'dance' is unknown" in caplog.text
    actions.act(Signal("4", "schema-changes", '{"database": "d", "changes": []}'), {})
    assert "signal 4 (schema-changes) is ignored: tables are described by the database itself" in caplog.text


def test_an_installed_action_is_found_by_the_signals_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "shop_actions.py").write_text(
        "seen = []\n\ndef dance(signal, offset):\n    seen.append((signal.id, offset))\n    signal.missing\n"
    )
    info = tmp_path / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tailrace.signal_actions]\ndance = shop_actions:dance\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    actions.act(Signal("4", "dance", None), {"lsn": "0/2"})
    import shop_actions  # type: ignore[import-not-found]

    assert shop_actions.seen == [("4", {"lsn": "0/2"})]
    assert "signal 4: the action dance (shop_actions:dance) failed" in caplog.text


def test_settings_of_the_consumer() -> None:
    given = {
        "signal.enabled.channels": "kafka",
        "signal.kafka.bootstrap.servers": "broker:9092",
        "signal.consumer.security.protocol": "SASL_SSL",
        "signal.consumer.sasl.jaas.config": 'org.apache.X required username="u" password="p w";',
        "signal.consumer.value.deserializer": "org.apache.StringDeserializer",
        "signal.consumer.enable.auto.commit": "true",
        "signal.consumer.auto.offset.reset": "latest",
    }
    found = settings(configured(given))
    found.pop("client.id")
    assert found == {
        "session.timeout.ms": 10000,
        "auto.offset.reset": "latest",
        "bootstrap.servers": "broker:9092",
        "group.id": "kafka-signal",
        "sasl.username": "u",
        "sasl.password": "p w",
        "security.protocol": "SASL_SSL",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"id": "\\ud800", "type": "log"}', '{"id": "1", "type": "log", "data": {"message": "\\udc00"}}'],
    ids=["nesting", "id", "data"],
)
def test_a_line_that_is_no_signal_is_logged_with_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "signals.txt").write_text(text + "\n" + line("good"), encoding="utf-8")
    given = {"signal.enabled.channels": "file", "signal.file": str(tmp_path / "signals.txt")}
    assert polled(Channels(configured(given)))[0] == ["good"]
    assert f"no signal, so it is ignored: {text}" in caplog.text
