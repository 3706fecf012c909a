"""The comparison forgives what differs from run to run, and nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import Event, compare, load

RECORDED = Path(__file__).parents[2] / "golden" / "postgres"


def recording(name: str) -> list[Event]:
    return load(RECORDED / name / "expected.jsonl")


def paths(expected: list[Event], found: list[Event], **rules: Any) -> list[str]:
    return [difference.path for difference in compare(expected, found, rules)]


def event(value: Any, key: Any = None, topic: str = "t", **more: Any) -> Event:
    return {"topic": topic, "partition": None, "key": key, "value": value, "headers": {}, **more}


def change(number: int, snapshot: str = "false", **source: Any) -> Event:
    envelope = {"op": "r", "before": None, "after": {"id": number}, "source": {"snapshot": snapshot, **source}}
    return event(envelope, key={"id": number})


@pytest.mark.parametrize("folder", sorted(RECORDED.iterdir()), ids=lambda folder: folder.name)
def test_a_recording_agrees_with_itself(folder: Path) -> None:
    assert not paths(recording(folder.name), recording(folder.name))


def test_another_run_agrees() -> None:
    expected, found = recording("basic-crud"), recording("basic-crud")
    for step, each in enumerate(found):
        each["headers"]["__debezium.context.runId"]["payload"] = "another"
        if each["value"] is not None:
            payload = each["value"]["payload"]
            payload["ts_ms"] += step
            payload["source"]["lsn"] += 1000
            payload["source"]["txId"] += 77
    assert not paths(expected, found)


@pytest.mark.parametrize(
    ("change_one", "path"),
    [
        (lambda event: event["value"]["payload"]["after"].update(id=1.5), "value.payload.after.id"),
        (lambda event: event["value"]["payload"]["source"].update(lsn=None), "value.payload.source.lsn"),
        (lambda event: event["value"]["payload"].pop("ts_us"), "value.payload.ts_us"),
        (lambda event: event["value"]["schema"]["fields"].pop(), "value.schema.fields (length)"),
        (lambda event: event["value"]["schema"]["fields"][0].update(optional=1), "value.schema.fields[0].optional"),
        (lambda event: event["key"]["payload"].update(id=None), "key.payload.id"),
        (lambda event: event["headers"].pop("__debezium.context.taskId"), "headers.__debezium.context.taskId"),
    ],
)
def test_one_change_is_one_difference(change_one: Any, path: str) -> None:
    found = recording("basic-crud")
    change_one(found[0])
    assert paths(recording("basic-crud"), found) == [path]


def test_missing_swapped_and_surplus_events_differ() -> None:
    expected = recording("basic-crud")
    assert paths(expected, expected[:-1]) == [""]
    assert paths(expected, [*expected, expected[-1]]) == [""]
    assert paths(expected, [expected[1], expected[0], *expected[2:]])
    elsewhere = copy.deepcopy(expected)
    elsewhere[0]["topic"] = "elsewhere"
    assert {found.topic for found in compare(expected, elsewhere)} == {expected[0]["topic"], "elsewhere"}


def test_transactions_are_distinguished_but_not_by_number() -> None:
    expected = [change(1, txId=10), change(2, txId=10), change(3, txId=11)]
    assert not paths(expected, [change(1, txId=500), change(2, txId=500), change(3, txId=900)])
    assert paths(expected, [change(1, txId=10), change(2, txId=11), change(3, txId=12)]) == [
        "value.source.txId",
        "value.source.txId",
    ]


def test_heartbeats_count_once() -> None:
    beats = [event({"ts_ms": number}, topic="__debezium-heartbeat.server1") for number in range(3)]
    assert not paths(beats, beats[:1])
    others = [event({"ts_ms": number}, topic="own") for number in range(3)]
    assert paths(others, others[:1]) == [""]
    assert not paths(others, others[:1], collapse_topics=["^own$"])


def test_rules_of_a_scenario() -> None:
    reads = [change(1, "incremental"), change(2, "incremental")]
    assert paths(reads, reads[::-1])
    assert not paths(reads, reads[::-1], unordered_reads=True)
    first, last = [change(1, "first")], [change(1, "last")]
    assert paths(first, last)
    assert not paths(first, last, any_snapshot_order=True)
    assert not paths(reads, [*reads, change(1, "incremental")], final_state=True)
    assert not paths([], first, ignore_topics=["^t$"])
    placed = [{**change(1), "partition": 3}]
    assert not paths([change(1)], placed)
    assert paths([change(1)], placed, partitions=True) == ["partition"]


def test_the_end_of_a_transaction_may_be_lost_where_the_connector_was_stopped() -> None:
    def marker(status: str, number: int, run: int = 0) -> Event:
        return event({"status": status, "id": f"{number}:1"}, topic="t.transaction", run=run)

    after = [marker("BEGIN", 2, run=1), marker("END", 2, run=1)]
    lost, whole = [marker("BEGIN", 1), *after], [marker("BEGIN", 1), marker("END", 1), *after]
    assert paths(lost, whole)
    assert not paths(lost, whole, lost_ends=True)
    assert paths(whole, lost, lost_ends=True)
    assert paths(lost, whole[:-1], lost_ends=True) == [""]
    in_one_run = [{**each, "run": 0} for each in lost]
    assert paths(in_one_run, whole, lost_ends=True)
    more = event({"id": 1}, run=1)
    assert not paths([marker("BEGIN", 1), more], [marker("BEGIN", 1), marker("END", 1), more], lost_ends=True)


@pytest.mark.parametrize("topic", ["t.transaction", "bookkeeping", "t.customers"])
def test_the_end_of_the_last_transaction_need_not_be_recorded(topic: str) -> None:
    """Whatever the topic is called, and only if it is not recorded."""

    def marker(status: str, number: int) -> Event:
        return event({"status": status, "id": f"{number}:1"}, topic=topic)

    first, second = ([marker("BEGIN", number), change(number), marker("END", number)] for number in (1, 2))
    whole = [*first, *second]
    assert not paths(whole[:-1], whole)
    assert not paths(whole[:-1], whole[:-1])
    assert not paths(whole, whole)
    assert paths(whole, whole[:-1]) == [""]
    assert paths([*first[:-1], *second], whole) != []
    assert paths(whole[:-1], [*whole, marker("END", 3)]) == [""]
    assert not paths(whole[:-1], [*whole, event({"ts_ms": 1}, topic="__debezium-heartbeat.t")], ignore_topics=["heart"])


def test_the_transaction_of_a_row_is_distinguished_but_not_by_number() -> None:
    expected = [event({"id": number, "__transaction_id": "{session}:5"}) for number in (1, 2)]
    assert not paths(expected, [event({"id": number, "__transaction_id": "{session}:7"}) for number in (1, 2)])
    others = [event({"id": number, "__transaction_id": f"{{session}}:{number}"}) for number in (1, 2)]
    assert paths(expected, others) == ["value.__transaction_id"]


def test_signal_windows_lose_ids_and_times() -> None:
    def row(number: int) -> Event:
        row = {
            "id": f"5ec7bd2f-1b1b-4a4b-8c8c-{number:012}-open",
            "data": f'{{"openWindowTimestamp": "2026-01-01T00:00:{number:02}Z"}}',
        }
        return event({"op": "c", "before": None, "after": row, "source": {}}, key={"id": row["id"]})

    assert not paths([row(1)], [row(2)])
