"""Continuous reconciliation step by step, without a server and without Spark: change files, and a Delta table."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tailrace.capture.capture import Capture
from tailrace.connectors.notifications import Notice
from tailrace.pipeline import continuous
from tailrace.pipeline.continuous import Continuous
from tailrace.pipeline.definition import Definition, from_content
from tailrace.pipeline.reconcile import ComparedTable, Reconciler
from tailrace.pipeline.verified import Verified, to_text
from tests.conformance.folder import FolderSource, install
from tests.conformance.subject import KEY, NOTE, VALUE, Insert, Update

install()

SCHEMA = pa.schema([(KEY, pa.int64()), (VALUE, pa.int64()), (NOTE, pa.string())])


class File:
    """A file in memory."""

    def __init__(self) -> None:
        self.text: str | None = None

    def read(self) -> str | None:
        return self.text

    def write(self, content: str) -> None:
        self.text = content


def rows(*keys: int) -> pa.Table:
    return pa.Table.from_pylist([{KEY: key, VALUE: 0, NOTE: None} for key in keys], SCHEMA)


class Stopped:
    """A pipeline that has read everything and rests: its checkpoint, and a replica of `items` with 30 rows."""

    def __init__(self, folder: Path) -> None:
        self.source = FolderSource(folder / "source")
        self.source.create("items")
        self.source.commit(*(Insert("items", {KEY: key, VALUE: 0, NOTE: None}) for key in range(1, 31)))
        config = {**self.source.properties("p"), "topic.prefix": "t", "table.include.list": r"main\.items"}
        content = {"source": {"connector": "folder", "config": config}, "sink": {"replica": {"path": "lake"}}}
        more = {"checkpoint": "state", "reconcile": {"continuous": True}}
        self.definition: Definition = from_content({**content, **more}, base=folder, where="p.yaml")
        self.replica = folder / "lake" / "box.main.items"
        write_deltalake(self.replica, rows(*range(1, 31)))
        self.state, self.batch = folder / "state", -1
        for name in ("offsets", "commits"):
            (self.state / name).mkdir(parents=True)
        (self.state / "metadata").write_text('{"id":"q"}', encoding="utf-8")
        self.read()

    def read(self) -> None:
        """Have the checkpoint say that everything is read."""
        capture = Capture(self.definition.package().connector(self.definition.config()))
        offset = capture.begin()
        while (end := capture.head(offset, None)) != offset:
            capture.plan(offset, end)
            offset = end
        self.batch += 1
        (self.state / "offsets" / str(self.batch)).write_text(f"v1\n{{}}\n{json.dumps(offset)}", encoding="utf-8")
        (self.state / "commits" / str(self.batch)).write_text("v1\n{}", encoding="utf-8")


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    monkeypatch.setattr(continuous, "PART_ROWS", 7)
    monkeypatch.setattr(continuous, "_PASS_SECONDS", 0.0)
    return Stopped(tmp_path)


def known(watch: Continuous) -> Verified:
    return watch.tables.get("box.main.items", Verified())


def until(watch: Continuous, is_so: Callable[[Verified], object]) -> Verified:
    for _ in range(20):
        watch.step()
        if is_so(known(watch)):
            return known(watch)
    raise AssertionError(watch.tables)


def test_a_table_is_verified_part_by_part_and_a_restart_goes_on(stopped: Stopped) -> None:
    file, begun = File(), time.time()
    watch = Continuous(stopped.definition, file)
    watch.step()
    watch.step()
    first = known(watch)
    assert (first.after, first.rows, first.percent, first.up_to) == (("14",), 14, 46, None)
    again = Continuous(stopped.definition, file)
    found = until(again, lambda each: each.up_to)
    assert found.up_to is not None
    assert found.ended is not None
    assert found.up_to == first.begun
    assert begun <= found.up_to <= found.ended <= time.time()
    assert (found.after, found.percent) == (None, 100)
    again.step()
    assert known(again).up_to == found.up_to, "the next pass counts once it is over"


def test_a_pass_in_the_order_of_another_key_begins_again(stopped: Stopped) -> None:
    file = File()
    file.write(to_text({"box.main.items": Verified(key=("other",), after=("29",), begun=1.0, rows=29, total=30)}))
    watch = Continuous(stopped.definition, file)
    watch.step()
    assert (known(watch).key, known(watch).after, known(watch).up_to) == ((KEY,), ("7",), None)


def test_the_rate_and_the_share_of_the_time_bound_the_work(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    now, compare = [100.0], Reconciler.compare

    def compared(*arguments: Any) -> ComparedTable:
        now[0] += 1.5
        return compare(*arguments)

    monkeypatch.setattr(Reconciler, "compare", compared)
    monkeypatch.setattr(continuous, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    assert Continuous(stopped.definition, File()).step() == pytest.approx(6), "a fifth of the time"
    settings = stopped.definition.reconcile
    assert settings is not None
    slow = stopped.definition.model_copy(update={"reconcile": settings.model_copy(update={"rate": 1})})
    slowly = Continuous(slow, File())
    monkeypatch.setattr(continuous, "_SHARE", 1.0)
    assert slowly.step() == pytest.approx(5.5), "7 rows at one a second, less the time of the work"
    monkeypatch.setattr(continuous, "_PASS_SECONDS", 60.0)
    monkeypatch.setattr(continuous, "PART_ROWS", 50)
    watch = Continuous(stopped.definition, File())
    watch.step()
    first = known(watch)
    assert first.up_to is not None
    assert watch.step() == 10.0, "a small table rests"
    assert known(watch) == first


@pytest.mark.parametrize(
    ("missing", "surplus", "said"),
    [
        pytest.param((1,), (), "1 missing (first id=1)", marks=pytest.mark.long),
        pytest.param((7,), (), "1 missing (first id=7)", marks=pytest.mark.long),
        ((8, 14), (), "2 missing (first id=8)"),
        pytest.param((30,), (), "1 missing (first id=30)", marks=pytest.mark.long),
        pytest.param((), (-5,), "1 surplus (first id=-5)", marks=pytest.mark.long),
        ((), (99, 200), "2 surplus (first id=99)"),
        pytest.param(tuple(range(8, 15)), (), "7 missing (first id=8)", marks=pytest.mark.long),
    ],
)
def test_wrong_rows_are_noticed_wherever_they_are(
    stopped: Stopped, caplog: pytest.LogCaptureFixture, missing: tuple[int, ...], surplus: tuple[int, ...], said: str
) -> None:
    if missing:
        DeltaTable(stopped.replica).delete(f"{KEY} IN ({', '.join(map(str, missing))})")
    if surplus:
        write_deltalake(stopped.replica, rows(*surplus), mode="append")
    told: list[Notice] = []
    watch = Continuous(stopped.definition, File(), told.append)
    with caplog.at_level(logging.ERROR):
        found = until(watch, lambda each: each.differs)
    assert found.differs.startswith(f"{said}, of {KEY} from the ")
    assert f"box.main.items differs from its source: {found.differs}. Run `tailrace reconcile FILE -t" in caplog.text
    for _ in range(6):
        watch.step()
    assert len({dict(each.data)["reason"] for each in told}) == len(told), "each difference is told once"
    assert told[0].type == "DIFFERS"
    assert dict(told[0].data) == {"table": "box.main.items", "reason": found.differs}
    write_deltalake(stopped.replica, rows(*range(1, 31)), mode="overwrite")
    found = until(watch, lambda each: not each.differs)
    assert (found.up_to is not None, found.since) == (True, None)
    assert told[-1].type == "EQUAL_AGAIN"


def test_a_row_that_is_on_its_way_is_not_wrong(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuous, "_TIMEOUT_SECONDS", 0.1)
    watch = Continuous(stopped.definition, File())
    stopped.source.commit(Update("items", 3, {VALUE: 1}))
    watch.step()
    assert not known(watch).differs
    assert "the pipeline" in known(watch).why
    assert (known(watch).after, known(watch).up_to) == (None, None), "it is tried again"


def test_of_a_history_the_rows_of_now_are_compared(stopped: Stopped) -> None:
    sink = from_content(
        {
            "source": {"config": {}},
            "sink": {"replica": {"path": str(stopped.replica.parent), "mode": "history"}},
            "checkpoint": "state",
        },
        base=stopped.replica.parent,
        where="p.yaml",
    ).sink
    definition = stopped.definition.model_copy(update={"sink": sink})
    now, stamp = rows(*range(1, 31)), pa.timestamp("us", "UTC")
    current = now.append_column("valid_to", pa.nulls(30, stamp))
    older = now.append_column("valid_to", pa.array([0] * 30, pa.int64()).cast(stamp))
    shutil.rmtree(stopped.replica)
    write_deltalake(stopped.replica, pa.concat_tables([current, older]))
    watch = Continuous(definition, File())
    assert not until(watch, lambda each: each.up_to).differs
    DeltaTable(stopped.replica).delete(f"{KEY} = 9 AND valid_to IS NULL")
    assert until(watch, lambda each: each.differs).differs.startswith("1 missing (first id=9)")
