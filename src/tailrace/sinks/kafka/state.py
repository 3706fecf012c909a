"""Reads and writes the state topic: which run of a pipeline may write, and which splits are committed.

A compacted topic of one partition, which pipelines may share. Keys and values are JSON:

- `{"pipeline"}`, when a run begins: `version`, `run` and `tasks`, the number of transactional ids that the pipeline may
  have used so far. The last record names the newest run.
- `{"pipeline", "split"}`, in the transaction of a split, which is named by its place: `version`, `run`, `batch`, the
  label `split`, and the number of `records`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tailrace.errors import SinkAwayError, SinkError
from tailrace.sinks.kafka.client import REACH, Settings, library, new_producer, refused
from tailrace.sinks.kafka.delivery import Delivery

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message
    from confluent_kafka.admin import AdminClient

log = logging.getLogger(__name__)

VERSION = 1
_TOPIC = {
    "cleanup.policy": "compact",
    # Each start reads the whole topic, so it should stay small. Some hosted clusters allow no smaller segments.
    "segment.bytes": "52428800",
    "min.cleanable.dirty.ratio": "0.1",
}
_TELL_SECONDS = 5  # guessed
_FOREIGN = "a transaction that another pipeline has open there"


@dataclass
class TopicState:
    """What a part of the topic says of a pipeline. `end` is the offset behind it, `run` the newest of all `runs`.

    `batch` is the newest of `run`.
    """

    end: int = 0
    run: str | None = None
    runs: set[str] = field(default_factory=set)
    tasks: int = 0
    batch: int = -1
    splits: set[str] = field(default_factory=set)

    def add(self, state: dict[str, Any]) -> None:
        """Take a record of the pipeline into account."""
        if "split" not in state:
            if state["run"] != self.run:
                self.run, self.batch = state["run"], -1
            self.runs.add(state["run"])
            self.tasks = state["tasks"]
            return
        self.splits.add(state["split"])
        if self.run is None or state["run"] == self.run:
            self.batch = max(self.batch, state["batch"])


def run_record(pipeline: str, run: str, tasks: int) -> tuple[str, str]:
    """Key and value that say which run a pipeline has, and how many transactional ids."""
    return json.dumps({"pipeline": pipeline}), json.dumps({"version": VERSION, "run": run, "tasks": tasks})


def split_record(pipeline: str, run: str, batch: int, split: str, records: int) -> tuple[str, str]:
    """Key and value that say that a split is committed."""
    _, place, _ = split.split("/")
    value = {"version": VERSION, "run": run, "batch": batch, "split": split, "records": records}
    return json.dumps({"pipeline": pipeline, "split": int(place)}), json.dumps(value)


def register(settings: Settings, pipeline: str, run: str, tasks: int) -> None:
    """Make a run the pipeline's newest. Raises SinkError."""
    delivery = Delivery(new_producer(settings.producer), settings)
    delivery.produce(settings.state_topic, 0, *run_record(pipeline, run, tasks), [])
    delivery.flush()


def read(settings: Settings, pipeline: str, since: int, *, is_committed: bool = True) -> TopicState:
    """What the topic says of a pipeline from an offset on, up to where the topic ends now. Raises SinkError.

    With `is_committed`, the transactions that are open there are waited for; without, what they wrote counts.
    """
    topic_state, where = TopicState(), _where(settings)

    def take(message: Message) -> None:
        state = _state(message, pipeline, where)
        if state is not None:
            topic_state.add(state)

    topic_state.end = _read_to_end(settings, f"{settings.prefix}{pipeline}", since, take, is_committed=is_committed)
    return topic_state


def splits(settings: Settings) -> dict[str, set[str]]:
    """The labels of the splits that the topic has of each pipeline. Raises SinkError."""
    labels: dict[str, set[str]] = {}

    def take(message: Message) -> None:
        pipeline, value = json.loads(message.key() or b"{}").get("pipeline"), json.loads(message.value() or b"{}")
        if pipeline is not None and value:
            labels.setdefault(pipeline, set()).update(filter(None, [value.get("split")]))

    _read_to_end(settings, f"{settings.prefix}status", 0, take, is_committed=False)
    return labels


def _read_to_end(
    settings: Settings, group: str, since: int, take: Callable[[Message], None], *, is_committed: bool
) -> int:
    """Take the records from an offset on; the offset where the topic ended."""
    kafka = library()
    consumer: Consumer = kafka.Consumer(
        {
            "group.id": group,
            **settings.connection,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if is_committed else "read_uncommitted",
            "fetch.wait.max.ms": 10,
        },
        logger=log,
    )
    try:
        consumer.assign([kafka.TopicPartition(settings.state_topic, 0, since)])
        return _taken_to_end(settings, consumer, take)
    finally:
        consumer.close()


def _taken_to_end(settings: Settings, consumer: Consumer, take: Callable[[Message], None]) -> int:
    kafka = library()
    partition, where = kafka.TopicPartition(settings.state_topic, 0), _where(settings)
    high, has_logged = None, False
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < settings.timeout + settings.transaction_timeout:
        message: Message | None = consumer.poll(1)
        if message is None:
            if high is None:
                _check_readable(settings, consumer)
            if waited > _TELL_SECONDS and not has_logged:
                log.warning("%s: waiting for %s", where, "the brokers" if high is None else _FOREIGN)
                has_logged = True
            continue
        error = message.error()
        if error is None:
            take(message)
        elif error.code() == kafka.KafkaError._PARTITION_EOF:
            # With open transactions this is not the end of the topic but the first record of the oldest one.
            if high is None:
                high = consumer.get_watermark_offsets(partition, cached=True)[1]
            end = int(message.offset() or 0)
            if end >= high:
                return end
        # A consumer without a group needs no right to one; librdkafka asks for its coordinator all the same.
        elif error.name() != "GROUP_AUTHORIZATION_FAILED":
            raise _unusable(settings, error, "cannot be read")
    if high is None:
        raise SinkAwayError("the brokers do not answer", where=where, remedy=REACH)
    remedy = "Start that pipeline, which ends it, or abort it (kafka-transactions.sh find-hanging, abort)."
    raise SinkError(f"{_FOREIGN} does not end", where=where, remedy=remedy)


def _check_readable(settings: Settings, consumer: Consumer) -> None:
    """A consumer that requests a partition by its number gets no error for a topic that it may not read."""
    kafka, name = library(), settings.state_topic
    try:
        error = consumer.list_topics(name, settings.timeout).topics[name].error
    except kafka.KafkaException as failure:
        raise _unusable(settings, failure.args[0], "cannot be read") from failure
    if error is not None:
        raise _unusable(settings, error, "cannot be read")


def _state(message: Message, pipeline: str, where: str) -> dict[str, Any] | None:
    """The value of a record; None for one of another pipeline and for a deleted one."""
    key, value = message.key(), message.value()
    try:
        if not value or json.loads(key or b"")["pipeline"] != pipeline:
            return None
        state: dict[str, Any] = json.loads(value)
        version = state["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(
            f"the record at offset {message.offset()} is no state of a pipeline",
            where=where,
            remedy="Set sink.kafka.state.topic to a topic that only pipelines write to.",
        ) from error
    if version != VERSION:
        what = f"the pipeline's state has version {version}, this release reads version {VERSION}"
        raise SinkError(what, where=where, remedy="Run the release that wrote it, or a newer one.")
    return state


def prepare(settings: Settings) -> None:
    """Create the topic if it is missing. Raises SinkError, also for a topic that is not compacted."""
    kafka, name, client = library(), settings.state_topic, admin(settings)
    from confluent_kafka.admin import NewTopic

    if exists(settings, client):
        return
    log.info("the state topic %s is created", name)
    try:
        client.create_topics([NewTopic(name, 1, config=_TOPIC)], request_timeout=settings.timeout)[name].result()
    except kafka.KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise _unusable(settings, error.args[0], "cannot be created") from error


def exists(settings: Settings, client: AdminClient) -> bool:
    """Whether the topic is there. Raises SinkError if it cannot be used."""
    kafka = library()
    try:
        operations = allowed(settings, client, settings.state_topic)
    except kafka.KafkaException as error:
        raise _unusable(settings, error.args[0], "cannot be read") from error
    if operations is None:
        return False
    if not {"READ", "WRITE"} <= operations:
        raise _unusable(settings, kafka.KafkaError(kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED), "cannot be used")
    _check_compacted(settings, client)
    return True


def admin(settings: Settings) -> AdminClient:
    """A client that asks for topics."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(dict(settings.connection), logger=log)


def allowed(settings: Settings, client: AdminClient, topic: str) -> set[str] | None:
    """What the user may do with a topic; None if there is none. Raises KafkaException."""
    kafka = library()
    from confluent_kafka import TopicCollection

    asked = client.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=settings.timeout
    )
    try:
        return {operation.name for operation in asked[topic].result().authorized_operations}
    except kafka.KafkaException as error:
        if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
            return None
        raise


def _check_compacted(settings: Settings, client: AdminClient) -> None:
    """Another cleanup policy would delete the state of a pipeline that is stopped for longer."""
    from confluent_kafka.admin import ConfigResource

    kafka, name = library(), settings.state_topic
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    try:
        configs = client.describe_configs([resource], request_timeout=settings.timeout)[resource].result()
    except kafka.KafkaException as error:
        log.info("whether topic %s is compacted is unknown: %s", name, error.args[0].str())
        return
    policy = configs["cleanup.policy"].value
    if policy != "compact":
        raise SinkError(
            f"its cleanup.policy is {policy}, which deletes the state of a pipeline that is stopped for longer",
            where=_where(settings),
            remedy=f"kafka-configs.sh --bootstrap-server {settings.servers} --alter --entity-type topics "
            f"--entity-name {name} --add-config cleanup.policy=compact",
        )


def _unusable(settings: Settings, error: KafkaError, what: str) -> SinkError:
    """The error for a topic that is not there for us."""
    failure = refused(error, f"the topic of pipelines' states {what}", _where(settings))
    if not error.name().endswith("_AUTHORIZATION_FAILED"):
        return failure
    remedy = (
        f"Grant the rights: kafka-acls.sh --bootstrap-server {settings.servers} --add --allow-principal User:<user> "
        f"--operation Create --operation Describe --operation Read --operation Write --topic {settings.state_topic}; "
        "or create the topic with cleanup.policy=compact and grant all but Create; "
        "or set sink.kafka.delivery to at-least-once."
    )
    return SinkError(failure.what, where=failure.where, remedy=remedy)


def _where(settings: Settings) -> str:
    return f"topic {settings.state_topic} at {settings.servers}"
