"""Hands records to a producer, waits for their delivery, and raises the error of a rejected record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import SinkAwayError, SinkError
from tailrace.sinks.kafka.client import REACH, Properties, Settings, library, new_producer, refused
from tailrace.spark import failpoint

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

Content = str | bytes | None
Headers = list[tuple[str, str | bytes | None]]

NOW = 0  # what the client takes for it

_producers: dict[tuple[tuple[str, object], ...], Producer] = {}


class Delivery:
    """Records on their way to one cluster: sends, counts, and raises SinkError when one is refused.

    `topics` are those of all rows so far.
    """

    def __init__(self, producer: Producer, settings: Settings) -> None:
        self._producer = producer
        self._servers, self._timeout = settings.servers, settings.timeout
        self._record_seconds = float(settings.producer["message.timeout.ms"]) / 1000
        self._refusal = library().KafkaException
        self._failure: tuple[KafkaError, str] | None = None
        self.count = 0
        self.topics: set[str] = set()

    @property
    def is_purged(self) -> bool:
        """Whether the first record that failed did so because its transaction had failed before."""
        return self._failure is not None and self._failure[0].name() == "_PURGE_QUEUE"

    def send(self, records: pa.RecordBatch) -> None:
        """Hands rows of the `kafka` shape to the producer, in order; waits while its queue is full."""
        topics, partitions = records.column("topic").to_pylist(), records.column("partition").to_pylist()
        keys, values = records.column("key").to_pylist(), records.column("value").to_pylist()
        headers, times = _headers(records.column("headers")), self._times(records.column("timestamp"))
        for topic, partition, key, value, some, time in zip(
            topics, partitions, keys, values, headers, times, strict=True
        ):
            self.produce(topic, -1 if partition is None else partition, key, value, some, time)
        self.count += records.num_rows
        self.topics.update(topics)
        self._work(lambda: self._producer.poll(0))

    def produce(
        self, topic: str, partition: int, key: Content, value: Content, headers: Headers, time: int = NOW
    ) -> None:
        """Hands one record to the producer; it is not counted. `time` is in milliseconds."""
        while not self._accepted(topic, partition, key, value, headers, time):
            self._work(lambda: self._producer.poll(0.1))

    def flush(self) -> None:
        """Waits until every record is delivered. Raises SinkError."""
        left = self._work(lambda: self._producer.flush(self._timeout))
        if left:
            what = f"{left} records were not delivered within {self._timeout:.0f} s"
            raise SinkAwayError(what, where=self._servers, remedy=REACH)

    def _work(self, call: Callable[[], int]) -> int:
        """Let the producer report deliveries. Raises the first failure."""
        try:
            left = call()
        except (self._refusal, SystemError) as error:
            # A producer that has failed for good raises here. confluent-kafka may lose the reason: SystemError is left.
            self._raise()
            raise SinkError("the Kafka client has failed for good", where=self._servers, remedy=REACH) from error
        self._raise()
        return left

    def _times(self, column: pa.Array) -> list[int]:
        """Milliseconds; now for records without a time. Raises SinkError for times that Kafka does not have."""
        if column.null_count == len(column):
            return [NOW] * len(column)
        millis = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        if pc.min(millis).as_py() < 0:
            remedy = "Correct the row, or the column that table.field.event.timestamp names."
            raise SinkError("a record's time is before 1970", where=self._servers, remedy=remedy)
        return list(millis.fill_null(NOW).to_pylist())

    def _accepted(self, topic: str, partition: int, key: Content, value: Content, headers: Headers, time: int) -> bool:
        """Whether the producer took the record; not while its queue is full."""
        try:
            self._producer.produce(topic, value, key, partition, self._delivered, timestamp=time, headers=headers)
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
        # The names of what the client says by itself begin so: no broker refused anything.
        what = "a record was not delivered" if error.name().startswith("_") else "Kafka refused a record"
        if error.name() == "_MSG_TIMED_OUT":
            what += f" within {self._record_seconds:,.0f} s (message.timeout.ms)"
        raise refused(error, what, f"topic {topic} at {self._servers}")


class AtLeastOnce:
    """Sends a task's records without transactions: a repeated batch sends them again, also behind newer ones."""

    token, end = "", 0

    def __init__(self, settings: Settings) -> None:
        self._key = tuple(sorted(settings.producer.items()))
        self._producer = _kept(self._key, settings.producer)
        self._delivery = Delivery(self._producer, settings)

    @property
    def count(self) -> int:
        """Records sent so far."""
        return self._delivery.count

    def starts(self, split: str) -> bool:
        """Whether a split is to be sent: always."""
        return True

    def send(self, records: pa.RecordBatch) -> None:
        """Sends rows of the `kafka` shape."""
        self._delivery.send(records)

    def finish(self) -> None:
        """Waits until all is delivered."""
        failpoint.reach("kafka-flush")
        self._delivery.flush()

    def abandon(self) -> None:
        """Forget a producer that failed: what it still holds must not be sent after the batch's next attempt began."""
        _producers.pop(self._key, None)
        self._producer.purge()


def _kept(key: tuple[tuple[str, object], ...], properties: Properties) -> Producer:
    """This worker process's producer; it lives on to the next batch, as connecting costs more than a small batch."""
    if key not in _producers:
        _producers[key] = new_producer(properties)
    return _producers[key]


def _headers(column: pa.Array) -> Iterator[Headers]:
    """Per row the headers as the producer takes them; flat columns are converted at once, not struct by struct."""
    flat = column.flatten()
    pairs = list(zip(flat.field("key").to_pylist(), flat.field("value").to_pylist(), strict=True))
    ends = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum().tolist()
    return (pairs[start:end] for start, end in pairwise([0, *ends]))
