"""Signals by files and by Kafka on real servers: carried out once, whatever ends the driver in between."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

import tailrace
from tailrace.connectors.base import Offset
from tailrace.errors import ConfigError
from tailrace.snapshot import topic as topic_module
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import ROWS, drained, keyed
from tests.behaviour.streams import eventually
from tests.conftest import Database

GIVEN = {"snapshot__mode": "no_data", "signal__poll__interval__ms": "1", "incremental__snapshot__chunk__size": "4"}
SNAPSHOT = {"data-collections": ["public.t"]}
ALL = [("r", n) for n in range(1, 11)]

Send = Callable[[str, str, object], None]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look waits for the broker's answer, however busy the machine is."""
    monkeypatch.setattr(topic_module, "_FIRST_SECONDS", 60.0)


@pytest.fixture
def table(database: Database) -> Database:
    """A table of ten rows, and none for signals."""
    database.execute(*ROWS)
    return database


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    """A topic of one's own."""
    name = f"signals-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
        future.result()
    return name


def produced(kafka: EmbeddedKafka, topic: str, *messages: tuple[str, object]) -> None:
    """Send keys and values."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for key, value in messages:
        producer.produce(topic, value if isinstance(value, str) else json.dumps(value), key)
    assert producer.flush(30) == 0


def topic_of(kafka: EmbeddedKafka, topic: str) -> dict[str, str]:
    """The properties of the channel by that topic."""
    return {
        "signal__enabled__channels": "kafka",
        "signal__kafka__topic": topic,
        "signal__kafka__bootstrap__servers": kafka.bootstrap,
        "signal__kafka__groupId": topic,
        "signal__kafka__poll__timeout__ms": "50",
    }


@pytest.fixture(params=["in-process", "file", "kafka"])
def channel(
    request: pytest.FixtureRequest, tmp_path: Path, topic: str, kafka: EmbeddedKafka
) -> tuple[dict[str, str], Send]:
    """Each channel: the properties it needs, and how a signal is sent."""
    folder, file = tmp_path / "signals", tmp_path / "signals.txt"
    folder.mkdir()

    def send(id_: str, kind: str, data: object) -> None:
        signal = {"id": id_, "type": kind, "data": data}
        if request.param == "in-process":
            assert isinstance(data, dict)
            tailrace.signal(folder, kind, data, id=id_)
        elif request.param == "file":
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(signal) + "\n")
        else:
            produced(kafka, topic, ("t", signal))

    given = {
        "in-process": {"signal__folder": str(folder)},
        "file": {"signal__enabled__channels": "file", "signal__file": str(file)},
        "kafka": topic_of(kafka, topic),
    }
    return {**GIVEN, **given[request.param]}, send


@contextmanager
def denied(kafka: EmbeddedKafka, topic: str) -> Iterator[None]:
    """Nobody has a right to the topic."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    where = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    what = (AclOperation.ALL, AclPermissionType.DENY)
    for future in admin.create_acls([AclBinding(*where, *what)]).values():
        future.result()
    while not admin.describe_acls(AclBindingFilter(*where, AclOperation.ANY, AclPermissionType.ANY)).result():
        time.sleep(0.05)
    yield
    for future in admin.delete_acls([AclBindingFilter(*where, *what)]).values():
        future.result()


def restarted(capture: Capture, offset: Offset) -> Capture:
    """A pipeline that goes on at that offset, by a new driver."""
    properties = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.close()
    second = Capture(capture.database, properties)
    second.offset = offset
    return second


@pytest.mark.parametrize("is_written", [True, False], ids=["after", "before"])
def test_a_signal_is_carried_out_once_wherever_the_driver_dies(
    table: Database, channel: tuple[dict[str, str], Send], is_written: bool
) -> None:
    """It dies before or after the offset of the batch that carries the signal out is written."""
    properties, send = channel
    with capturing(table, **properties) as capture:
        capture.step()
        before = capture.offset
        send("one", "execute-snapshot", SNAPSHOT)
        eventually(lambda: capture.plan() is not None and capture.offset != before)
        with closing(restarted(capture, capture.offset if is_written else before)) as second:
            assert keyed(drained(second)) == ALL
            with closing(restarted(second, second.offset)) as third:
                assert drained(third) == []


def test_an_idle_pipeline_is_moved_by_a_signal_and_rests_again(
    table: Database, channel: tuple[dict[str, str], Send], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    properties, send = channel
    with capturing(table, **properties) as capture:
        drained(capture)
        send("hello", "log", {"message": "hello there"})
        eventually(lambda: drained(capture) == [] and "hello there" in caplog.messages)
        drained(capture)
        assert caplog.messages.count("hello there") == 1


def test_signals_wait_for_a_pipeline_that_has_not_begun(table: Database, channel: tuple[dict[str, str], Send]) -> None:
    properties, send = channel
    send("early", "execute-snapshot", SNAPSHOT)
    with capturing(table, **properties) as capture:
        assert keyed(drained(capture)) == ALL


def test_malformed_messages_are_logged_and_those_of_other_pipelines_ignored(
    table: Database, topic: str, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    signal = {"type": "execute-snapshot", "data": SNAPSHOT}
    produced(kafka, topic, ("t", "{"), ("other", signal), ("t", '["x"]'), ("t", ""), ("t", signal))
    with capturing(table, **GIVEN, **topic_of(kafka, topic)) as capture:
        assert keyed(drained(capture)) == ALL
        assert capture.offset["snapshots"]["topic"] == 5
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    assert [place.offset for place in consumer.committed([TopicPartition(topic, 0)], timeout=30)] == [5]
    consumer.close()
    for text in ("ignored: {", 'ignored: ["x"]'):
        assert text in caplog.text


def test_a_broker_out_of_reach_stops_nothing(table: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "_FIRST_SECONDS", 0.5)
    given = {"signal__enabled__channels": "kafka", "signal__kafka__bootstrap__servers": "127.0.0.1:1"}
    with capturing(table, **GIVEN, **given) as capture:
        capture.step()
        table.execute("DELETE FROM t WHERE id = 3")
        assert keyed(drained(capture)) == [("d", 3)]


def test_signals_are_read_once_the_topic_is_readable(
    table: Database, topic: str, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """As after any other look that the broker refused, such as one before the group has its coordinator."""
    produced(kafka, topic, ("t", {"type": "execute-snapshot", "data": SNAPSHOT}))
    with capturing(table, **GIVEN, **topic_of(kafka, topic)) as capture:
        told = f"signals cannot be read from topic {topic}"
        with denied(kafka, topic):
            eventually(lambda: drained(capture) + drained(capture) != [] or told in caplog.text)
            assert drained(capture) + drained(capture) == []
        refusals = [text for text in caplog.messages if text.startswith(told)]
        assert refusals[-1].endswith(f"failed; grant the user Read on the topic and on the group {topic}")
        assert len(refusals) == len(set(refusals)), "told at every look"
        assert keyed(eventually(lambda: drained(capture))) == ALL


def test_wrong_settings_are_an_error_that_names_them(table: Database) -> None:
    with pytest.raises(ConfigError, match=r"signal\.kafka\.bootstrap\.servers"):
        Capture(table, {"signal.enabled.channels": "kafka"})
    given = {
        "signal__enabled__channels": "kafka",
        "signal__kafka__bootstrap__servers": "127.0.0.1:1",
        "signal__consumer__ssl__truststore__location": "/x.jks",
    }
    with capturing(table, **GIVEN, **given) as capture:
        capture.step()
        with pytest.raises(ConfigError, match=r"signal\.consumer\.\*: .*TrustStores are not supported.*\n.*librdkafka"):
            capture.step()
