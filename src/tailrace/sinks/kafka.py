"""Writes events to Kafka from executors: encodes ChangeBatches and sends the records with an idempotent producer.

Delivery is at least once: a replayed batch sends its records again, as Debezium does after a crash.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from tailrace.config import Config
from tailrace.errors import SinkError
from tailrace.model.change import from_ipc
from tailrace.model.source import SourceBlock
from tailrace.sinks.counts import Counts
from tailrace.transforms import Step
from tailrace.transforms.encoder import Encoder

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

DEFAULTS: Mapping[str, str | int | float | bool] = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "batch.size": 262144,
    "message.timeout.ms": 120_000,
    # The partition Java's default partitioner takes for the key: records stay where Kafka Connect put them.
    "partitioner": "murmur2_random",
}

# Blobs are megabytes each: a task should not be handed thousands of them at once.
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_A_BATCH = "16"

Headers = list[tuple[str, str | bytes | None]]

log = logging.getLogger(__name__)

_producers: dict[tuple[tuple[str, object], ...], Producer] = {}


@dataclass
class KafkaSink:
    """A Kafka cluster as the target of a stream of `arrow` rows.

    `properties` are librdkafka's, `bootstrap.servers` among them, and win over DEFAULTS. One task sends the rows of one
    source partition in their order, so records of one key keep theirs. `written` counts records by batch.
    """

    properties: Mapping[str, str | int | float | bool] = field(repr=False)
    config: Config
    source: SourceBlock
    steps: Sequence[Step] = ()
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    written: Counts = field(default_factory=Counts)
    shape = "arrow"

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that sends each micro-batch of `frame` and fails it with SinkError if a record is not delivered."""
        return frame.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

        send = _task({**DEFAULTS, **self.properties}, self.config, self.source, tuple(self.steps), self.run_id)
        session = frame.sparkSession
        usual = session.conf.get(_BATCH_SETTING)
        session.conf.set(_BATCH_SETTING, _ROWS_A_BATCH)
        try:
            # Not mapInArrow: that loads pandas, which nothing here needs.
            counts = frame.select(arrow_udf(send, "long")("bytes")).collect()
        finally:
            session.conf.set(_BATCH_SETTING, str(usual))
        self.written[batch_id] = sum(count for (count,) in counts)


def _task(
    properties: Mapping[str, str | int | float | bool],
    config: Config,
    source: SourceBlock,
    steps: tuple[Step, ...],
    run_id: str,
) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """What a task does with its blobs: encode and send each, tell how many records, and wait until all is delivered."""

    def send(chunks: Iterator[pa.Array]) -> Iterator[pa.Array]:
        encoder = Encoder(config, source, run_id, steps)
        delivery = Delivery(properties)
        for blobs in chunks:
            counts = []
            for blob in blobs:
                before = delivery.count
                for records in encoder.encode(from_ipc(blob.as_buffer())):
                    delivery.send(records)
                counts.append(delivery.count - before)
            yield pa.array(counts, pa.int64())
        delivery.finish()

    return send


class Delivery:
    """Records on their way to one cluster within one task: sends, counts, and raises SinkError when one is refused."""

    def __init__(self, properties: Mapping[str, str | int | float | bool]) -> None:
        self._key = tuple(sorted(properties.items()))
        self._servers = str(properties["bootstrap.servers"])
        self._timeout = float(properties.get("message.timeout.ms", 120_000)) / 1000 + 10
        self._producer = _producer(self._key)
        self._refusal = _library().KafkaException
        self._failure: tuple[KafkaError, str] | None = None
        self.count = 0

    def send(self, records: pa.RecordBatch) -> None:
        """Hands rows of the `kafka` shape to the producer, in order; waits while its queue is full."""
        topics, partitions = records.column("topic").to_pylist(), records.column("partition").to_pylist()
        keys, values = records.column("key").to_pylist(), records.column("value").to_pylist()
        rows = zip(topics, partitions, keys, values, _headers(records.column("headers")), strict=True)
        for topic, partition, key, value, headers in rows:
            self._produce(topic, -1 if partition is None else partition, key, value, headers)
        self.count += records.num_rows
        self._producer.poll(0)
        self._raise()

    def finish(self) -> int:
        """Waits until every record is delivered and returns their number. Raises SinkError."""
        left = self._producer.flush(self._timeout)
        self._raise()
        if left:
            self._discard()
            what = f"{left} records were not delivered within {self._timeout:.0f} s"
            raise SinkError(what, where=self._servers, remedy=_REACH)
        return self.count

    def _produce(self, topic: str, partition: int, key: str, value: str, headers: Headers) -> None:
        while not self._accepted(topic, partition, key, value, headers):
            self._producer.poll(0.1)
            self._raise()

    def _accepted(self, topic: str, partition: int, key: str, value: str, headers: Headers) -> bool:
        """Whether the producer took the record; not while its queue is full."""
        try:
            self._producer.produce(topic, value, key, partition, self._delivered, headers=headers)
        except BufferError:
            return False
        except self._refusal as error:
            self._fail(error.args[0], topic)
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = (error, message.topic() or "")

    def _raise(self) -> None:
        if self._failure is not None:
            self._fail(*self._failure)

    def _fail(self, error: KafkaError, topic: str) -> NoReturn:
        self._discard()
        where = f"topic {topic} at {self._servers}"
        raise SinkError(f"Kafka refused a record: {error.str()}", where=where, remedy=_remedy(error))

    def _discard(self) -> None:
        """Forget a producer that failed: what it still holds must not be sent after the batch's next attempt began."""
        _producers.pop(self._key, None)
        self._producer.purge()


def _producer(key: tuple[tuple[str, object], ...]) -> Producer:
    """This worker process's producer; it lives on to the next batch, as connecting costs more than a small batch."""
    if key not in _producers:
        library = _library()
        try:
            _producers[key] = library.Producer(dict(key), logger=log)
        except library.KafkaException as error:
            what = f"the producer's settings are refused: {error.args[0].str()}"
            raise SinkError(what, where="sink.kafka.properties", remedy="Names and values are librdkafka's.") from error
    return _producers[key]


def _library() -> ModuleType:
    """confluent-kafka, an optional dependency."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise SinkError("confluent-kafka is not installed", remedy="pip install 'tailrace[kafka]'") from error
    return confluent_kafka


def _headers(column: pa.Array) -> Iterator[Headers]:
    """Per row the headers as the producer takes them; flat columns are converted at once, not struct by struct."""
    flat = column.flatten()
    pairs = list(zip(flat.field("key").to_pylist(), flat.field("value").to_pylist(), strict=True))
    ends = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum().tolist()
    return (pairs[start:end] for start, end in pairwise([0, *ends]))


_REACH = "Check bootstrap.servers, the network, and that the brokers run."
# librdkafka calls a name that is not allowed unknown, too, if the broker answered before the record was queued.
_CREATE = (
    "Create the topic, or let the brokers do it (auto.create.topics.enable). A name that Kafka does not allow "
    "needs a route step."
)
_REMEDIES = {
    "MSG_SIZE_TOO_LARGE": "Raise message.max.bytes in sink.kafka.properties, and the topic's max.message.bytes.",
    "_MSG_TIMED_OUT": _REACH,
    "_TRANSPORT": _REACH,
    "_ALL_BROKERS_DOWN": _REACH,
    "_RESOLVE": _REACH,
    "_UNKNOWN_TOPIC": _CREATE,
    "UNKNOWN_TOPIC_OR_PART": _CREATE,
    "TOPIC_EXCEPTION": "The topic's name is not allowed in Kafka: rename it with a route step.",
    "TOPIC_AUTHORIZATION_FAILED": "Grant the producer's user Write and Create on the topic.",
    "CLUSTER_AUTHORIZATION_FAILED": "Grant the producer's user IdempotentWrite on the cluster.",
    "_AUTHENTICATION": "Check sasl.* and security.protocol in sink.kafka.properties.",
    "SASL_AUTHENTICATION_FAILED": "Check sasl.* and security.protocol in sink.kafka.properties.",
}


def _remedy(error: KafkaError) -> str:
    return _REMEDIES.get(error.name(), "See the broker's log; the batch is sent again when the pipeline is restarted.")
