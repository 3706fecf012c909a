"""Up to which time a pipeline and its tables are complete: the rule, and what is stored and published of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.connectors.postgres.package import PostgresPackage
from tailrace.errors import ConfigError, SinkError
from tailrace.pipeline import complete
from tailrace.pipeline.complete import Completeness, CompleteWatch, Held, begin, clock_warnings, following, from_text
from tailrace.sinks.replica.states import ASIDE, COMPLETE, GONE, INCOMPLETE, READING, TableState

CONFIG = PostgresPackage().resolve(
    {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
)


class File:
    """A file in memory, which may be full."""

    def __init__(self, text: str | None = None) -> None:
        self.text, self.is_full = text, False

    def read(self) -> str | None:
        return self.text

    def write(self, content: str) -> None:
        if self.is_full:
            raise ConfigError("the file cannot be used: No space left on device", where="complete.json")
        self.text = content


def states(**of: str) -> dict[str, TableState]:
    return {f"public.{table}": TableState(state, 0.0) for table, state in of.items()}


def progress(until: int | None, batch: int = 1, **offset: Any) -> dict[str, Any]:
    latest = {} if until is None else {"complete_us": until}
    return {"batchId": batch, "sources": [{"latestOffset": latest, "endOffset": offset}]}


def test_all_values_advance_while_every_table_is_complete() -> None:
    assert following(Completeness(), 5, states(a=COMPLETE), Held()) == Completeness(5, {"public.a": 5})
    before = Completeness(5, {"public.a": 5})
    assert following(before, 9, states(a=COMPLETE, b=COMPLETE), Held()) == Completeness(
        9, {"public.a": 9, "public.b": 9}
    )
    assert following(before, 3, states(a=COMPLETE), Held()) == before, "it never goes back"
    assert following(Completeness(), 5, {}, Held()) == Completeness(5), "a sink without tables"


@pytest.mark.parametrize("state", [READING, INCOMPLETE, ASIDE])
def test_a_table_that_is_not_complete_keeps_its_value_and_the_pipeline_its_own(state: str) -> None:
    before = Completeness(5, {"public.a": 5, "public.b": 5})
    assert following(before, 9, states(a=COMPLETE, b=state), Held()) == Completeness(5, {"public.a": 9, "public.b": 5})
    assert following(Completeness(), 9, states(b=state), Held()) == Completeness()


def test_a_table_that_is_gone_or_removed_holds_nothing_up() -> None:
    before = Completeness(5, {"public.a": 5, "public.b": 5})
    after = Completeness(9, {"public.a": 9, "public.b": 5})
    assert following(before, 9, states(a=COMPLETE, b=GONE), Held()) == after
    assert following(before, 9, states(a=COMPLETE, b=COMPLETE), Held(removed={"public.b"})) == after


def test_a_table_that_is_asked_for_or_given_up_counts_as_incomplete() -> None:
    request = {"table": "public.b", "signal": "s", "kind": "incremental", "condition": None, "key": None}
    snapshots = {"handled": [], "queue": [request], "last": None, "maximum": None, "rows": 0, "paused": False}
    held = Held.of(CONFIG, {"snapshots": {**snapshots, "undo": None, "tables": {"public.c": False, "public.d": True}}})
    assert held == Held({"public.b"}, {"public.c"})
    found = following(Completeness(5), 9, states(a=COMPLETE, b=COMPLETE, c=COMPLETE, d=COMPLETE), held)
    assert found == Completeness(5, {"public.a": 9, "public.d": 9})
    given_up = {"incomplete": [{"table": "public.b", "why": "w", "since_ms": 1, "of_keys": False}]}
    assert Held.of(CONFIG, {"snapshots": {**snapshots, "queue": [], "undo": None, **given_up}}).lacking == {"public.b"}


def test_a_table_whose_rows_a_snapshot_replaces_has_no_value_and_nor_has_the_pipeline_until_all_are_read() -> None:
    file, published = File(), list[Completeness]()
    known = {**states(a=COMPLETE, b=COMPLETE)}
    watch = CompleteWatch(file, CONFIG, lambda: known, published.append)
    watch.see(progress(5))
    known["public.b"] = TableState(READING, 0.0, request="snapshot s")
    watch.see(progress(None, batch=2))
    assert from_text(file.text or "") == Completeness(None, {"public.a": 5})
    assert published == [Completeness(5, {"public.a": 5, "public.b": 5}), Completeness(None, {"public.a": 5})]
    known["public.b"] = TableState(READING, 0.0, request="a signal")
    watch.see(progress(9, batch=3))
    assert from_text(file.text or "") == Completeness(None, {"public.a": 9}), "a copy is read, which was not known"
    known["public.b"] = TableState(COMPLETE, 0.0)
    watch.see(progress(11, batch=4))
    assert from_text(file.text or "") == Completeness(11, {"public.a": 11, "public.b": 11})


def test_what_is_said_beside_a_replica_is_withdrawn_under_a_new_checkpoint_alone() -> None:
    published = list[Completeness]()
    begin(File(), published.append)
    begin(File('{"version": 1, "until_us": 5, "tables": {}}'), published.append)
    assert published == [Completeness()]


def test_a_run_goes_on_from_what_a_killed_one_has_stored() -> None:
    file = File()
    CompleteWatch(file, CONFIG, lambda: states(a=COMPLETE), None).see(progress(2_500_000))
    assert file.text is not None
    stored = from_text(file.text)
    assert (stored.text(), stored.text("public.a")) == ("1970-01-01T00:00:02.500+00:00",) * 2
    again = CompleteWatch(file, CONFIG, lambda: states(a=READING), None)
    again.see(None)
    again.see(progress(None))
    again.see(progress(1_000_000))
    assert from_text(file.text) == stored
    again.see(progress(3_000_000))
    assert from_text(file.text) == stored


def test_a_damaged_file_is_written_again(caplog: pytest.LogCaptureFixture) -> None:
    file = File('{"version": 1, "unt')
    CompleteWatch(file, CONFIG, dict, None).see(progress(7))
    assert from_text(file.text or "") == Completeness(7)
    assert "complete.json in the checkpoint cannot be read" in caplog.text


def test_what_cannot_be_stored_stops_nothing_is_logged_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    file = File()
    watch = CompleteWatch(file, CONFIG, dict, None)
    file.is_full = True
    watch.see(progress(7))
    watch.see(progress(8))
    assert caplog.text.count("No space left") == 1
    file.is_full = False
    watch.see(progress(8))
    assert json.loads(file.text or "")["until_us"] == 8


def test_the_table_beside_a_replica_is_written_after_a_micro_batch_and_rarely_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, published, is_away = 100.0, list[Completeness](), False

    def publish(value: Completeness) -> None:
        if is_away:
            raise SinkError("the storage is away")
        published.append(value)

    monkeypatch.setattr("tailrace.pipeline.complete.time", SimpleNamespace(monotonic=lambda: now))
    watch = CompleteWatch(File(), CONFIG, dict, publish)
    watch.see(progress(1, batch=1))
    watch.see(progress(2, batch=2))
    assert [each.until_us for each in published] == [1]
    now += complete._BUSY_SECONDS
    watch.see(progress(3, batch=2))
    now += complete._BUSY_SECONDS
    watch.see(progress(4, batch=2))
    assert [each.until_us for each in published] == [1, 3], "nothing new: a minute is soon enough"
    now += complete._QUIET_SECONDS
    is_away = True
    watch.see(progress(5, batch=2))
    is_away = False
    watch.see(progress(6, batch=2), is_last=True)
    assert [each.until_us for each in published] == [1, 3, 6]


def test_a_clock_of_the_server_that_is_ahead_is_a_warning() -> None:
    assert clock_warnings(Completeness(), 0.0) == ()
    assert clock_warnings(Completeness(1_059_000_000), 1000.0) == ()
    (warning,) = clock_warnings(Completeness(4_600_000_000), 1000.0)
    assert (warning.name, warning.ok, warning.remedy) == ("clock", None, "have both clocks follow NTP")
    assert "complete up to 1970-01-01T01:16:40.000+00:00 by the database's clock, 3,600 s ahead" in warning.what
