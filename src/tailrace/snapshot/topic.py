"""The Kafka topic of signals (`signal.kafka.*`): a consumer that resumes from the pipeline's own offset."""

from __future__ import annotations

import logging
import re
import uuid
from types import ModuleType
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.options.snapshot import (
    SIGNAL_CONSUMER,
    SIGNAL_KAFKA_BOOTSTRAP_SERVERS,
    SIGNAL_KAFKA_GROUP_ID,
    SIGNAL_KAFKA_POLL_TIMEOUT_MS,
    SIGNAL_KAFKA_TOPIC,
)
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.signal import Signal
from tailrace.errors import ConfigError
from tailrace.snapshot.signals import parsed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

log = logging.getLogger(__name__)

_FAMILY = "signal.consumer."
# How long the first look waits: connecting takes longer than signal.kafka.poll.timeout.ms.
_FIRST_SECONDS = 5.0
# Settings of the Java consumer that have no meaning for one that takes text and assigns its partition itself.
_JAVA = {"key.deserializer", "value.deserializer", "max.poll.records", "interceptor.classes", "metric.reporters"}
_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(["'])(.*?)\2""")


class SignalTopic:
    """Partition 0 of the topic; messages with the key `topic.prefix` are signals (Debezium's KafkaSignalChannel)."""

    def __init__(self, config: Config) -> None:
        self.key = config[TOPIC_PREFIX]
        self.name = config[SIGNAL_KAFKA_TOPIC] or f"{self.key}-signal"
        self._settings = settings(config)
        self._timeout = config[SIGNAL_KAFKA_POLL_TIMEOUT_MS] / 1000
        self._consumer: Consumer | None = None
        self._is_assigned = False
        self._logged: str | None = None
        self._position: int | None = None
        self._confirmed: int | None = None

    def read(self, position: int | None) -> tuple[list[Signal], int | None]:
        """The signals from `position` on, and the position behind them. Raises ConfigError for wrong settings.

        Without a position it is where the consumer group is or, without one, what `auto.offset.reset` says. What a
        position says is read is safe, so it is committed to the group. An unreachable broker is logged and stops
        nothing.
        """
        library = _library()
        first = self._consumer is None
        if self._consumer is None:
            self._consumer = self._open(library)
        if not self._is_assigned or position != self._position:
            self._is_assigned = True
            start = library.OFFSET_STORED if position is None else position
            self._consumer.assign([library.TopicPartition(self.name, 0, start)])
        if position is not None and position != self._confirmed:
            self._confirmed = position
            behind = library.TopicPartition(self.name, 0, position)
            self._consumer.commit(offsets=[behind], asynchronous=True)
        signals: list[Signal] = []
        timeout = _FIRST_SECONDS if first else self._timeout
        while (message := self._consumer.poll(timeout)) is not None:
            error = message.error()
            if error is not None and error.code() != library.KafkaError._PARTITION_EOF:
                self._refused(error)
                break
            self._logged = None
            position = int(message.offset() or 0)
            if error is not None:
                break
            position += 1
            signals += self._signals(message)
        self._position = position
        return signals, position

    def close(self) -> None:
        """Leave the cluster."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _refused(self, error: KafkaError) -> None:
        """Each problem is logged once, until something is read again; the next look asks again."""
        if error.str() != self._logged:
            grant = f"; grant the user Read on the topic and on the group {self._settings['group.id']}"
            remedy = grant if error.name().endswith("_AUTHORIZATION_FAILED") else ""
            log.warning("signals cannot be read from topic %s: %s%s", self.name, error.str(), remedy)
        self._logged = error.str()
        # librdkafka asks for a group's position once; without an answer it reads nothing until it is assigned again.
        self._is_assigned = False

    def _signals(self, message: Message) -> list[Signal]:
        key, value = (b"" if part is None else part for part in (message.key(), message.value()))
        if key.decode("utf-8", "replace") != self.key:
            log.info("ignored a message of topic %s with the key %r: it is for another connector", self.name, key)
            return []
        signal = parsed(value.decode("utf-8", "replace"), f"{self.name}-{message.offset()}")
        return [] if signal is None else [signal]

    def _open(self, library: ModuleType) -> Consumer:
        try:
            consumer: Consumer = library.Consumer(self._settings, logger=log)
            return consumer
        except library.KafkaException as error:
            raise ConfigError(
                f"the consumer's settings are refused: {error.args[0].str()}",
                where=_FAMILY + "*",
                remedy="names and values are librdkafka's, not those of the Java consumer",
            ) from error


def settings(config: Config) -> dict[str, str | int | bool]:
    """The consumer's settings: Debezium's defaults, what is given, and what the channel cannot do without."""
    given: dict[str, str | int | bool] = {
        name[len(_FAMILY) :]: str(value)
        for name, value in config.members(SIGNAL_CONSUMER).items()
        if name.lower().startswith(_FAMILY) and "*" not in name and name[len(_FAMILY) :] not in _JAVA
    }
    jaas = str(given.pop("sasl.jaas.config", ""))
    login: dict[str, str | int | bool] = {f"sasl.{name}": value for name, _, value in _LOGIN.findall(jaas)}
    return {
        "client.id": str(uuid.uuid4()),
        "session.timeout.ms": 10000,
        "auto.offset.reset": "earliest",
        "bootstrap.servers": config.need(SIGNAL_KAFKA_BOOTSTRAP_SERVERS),
        "group.id": config[SIGNAL_KAFKA_GROUP_ID],
        **login,
        **given,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }


def _library() -> ModuleType:
    """confluent-kafka, an optional dependency."""
    try:
        import confluent_kafka
    except ImportError as error:
        what = "confluent-kafka is not installed, which the signal channel kafka needs"
        raise ConfigError(what, remedy="pip install 'tailrace[kafka]'") from error
    return confluent_kafka
