"""Kafka gets the records of a task: keys, values, tombstones, headers, times and order; what it refuses is an error."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tailrace.errors import SinkError
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.delivery import AtLeastOnce
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import consumed, records, topic


def delivery(servers: str, **properties: Any) -> AtLeastOnce:
    return AtLeastOnce(Settings({"bootstrap.servers": servers, **properties}))


def test_kafka_gets_keys_values_tombstones_headers_and_partitions(kafka: EmbeddedKafka) -> None:
    name = topic(kafka, partitions=3)
    sent = delivery(kafka.bootstrap)
    headers = [("h", b'{"a":1}'), ("h2", b"")]
    sent.send(records((name, 2, '{"id":1}', '{"op":"c"}', headers), (name, 2, '{"id":1}', None, [])))
    sent.send(records((name, 1, None, "é", [])))
    sent.finish()
    assert sent.count == 3
    found = [(m.partition(), m.key(), m.value(), m.headers()) for m in consumed(kafka, name)]
    assert found == [
        (1, None, "é".encode(), None),
        (2, b'{"id":1}', b'{"op":"c"}', headers),
        (2, b'{"id":1}', None, None),
    ]


def test_kafka_gets_the_time_that_a_record_has_and_else_its_own(kafka: EmbeddedKafka) -> None:
    name = topic(kafka)
    sent = delivery(kafka.bootstrap)
    row: tuple[Any, ...] = (name, 0, "k", "v", [])
    before = time.time_ns() // 1_000_000
    sent.send(records(row, row, times=[1_704_164_645_678_999, None]))
    sent.finish()
    given, own = (message.timestamp()[1] for message in consumed(kafka, name))
    assert (given, own >= before) == (1_704_164_645_678, True)
    with pytest.raises(SinkError, match="before 1970"):
        sent.send(records(row, times=[-1]))


def test_kafka_keeps_the_order_of_a_key_and_puts_it_where_java_would(kafka: EmbeddedKafka) -> None:
    name = topic(kafka, partitions=5)
    sent = delivery(kafka.bootstrap, **{"queue.buffering.max.messages": 100})
    sent.send(records(*[(name, None, f"key {n % 7}", str(n), []) for n in range(5000)]))
    sent.finish()
    assert sent.count == 5000
    by_key: dict[bytes, list[int]] = {}
    places: dict[bytes, set[int]] = {}
    for message in consumed(kafka, name):
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        by_key.setdefault(key, []).append(int(value))
        places.setdefault(key, set()).add(message.partition() or 0)
    assert by_key == {f"key {n}".encode(): list(range(n, 5000, 7)) for n in range(7)}
    # Of org.apache.kafka.common.utils.Utils.murmur2, masked, modulo 5.
    assert places == {key: {murmur2(key) % 5} for key in by_key}


def murmur2(data: bytes) -> int:
    """Kafka's default hash of a key, positive."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def test_a_record_too_large_is_an_error_with_its_topic_and_remedy(kafka: EmbeddedKafka) -> None:
    name = topic(kafka)
    with pytest.raises(SinkError, match=name) as caught:
        delivery(kafka.bootstrap).send(records((name, None, "k", "x" * 2_000_000, [])))
    assert "message.max.bytes" in str(caught.value)


def test_a_topic_the_broker_refuses_is_an_error(kafka: EmbeddedKafka) -> None:
    def send() -> None:
        sent = delivery(kafka.bootstrap)
        sent.send(records(("no/topic", None, "k", "v", [])))
        sent.finish()

    with pytest.raises(SinkError, match="topic no/topic") as caught:
        send()
    assert caught.value.remedy is not None
    assert "route" in caught.value.remedy


def test_an_unreachable_broker_is_an_error_with_its_address() -> None:
    sent = delivery("127.0.0.1:9", **{"message.timeout.ms": 1500})
    sent.send(records(("t", None, "k", "v", [])))
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:9") as caught:
        sent.finish()
    assert "bootstrap.servers" in str(caught.value)
    assert "a record was not delivered within 2 s (message.timeout.ms)" in str(caught.value)
    assert "refused" not in str(caught.value)


def test_settings_the_producer_does_not_know_are_an_error() -> None:
    with pytest.raises(SinkError, match=r"sink\.kafka\.properties"):
        delivery("127.0.0.1:9", **{"linger.mss": 5})
