"""Offsets by Kafka Connect's REST interface: what is changed, and what is refused with which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailrace.errors import ConfigError, SourceError
from tailrace.operate import offsets
from tailrace.operate.server import Refusal
from tailrace.operate.status import Live
from tailrace.operate.watch import Figures
from tailrace.pipeline import reset as resetting
from tailrace.pipeline import run_state
from tailrace.pipeline.checkpoint import CheckpointBatch, CheckpointState
from tailrace.pipeline.files import LocalFile
from tailrace.pipeline.lease import Lease
from tailrace.pipeline.run_state import LEASE, RunState
from tests.unit.operate.made import figures

PARTITION = {"server": "shop.prefix"}


def stopped(found: Figures) -> Figures:
    return replace(found, status=replace(found.status, run=RunState("stopped"), live=None))


def patched(found: Figures, offset: Any, partition: Any = PARTITION) -> Any:
    return offsets.changed("PATCH", found, {"offsets": [{"partition": partition, "offset": offset}]})


def test_the_stored_offset_may_be_set_again_and_no_other() -> None:
    found = stopped(figures())
    (entry,) = offsets.stored(found)["offsets"]
    done = patched(found, entry["offset"])
    assert (done.status, done.body) == (
        200,
        {"message": "The offsets for this connector have been altered successfully"},
    )
    for other in ({**entry["offset"], "position": "0/181"}, {}, {"lsn": 5}, "0/180", 7):
        with pytest.raises(Refusal, match="would be lost or come twice") as refused:
            patched(found, other)
        assert refused.value.status == 400


@pytest.mark.parametrize(
    "body",
    [None, {}, [], {"offsets": []}, {"offsets": {}}, {"offsets": "x"}, {"offsets": ["x"]}, {"offsets": [{}]}],
)
def test_a_body_without_offsets_is_refused_before_anything_else(body: Any) -> None:
    with pytest.raises(Refusal, match=r"need to be provided|one partition") as refused:
        offsets.changed("PATCH", figures(), body)
    assert refused.value.status == 400


def test_partitions_that_are_not_there_are_refused() -> None:
    for partition in ({"server": "other"}, {}, None, {**PARTITION, "database": "d"}):
        with pytest.raises(Refusal, match="a pipeline has one partition"):
            patched(stopped(figures()), None, partition)
    twice = {"offsets": [{"partition": PARTITION, "offset": None}] * 2}
    with pytest.raises(Refusal, match="send one entry"):
        offsets.changed("PATCH", stopped(figures()), twice)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_only_a_stopped_pipeline_forgets_its_position(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reset = list[str]()

    def forget(definition: Any) -> list[str]:
        reset.append("")
        return [f"{definition.name} is reset"]

    monkeypatch.setattr(offsets, "reset", forget)
    body = {"offsets": [{"partition": PARTITION, "offset": None}]}
    running = figures()
    paused = replace(running, status=replace(running.status, live=Live(is_paused=True)))
    for each in (running, paused):
        with pytest.raises(Refusal, match=r"STOPPED state .*/connectors/shop/stop"):
            offsets.changed(method, each, body)
    assert not reset
    done = offsets.changed(method, stopped(figures()), body)
    word = "altered" if method == "PATCH" else "reset"
    said = f"The offsets for this connector have been {word} successfully; shop is reset"
    assert done.body == {"message": said}


def test_what_keeps_an_offset_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> list[str]:
        raise SourceError("is being read by server process 7", where="slot s", remedy="Stop it.")

    monkeypatch.setattr(offsets, "reset", fail)
    with pytest.raises(Refusal, match="slot s: is being read by server process 7") as refused:
        offsets.changed("DELETE", stopped(figures()), None)
    assert refused.value.status == 400


def test_sinks_and_checkpoints_that_cannot_be_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    files = figures(sink={"parquet": {"path": "out"}}).definition
    with pytest.raises(ConfigError, match="remembers the micro-batches"):
        resetting.reset(files)
    remote = figures().definition.model_copy(update={"checkpoint": "s3://bucket/state"})
    monkeypatch.setattr(run_state, "run_state", lambda _: RunState("stopped"))
    monkeypatch.setattr(resetting, "file_system", lambda _: (object(), "bucket/state"))
    with pytest.raises(ConfigError, match="where folders cannot be moved"):
        resetting.reset(remote)
    monkeypatch.setattr(run_state, "run_state", lambda _: RunState("running"))
    with pytest.raises(ConfigError, match="the pipeline moves its position"):
        resetting.reset(remote)


def test_a_checkpoint_is_moved_aside_only_once_the_server_has_dropped_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    definition = figures().definition.model_copy(update={"checkpoint": str(state)})
    begun = CheckpointState(CheckpointBatch(0, {"phase": "stream"}), None)
    monkeypatch.setattr(resetting, "position_of", lambda _: begun)

    class Admin:
        def drop_at_stop(self, begun: object) -> None:
            ended.append(begun)

        def drop(self, begun: object) -> list[str]:
            with pytest.raises(ConfigError, match="in use by another run"):
                Lease(LocalFile(state / LEASE)).acquire()
            if fails:
                raise SourceError("is away")
            return ["slot s: dropped"]

    monkeypatch.setattr(type(definition), "admin", lambda self: Admin())
    fails, ended = True, list[object]()
    with pytest.raises(SourceError):
        resetting.reset(definition)
    assert (state.is_dir(), ended) == (True, [begun.offsets]), "a reader that is left ends first"
    assert list(state.iterdir()) == [], "a run may start again"
    fails = False
    done = resetting.reset(definition)
    (aside,) = tmp_path.glob("state.reset-*")
    assert done == ["slot s: dropped", f"the former checkpoint is {aside}"]
    assert not state.exists()
    assert list(aside.iterdir()) == []
