"""Creates the sink's Kafka clients, and the errors for what Kafka rejects."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from tailrace.errors import FencedError, SinkAwayError, SinkError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

log = logging.getLogger(__name__)

Properties = Mapping[str, str | int | float | bool]

DEFAULTS: Properties = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "batch.size": 262144,
    "message.timeout.ms": 120_000,
    # The partition Java's default partitioner takes for the key: records stay where Kafka Connect put them.
    "partitioner": "murmur2_random",
}
TRANSACTION_DEFAULTS: Properties = {
    "transaction.timeout.ms": 300_000,
    # A new producer asks for its coordinator before it is connected: it should not wait 100 ms to ask again.
    "retry.backoff.ms": 10,
}
# What consumers and admin clients take of the producer's properties.
_CONNECTION = (
    "api.version.", "bootstrap.servers", "broker.", "client.", "connections.", "debug", "enable.sasl.", "enable.ssl.",
    "https.", "metadata.", "reconnect.", "resolve.", "sasl.", "security.", "socket.", "ssl.",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Where and how the sink writes. `properties` are librdkafka's and win over the defaults.

    The transactional ids begin with `prefix`; `state_topic` holds what is committed and by which run.
    """

    properties: Properties = field(repr=False)
    prefix: str = "tailrace-"
    state_topic: str = "tailrace-state"

    @property
    def servers(self) -> str:
        """The cluster's address, for messages."""
        return str(self.properties["bootstrap.servers"])

    @cached_property
    def producer(self) -> Properties:
        """The properties of a producer without transactions."""
        return {**DEFAULTS, **self.properties}

    @cached_property
    def transactional(self) -> Properties:
        """The properties of a transactional producer, without its id."""
        return {**TRANSACTION_DEFAULTS, **self.producer}

    @property
    def connection(self) -> Properties:
        """The properties that any client needs to reach the cluster."""
        return {name: value for name, value in self.properties.items() if name.startswith(_CONNECTION)}

    @property
    def timeout(self) -> float:
        """Seconds after which a call to the cluster has failed."""
        return float(self.producer["message.timeout.ms"]) / 1000 + 10

    @property
    def transaction_timeout(self) -> float:
        """Seconds after which the brokers abort an open transaction."""
        return float(self.transactional["transaction.timeout.ms"]) / 1000

    def transactional_id(self, pipeline: str, task: int) -> str:
        """The id of the producer of a pipeline's task of that number."""
        return f"{self.prefix}{pipeline}-{task}"


def library() -> ModuleType:
    """confluent-kafka, an optional dependency."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise SinkError("confluent-kafka is not installed", remedy="pip install 'tailrace[kafka]'") from error
    return confluent_kafka


def new_producer(properties: Properties) -> Producer:
    """A producer. Raises SinkError for properties that librdkafka refuses."""
    kafka = library()
    try:
        producer: Producer = kafka.Producer(dict(properties), logger=log)
    except kafka.KafkaException as error:
        what = f"the producer's settings are refused: {error.args[0].str()}"
        raise SinkError(what, where="sink.kafka.properties", remedy="Names and values are librdkafka's.") from error
    return producer


def refused(error: KafkaError, what: str, where: str) -> SinkError:
    """The SinkError for one of Kafka's; a FencedError if another producer has taken over the transactional id."""
    if error.name() in _FENCED:
        what = "another run of this pipeline has taken over and has cut this one off"
        remedy = (
            "Leave the newer run alone. If it was not meant to be: each pipeline needs a checkpoint of its own, and a "
            "copy of a checkpoint another transactional.id.prefix."
        )
        return FencedError(what, where=where, remedy=remedy)
    remedy = _REMEDIES.get(
        error.name(), "See the broker's log; the batch is sent again when the pipeline is restarted."
    )
    kind = SinkAwayError if remedy is REACH else SinkError
    return kind(f"{what}: {error.str()}", where=where, remedy=remedy)


_FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
REACH = "Check bootstrap.servers, the network, and that the brokers run."
# librdkafka calls a name that is not allowed unknown, too, if the broker answered before the record was queued.
_CREATE = (
    "Create the topic, or let the brokers do it (auto.create.topics.enable). A name that Kafka does not allow "
    "needs a route step."
)
_LOGIN = "Check sasl.* and security.protocol in sink.kafka.properties."
_SWITCH_OFF = "or set sink.kafka.delivery to at-least-once"
# Of a start of a producer that nobody answers, though the brokers are reached.
NO_COORDINATOR = (
    "Check that the brokers can keep their topic __transaction_state: transaction.state.log.replication.factor and "
    f"transaction.state.log.min.isr must not exceed the number of brokers; {_SWITCH_OFF}."
)
ROUTE = "The topic's name is not allowed in Kafka: rename it with a route step."
GRANT_WRITE = (
    "Grant the producer's user Write and Create on the topic: kafka-acls.sh --bootstrap-server ... --add "
    "--allow-principal User:<user> --operation Write --operation Create --topic <topic>."
)
_REMEDIES = {
    "MSG_SIZE_TOO_LARGE": "Raise message.max.bytes in sink.kafka.properties, and the topic's max.message.bytes.",
    "_MSG_TIMED_OUT": REACH,
    "_TRANSPORT": REACH,
    "_ALL_BROKERS_DOWN": REACH,
    "_RESOLVE": REACH,
    "_UNKNOWN_TOPIC": _CREATE,
    "UNKNOWN_TOPIC_OR_PART": _CREATE,
    "TOPIC_EXCEPTION": ROUTE,
    "TOPIC_AUTHORIZATION_FAILED": GRANT_WRITE,
    "CLUSTER_AUTHORIZATION_FAILED": "Grant the producer's user IdempotentWrite on the cluster.",
    "_AUTHENTICATION": _LOGIN,
    "SASL_AUTHENTICATION_FAILED": _LOGIN,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "Grant the rights, <prefix> being sink.kafka.transactional.id.prefix: kafka-acls.sh --bootstrap-server ... "
        "--add --allow-principal User:<user> --operation Write --operation Describe --transactional-id <prefix> "
        f"--resource-pattern-type prefixed; {_SWITCH_OFF}."
    ),
    "INVALID_TRANSACTION_TIMEOUT": (
        "Raise transaction.max.timeout.ms on the brokers, or lower transaction.timeout.ms in sink.kafka.properties."
    ),
    "_UNSUPPORTED_FEATURE": f"Use brokers with transactions (0.11 or newer), {_SWITCH_OFF}.",
    "_TIMED_OUT": REACH,
}
