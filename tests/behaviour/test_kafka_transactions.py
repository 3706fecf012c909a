"""Transactions of the Kafka sink on a real broker: who may write, what is skipped, what a reader sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from tailrace.errors import FencedError, SinkError
from tailrace.sinks.kafka import state, transactions
from tailrace.sinks.kafka.claim import ClusterClaim
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.transactions import ExactlyOnce
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed, denied, records, topic

SPLIT, NEXT = "range-1/0/1", "range-2/0/1"


class Case:
    """A pipeline's settings and its topic."""

    def __init__(self, kafka: EmbeddedKafka, **properties: Any) -> None:
        self.kafka, self.pipeline, self.topic = kafka, uuid4().hex, topic(kafka)
        self.settings = Settings(
            {"bootstrap.servers": kafka.bootstrap, **properties}, state_topic=f"state-{uuid4().hex}"
        )

    def claim(self, tasks: int = 1) -> ClusterClaim:
        """A run begins, in processes of its own."""
        transactions._senders.clear()
        return ClusterClaim(self.settings, self.pipeline, tasks)

    def writer(self, claim: ClusterClaim, batch: int = 0, task: int = 0, attempt: int = 0) -> ExactlyOnce:
        """A task's writer."""
        return ExactlyOnce(self.settings, claim.ticket(batch, 1), task, attempt)

    def write(
        self, claim: ClusterClaim, value: str, split: str = SPLIT, batch: int = 0, attempt: int = 0
    ) -> ExactlyOnce:
        """A whole task of one record."""
        writer = self.writer(claim, batch, attempt=attempt)
        if writer.starts(split):
            writer.send(self.record(value))
        writer.finish()
        return writer

    def record(self, value: str) -> Any:
        return records((self.topic, 0, "key", value, []))

    def values(self, isolation: str = "read_committed") -> list[str]:
        """What the topic holds."""
        return [(message.value() or b"").decode() for message in consumed(self.kafka, self.topic, isolation)]


@pytest.fixture
def case(kafka: EmbeddedKafka) -> Case:
    return Case(kafka)


def test_records_are_visible_when_their_split_is_finished(case: Case) -> None:
    writer = case.writer(case.claim())
    assert writer.starts(SPLIT)
    writer.send(case.record("1"))
    writer._delivery.flush()  # type: ignore[union-attr]
    assert (case.values(), case.values("read_uncommitted")) == ([], ["1"])
    writer.finish()
    assert case.values() == ["1"]


def test_a_split_that_is_committed_is_not_sent_again(case: Case) -> None:
    case.write(case.claim(), "1")
    claim = case.claim()
    again = case.write(claim, "1")
    assert (again.count, again.token) == (0, ""), "not even a producer is needed"
    case.write(claim, "2", NEXT)
    assert case.values() == ["1", "2"]


@pytest.mark.long
def test_another_range_under_the_same_batch_number_is_sent(case: Case) -> None:
    """As after a restored checkpoint."""
    case.write(case.claim(), "1", SPLIT, batch=7)
    case.write(case.claim(), "2", NEXT, batch=7)
    assert case.values() == ["1", "2"]


def test_splits_of_one_task_are_committed_one_by_one(case: Case) -> None:
    writer = case.writer(case.claim())
    for place in range(3):
        assert writer.starts(f"range/{place}/3")
        writer.send(case.record(str(place)))
    assert case.values() == ["0", "1"]
    writer.abandon()
    claim = case.claim()
    assert [case.writer(claim).starts(f"range/{place}/3") for place in range(3)] == [False, False, True]


def test_a_producer_stays_from_batch_to_batch(case: Case) -> None:
    claim = case.claim()
    first = case.write(claim, "1")
    claim.done([(0, first.token, first.end)])
    second = case.write(claim, "2", NEXT, batch=1)
    assert (second.token, second.end) == (first.token, 0), "the same producer, without a look at the state"
    claim.done([(0, second.token, second.end)])
    transactions._senders.clear()
    third = case.write(claim, "3", "range-3/0/1", batch=2)
    assert third.token != first.token, "another process wrote"
    assert third.end > 0
    assert case.values() == ["1", "2", "3"]


# How far a task came before its run was given up.
STEPS: dict[str, Callable[[ExactlyOnce, Case], None]] = {
    "ready": lambda writer, case: None,
    "sent": lambda writer, case: writer.send(case.record("old")),
    "flushed": lambda writer, case: (writer.send(case.record("old")), writer._delivery.flush())[1],  # type: ignore
}


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[] if step == "sent" else pytest.mark.long) for step in STEPS]
)
def test_a_task_of_an_earlier_run_is_cut_off(case: Case, step: str) -> None:
    earlier = case.writer(case.claim())
    assert earlier.starts(SPLIT)
    STEPS[step](earlier, case)
    case.write(case.claim(), "new")

    def go_on() -> None:
        earlier.send(case.record("older"))
        earlier.finish()

    with pytest.raises(FencedError, match="another run of this pipeline") as caught:
        go_on()
    assert "transactional.id.prefix" in str(caught.value)
    assert case.values() == ["new"]


def test_a_task_of_an_earlier_run_that_starts_late_stops(case: Case) -> None:
    late = case.writer(case.claim())
    newest = case.writer(case.claim())
    assert newest.starts(SPLIT)
    with pytest.raises(FencedError):
        late.starts(SPLIT)
    newest.send(case.record("new"))
    newest.finish()
    assert case.values() == ["new"]


@pytest.mark.long
def test_a_task_of_an_earlier_run_that_was_starting_stops(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cuts off the newest run's producer before it finds out; nothing is lost, that run's batch is repeated."""
    late = case.writer(case.claim())
    claim = case.claim()
    newest = case.writer(claim)
    assert newest.starts(SPLIT)
    looks = iter([state.TopicState(), None])
    read = state.read
    monkeypatch.setattr(state, "read", lambda *given, **how: next(looks, None) or read(*given, **how))
    with pytest.raises(FencedError):
        late.starts(SPLIT)

    def go_on() -> None:
        newest.send(case.record("new"))
        newest.finish()

    with pytest.raises(FencedError):
        go_on()
    case.write(case.claim(), "new")
    assert case.values() == ["new"]


@pytest.mark.long
def test_more_tasks_of_an_earlier_run_are_cut_off(case: Case) -> None:
    orphan = case.writer(case.claim(tasks=4), task=3)
    assert orphan.starts("range-1/3/4")
    orphan.send(case.record("old"))
    case.claim(tasks=1)
    claim = case.claim(tasks=1)
    case.write(claim, "new")
    with pytest.raises(FencedError):
        orphan.finish()
    assert case.values() == ["new"]


@pytest.mark.long
def test_an_earlier_run_that_needs_more_tasks_stops(case: Case) -> None:
    earlier = case.claim(tasks=1)
    claim = case.claim(tasks=1)
    with pytest.raises(FencedError):
        earlier.ticket(batch=1, tasks=2)
    case.write(claim, "new")
    assert case.values() == ["new"]


@pytest.mark.long
def test_a_run_that_needs_more_tasks_leaves_their_number_to_the_next(case: Case) -> None:
    claim = case.claim(tasks=1)
    orphan = ExactlyOnce(case.settings, claim.ticket(batch=0, tasks=3), 2, 0)
    assert orphan.starts("range-1/2/3")
    orphan.send(case.record("old"))
    case.claim(tasks=1)
    with pytest.raises(FencedError):
        orphan.finish()
    assert case.values() == []


def test_an_attempt_cuts_off_the_one_before(case: Case) -> None:
    claim = case.claim()
    lost = case.writer(claim)
    assert lost.starts(SPLIT)
    lost.send(case.record("lost"))
    case.write(claim, "1", attempt=1)
    with pytest.raises(FencedError):
        lost.finish()
    assert case.values() == ["1"]


def test_an_attempt_skips_what_the_one_before_committed(case: Case) -> None:
    claim = case.claim()
    case.write(claim, "1")
    assert case.write(claim, "1", attempt=1).count == 0
    assert case.values() == ["1"]


def test_an_attempt_that_starts_after_a_later_batch_was_written_stops(case: Case) -> None:
    claim = case.claim()
    late = case.writer(claim)
    first = case.write(claim, "1", attempt=1)
    claim.done([(0, first.token, first.end)])
    case.write(claim, "2", NEXT, batch=1)
    # A compacted topic has the last record of a key alone.
    late._splits = set()
    with pytest.raises(FencedError):
        late.starts("range-0/0/1")
    assert case.values() == ["1", "2"]


def test_the_state_is_read_behind_a_transaction_of_another_pipeline(case: Case) -> None:
    """What is committed behind an open transaction cannot be seen before that has ended; writing goes on."""
    claim = case.claim()
    other = Case(case.kafka)
    other.settings = case.settings
    open_one = other.writer(other.claim())
    assert open_one.starts(SPLIT)
    open_one.send(other.record("1"))
    open_one._delivery.produce(case.settings.state_topic, 0, *state.run_record("other", "run", 1), [])  # type: ignore
    open_one._delivery.flush()  # type: ignore[union-attr]
    case.write(claim, "1")
    found = state.read(case.settings, case.pipeline, 0, is_committed=False)
    assert found.splits == {SPLIT}
    open_one.abandon()
    assert state.read(case.settings, case.pipeline, 0).splits == {SPLIT}


def test_a_long_split_is_committed_in_parts(
    kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = [0.0]
    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later[0]))
    case = Case(kafka, **{"transaction.timeout.ms": 600_000})
    claim = case.claim()
    writer = case.writer(claim)
    assert writer.starts(SPLIT)
    writer.send(case.record("1"))
    later[0] = 301.0
    writer.send(case.record("2"))
    assert case.values() == ["1", "2"]
    assert "transaction.timeout.ms" in caplog.text
    writer.finish()
    assert case.writer(case.claim()).starts(SPLIT) is False


@pytest.mark.long
def test_a_transaction_that_the_brokers_gave_up_is_an_error_with_its_setting(kafka: EmbeddedKafka) -> None:
    case = Case(kafka, **{"transaction.timeout.ms": 3000, "message.timeout.ms": 2900, "socket.timeout.ms": 2900})
    writer = case.writer(case.claim())
    assert writer.starts(SPLIT)
    writer.send(case.record("1"))
    time.sleep(6)
    with pytest.raises(SinkError, match="the brokers aborted it after 3 s") as caught:
        writer.finish()
    assert "transaction.timeout.ms" in str(caught.value.remedy)
    assert case.values() == []


def test_a_timeout_that_the_brokers_do_not_allow_is_an_error_with_both_settings(kafka: EmbeddedKafka) -> None:
    case = Case(kafka, **{"transaction.timeout.ms": 1_000_000})
    with pytest.raises(SinkError, match=r"transactional\.id tailrace-") as caught:
        case.claim()
    assert "transaction.max.timeout.ms" in str(caught.value.remedy)


@pytest.mark.long  # test_sinks has a pipeline whose brokers are down
def test_brokers_out_of_reach_are_an_error_with_their_address() -> None:
    settings = Settings({"bootstrap.servers": "127.0.0.1:9", "message.timeout.ms": 1500})
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:9") as caught:
        ClusterClaim(settings, "pipeline", 1)
    assert "bootstrap.servers" in str(caught.value.remedy)


def test_a_transactional_id_without_rights_is_an_error_with_the_command(case: Case) -> None:
    id_ = case.settings.transactional_id(case.pipeline, 0)
    with (
        denied(case.kafka, ResourceType.TRANSACTIONAL_ID, id_, AclOperation.WRITE),
        pytest.raises(SinkError, match=id_) as caught,
    ):
        case.claim()
    assert "kafka-acls.sh" in str(caught.value.remedy)
    assert "at-least-once" in str(caught.value.remedy)


@pytest.mark.parametrize("operation", [AclOperation.ALL, AclOperation.READ, AclOperation.WRITE], ids=str)
def test_a_state_topic_without_rights_is_an_error_with_the_command(case: Case, operation: AclOperation) -> None:
    name = case.settings.state_topic
    state.prepare(case.settings)
    with (
        denied(case.kafka, ResourceType.TOPIC, name, operation),
        pytest.raises(SinkError, match=name) as caught,
    ):
        case.claim()
    assert "kafka-acls.sh" in str(caught.value.remedy)


@pytest.mark.parametrize("operation", [AclOperation.ALL, AclOperation.WRITE], ids=str)
def test_a_topic_without_rights_is_an_error_with_the_command(case: Case, operation: AclOperation) -> None:
    claim = case.claim()
    with (
        denied(case.kafka, ResourceType.TOPIC, case.topic, operation),
        pytest.raises(SinkError, match=case.topic) as caught,
    ):
        case.write(claim, "1")
    assert "kafka-acls.sh" in str(caught.value.remedy)


def test_a_topic_of_a_name_that_kafka_does_not_allow_is_an_error_with_a_remedy(case: Case) -> None:
    claim = case.claim()
    case.topic = "no/topic"
    with pytest.raises(SinkError, match="topic no/topic") as caught:
        case.write(claim, "1")
    assert "route" in str(caught.value.remedy)


def test_no_right_to_a_consumer_group_is_needed(case: Case) -> None:
    with denied(case.kafka, ResourceType.GROUP, f"tailrace-{case.pipeline}", AclOperation.ALL):
        case.write(case.claim(), "1")
    assert case.values() == ["1"]


def test_a_state_topic_that_is_not_compacted_is_an_error_with_the_command(case: Case) -> None:
    name = case.settings.state_topic
    admin = AdminClient({"bootstrap.servers": case.kafka.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    with pytest.raises(SinkError, match="deletes the state") as caught:
        case.claim()
    assert "kafka-configs.sh" in str(caught.value.remedy)


def test_a_state_topic_that_others_write_to_is_an_error(case: Case) -> None:
    state.prepare(case.settings)
    producer = Producer({"bootstrap.servers": case.kafka.bootstrap})
    producer.produce(case.settings.state_topic, b"text", b"key")
    assert producer.flush(30) == 0
    with pytest.raises(SinkError, match="offset 0 is no state") as caught:
        case.claim()
    assert "state.topic" in str(caught.value.remedy)


def test_a_state_of_a_newer_version_is_an_error(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(state, "VERSION", 2)
        case.claim()
    with pytest.raises(SinkError, match="version 2"):
        case.claim()


@pytest.mark.long
def test_pipelines_share_a_state_topic(case: Case) -> None:
    other = Case(case.kafka)
    other.settings = replace(case.settings)
    case.write(case.claim(), "1")
    other.write(other.claim(), "2")
    assert (case.values(), other.values()) == (["1"], ["2"])
    assert case.write(case.claim(), "1").count == other.write(other.claim(), "2").count == 0
