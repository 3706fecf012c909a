"""The transactions of one task: a split's records and the record that it is committed, all or nothing.

A producer's start fences every earlier producer with its transactional id, so a task that was replaced can no longer
commit. After its start a task reads whether it was replaced itself meanwhile: by a newer run, or a newer batch.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from tailrace.errors import FencedError, SinkError
from tailrace.sinks.kafka import state
from tailrace.sinks.kafka.client import NO_COORDINATOR, Settings, library, new_producer, refused
from tailrace.sinks.kafka.delivery import Delivery
from tailrace.spark import failpoint

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

log = logging.getLogger(__name__)

# Brokers forget an idle transactional id after a week and close idle connections earlier.
_FRESH_SECONDS = 3600
_ABORT_SECONDS = 10
_TOPIC_REFUSED = {"TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION"}
_MOST_NAMED = 10


@dataclass(frozen=True)
class Ticket:
    """What a task of a micro-batch has to know to write for its run.

    `splits` are committed. `owners` says by task which producer wrote last: that one is still the newest with its
    transactional id. What the state topic held before offset `since` was read by the run.
    """

    pipeline: str
    run: str
    batch: int
    since: int
    splits: frozenset[str] = frozenset()
    owners: Mapping[int, str] = field(default_factory=dict)


class Sender:
    """A transactional producer of this worker process. Raises SinkError if it cannot be started."""

    def __init__(self, settings: Settings, transactional_id: str) -> None:
        self.token = uuid.uuid4().hex
        self.where = f"transactional.id {transactional_id} at {settings.servers}"
        self.used = time.monotonic()
        self.producer: Producer = new_producer({**settings.transactional, "transactional.id": transactional_id})
        kafka = library()
        try:
            self.producer.init_transactions(settings.timeout)
        except kafka.KafkaException as error:
            failure = refused(error.args[0], "transactions cannot be used", self.where)
            if error.args[0].name() == "_TIMED_OUT":
                failure = SinkError(failure.what, where=self.where, remedy=NO_COORDINATOR)
            raise failure from error

    def abort(self) -> KafkaError | None:
        """End an open transaction; what the producer has failed of for good, if it has."""
        kafka = library()
        try:
            self.producer.abort_transaction(_ABORT_SECONDS)
        except kafka.KafkaException as error:
            log.info("%s: the transaction is not aborted: %s", self.where, error.args[0].str())
            self.producer.purge()
            return error.args[0] if error.args[0].fatal() else None
        return None


_senders: dict[str, Sender] = {}


def fence(settings: Settings, transactional_id: str) -> None:
    """Fence every producer with this id, and end the transaction that it left open."""
    Sender(settings, transactional_id)


class ExactlyOnce:
    """Sends a task's records, each split in a transaction, but for splits that Kafka has already.

    A split that takes longer than half of `transaction.timeout.ms` is committed in parts. If it is repeated after that,
    its parts are sent again.
    """

    def __init__(self, settings: Settings, ticket: Ticket, task: int, attempt: int) -> None:
        self._settings, self._ticket, self._task, self._attempt = settings, ticket, task, attempt
        self._id = settings.transactional_id(ticket.pipeline, task)
        self._splits = set(ticket.splits)
        self._split = ""
        self._sender: Sender | None = None
        self._delivery: Delivery | None = None
        self._begun: float | None = None
        self._unrecorded = 0
        self.count = 0
        self.end = 0

    @property
    def token(self) -> str:
        """The producer that wrote; empty if none was needed."""
        return "" if self._sender is None else self._sender.token

    def starts(self, split: str) -> bool:
        """Commits the split before; whether this one is to be sent."""
        if split != self._split:
            self.finish()
            self._split = split
            if split not in self._splits and self._sender is None:
                self._sender = self._ready()
                self._delivery = Delivery(self._sender.producer, self._settings)
        return split not in self._splits

    def send(self, records: pa.RecordBatch) -> None:
        """Sends rows of the `kafka` shape in the split's transaction."""
        if not records.num_rows:
            return
        with self._failures() as (sender, delivery):
            if self._begun is None:
                self._begin(sender)
            delivery.send(records)
            failpoint.reach("kafka-produce")
            self.count += records.num_rows
            self._unrecorded += records.num_rows
            if self._age() > self._settings.transaction_timeout / 2:
                log.warning(
                    "%s: a split takes long and is committed in parts; raise transaction.timeout.ms", sender.where
                )
                self._commit(sender, delivery)

    def finish(self) -> None:
        """Commits what is open, with the note that the split is committed."""
        if not self._unrecorded:
            return
        with self._failures() as (sender, delivery):
            if self._begun is None:
                self._begin(sender)
            ticket = self._ticket
            note = state.split_record(ticket.pipeline, ticket.run, ticket.batch, self._split, self._unrecorded)
            delivery.produce(self._settings.state_topic, 0, *note, [])
            self._commit(sender, delivery)
            self._unrecorded = 0
            failpoint.reach("kafka-committed")

    def abandon(self) -> None:
        """End the open transaction and forget the producer: the next attempt starts another."""
        self._lost()

    def _ready(self) -> Sender:
        """This process's producer if it wrote last; else a new one, once it is known that nobody has taken over."""
        kept = _senders.pop(self._id, None)
        is_newest = kept is not None and self._ticket.owners.get(self._task) == kept.token and not self._attempt
        if kept is not None and is_newest and time.monotonic() < kept.used + _FRESH_SECONDS:
            _senders[self._id] = kept
            return kept
        failpoint.reach("kafka-start")
        # A task that was replaced before stops here and fences nobody. Only what is read after the start is final.
        self._look()
        failpoint.reach("kafka-init")
        sender = Sender(self._settings, self._id)
        failpoint.reach("kafka-check")
        if self._look().batch == self._ticket.batch or self._attempt:
            self._splits |= state.read(self._settings, self._ticket.pipeline, self._ticket.since).splits
        _senders[self._id] = sender
        return sender

    def _look(self) -> state.TopicState:
        """Stops a task that was replaced meanwhile."""
        ticket = self._ticket
        topic_state = look(self._settings, ticket.pipeline, ticket.run, ticket.since)
        if topic_state.batch > ticket.batch:
            raise taken_over(self._settings, ticket.pipeline)
        self.end = topic_state.end
        return topic_state

    def _begin(self, sender: Sender) -> None:
        failpoint.reach("kafka-begin")
        sender.producer.begin_transaction()
        self._begun = time.monotonic()

    def _age(self) -> float:
        return 0 if self._begun is None else time.monotonic() - self._begun

    def _commit(self, sender: Sender, delivery: Delivery) -> None:
        failpoint.reach("kafka-flush")
        delivery.flush()
        failpoint.reach("kafka-commit")
        kafka, deadline = library(), time.monotonic() + self._settings.timeout
        while True:
            try:
                sender.producer.commit_transaction(self._settings.timeout)
                break
            except kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
        self._begun = None
        sender.used = time.monotonic()

    @contextmanager
    def _failures(self) -> Iterator[tuple[Sender, Delivery]]:
        """Names what ended the transaction: the producer knows more than the records that it could not deliver."""
        assert self._sender is not None
        assert self._delivery is not None
        sender, delivery, age = self._sender, self._delivery, self._age
        kafka, where = library(), sender.where
        try:
            yield sender, delivery
        except (SinkError, kafka.KafkaException) as error:
            seconds, reported = age(), _reported(error, sender, delivery)
            reason = self._lost()
            if reported is not None and reported.name() in _TOPIC_REFUSED:
                # Its text does not name the topic, and what the abort says after it is a consequence.
                raise refused(reported, "the transaction cannot be committed", _topics(delivery, where)) from error
            cause = reason or reported
            if cause is None:
                raise
            failure = refused(cause, "the transaction cannot be committed", where)
            if isinstance(failure, FencedError) and seconds >= self._settings.transaction_timeout:
                raise self._expired(seconds) from error
            raise failure from error

    def _lost(self) -> KafkaError | None:
        """Forget the producer; what it failed of for good."""
        sender, self._sender = self._sender, None
        self._begun, self._unrecorded = None, 0
        if sender is None:
            return None
        _senders.pop(self._id, None)
        return sender.abort()

    def _expired(self, seconds: float) -> SinkError:
        return SinkError(
            f"a transaction took {seconds:.0f} s, and the brokers aborted it after "
            f"{self._settings.transaction_timeout:.0f} s",
            where=self._id,
            remedy="Raise transaction.timeout.ms in sink.kafka.properties (and transaction.max.timeout.ms on the "
            "brokers), or find out why they are slow.",
        )


def _reported(error: Exception, sender: Sender, delivery: Delivery) -> KafkaError | None:
    """What ended a transaction; None if the record's own error says it."""
    kafka = library()
    if isinstance(error, kafka.KafkaException):
        return error.args[0]  # type: ignore[no-any-return]
    if not delivery.is_purged:
        return None
    try:
        # The transaction has failed already, so this raises the reason and cannot commit.
        sender.producer.commit_transaction(_ABORT_SECONDS)
    except kafka.KafkaException as reason:
        return reason.args[0]  # type: ignore[no-any-return]
    return None


def _topics(delivery: Delivery, where: str) -> str:
    """The topics of a transaction, for messages."""
    names = sorted(delivery.topics)
    if len(names) > _MOST_NAMED:
        return f"one of {len(names)} topics (tailrace check says which), {where}"
    return f"{'topic' if len(names) == 1 else 'one of the topics'} {', '.join(names)}, {where}"


def look(settings: Settings, pipeline: str, run: str, since: int) -> state.TopicState:
    """What the state topic says from an offset on that the run has read up to. Raises FencedError for a newer run.

    Records count whether or not they are committed, so that nobody waits for the transaction of another pipeline.
    """
    topic_state = state.read(settings, pipeline, since, is_committed=False)
    if topic_state.runs - {run}:
        raise taken_over(settings, pipeline)
    return topic_state


def taken_over(settings: Settings, pipeline: str) -> FencedError:
    """The error of a task or run that is not the newest any more."""
    kafka = library()
    error = refused(
        kafka.KafkaError(kafka.KafkaError._FENCED), "", f"{settings.prefix}{pipeline} at {settings.servers}"
    )
    assert isinstance(error, FencedError)
    return error
