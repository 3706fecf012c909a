"""Kafka topics for tests: created, read to their end (committed records or all), and closed to a user by ACLs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
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

from tailrace.events.headers import HEADERS
from tailrace.testing.kafka import EmbeddedKafka

Record = tuple[str, int | None, str | None, str | None, list[tuple[str, bytes]]]


def records(*rows: Record, times: Sequence[int | None] | None = None) -> pa.RecordBatch:
    """Rows of the `kafka` shape; `times` are microseconds."""
    topics, partitions, keys, values, headers = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "key": pa.array(keys, pa.string()),
            "value": pa.array(values, pa.string()),
            "headers": pa.array([[{"key": k, "value": v} for k, v in pairs] for pairs in headers], HEADERS),
            "timestamp": pa.array(times or [None] * len(rows), pa.timestamp("us", "UTC")),
        }
    )


def topic(kafka: EmbeddedKafka, partitions: int = 1, name: str | None = None) -> str:
    """A new topic."""
    name = name or f"t-{uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result()
    return name


def consumed(kafka: EmbeddedKafka, name: str, isolation: str = "read_committed") -> Iterator[Message]:
    """Everything in a topic, partition by partition; with `read_uncommitted` what is not or never committed as well."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "tests", "isolation.level": isolation}
    # An end of a partition is told by an answer without records, which the broker would hold back for half a second.
    quick = {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, **quick})
    try:
        for partition in consumer.list_topics(name, timeout=60).topics[name].partitions:
            consumer.assign([TopicPartition(name, partition, 0)])
            deadline = time.monotonic() + 120
            while True:
                assert time.monotonic() < deadline
                message = consumer.poll(1)
                # A tombstone is falsy: ask for None.
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    break
                yield message
    finally:
        consumer.close()


@contextmanager
def denied(kafka: EmbeddedKafka, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
    """A right that everybody lacks meanwhile."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    where = (kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    # With a rule for it, what no rule allows is refused.
    rules = [(*where, AclOperation.ALL, AclPermissionType.ALLOW), (*where, operation, AclPermissionType.DENY)]
    for future in admin.create_acls([AclBinding(*rule) for rule in rules]).values():
        future.result()
    while len(admin.describe_acls(AclBindingFilter(*where, AclOperation.ANY, AclPermissionType.ANY)).result()) < 2:
        time.sleep(0.05)
    try:
        yield
    finally:
        for future in admin.delete_acls([AclBindingFilter(*rule) for rule in rules]).values():
            future.result()
