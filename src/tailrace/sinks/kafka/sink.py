"""The Kafka sink for Spark: encodes and sends a micro-batch of `arrow` rows from tasks.

With transactions, a micro-batch that is repeated is skipped where Kafka has it already: readers of committed records
see each change once (decision 18).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from tailrace.config import Config
from tailrace.model.change import from_ipc
from tailrace.model.source import SourceBlock
from tailrace.sinks.counts import Counts
from tailrace.sinks.kafka.claim import ClusterClaim
from tailrace.sinks.kafka.client import Properties, Settings
from tailrace.sinks.kafka.creation import Creation
from tailrace.sinks.kafka.delivery import AtLeastOnce
from tailrace.sinks.kafka.transactions import ExactlyOnce, Ticket
from tailrace.spark.garbage import freeze_imports
from tailrace.spark.sessions import few_rows, has_java, query_id
from tailrace.transforms import Step
from tailrace.transforms.encoder import Encoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# What a task says for each row: how many records it sent, what ClusterClaim.done takes, and into which topics.
_SENT = "struct<records: bigint, task: int, token: string, end: bigint, topics: array<string>>"
_SENT_TYPE = pa.struct(
    [
        *(("records", pa.int64()), ("task", pa.int32()), ("token", pa.string()), ("end", pa.int64())),
        ("topics", pa.list_(pa.string())),
    ]
)
_MOST_TASKS = 64  # guessed
# Spark Connect says neither how many splits a frame has nor how many tasks run at once.
_TASKS_WITHOUT_JAVA = 8
_OWN_WORKERS = "TAILRACE_SINK"

Rows = tuple[pa.Array, pa.Array]


@dataclass
class KafkaSink:
    """A Kafka cluster as the target of a stream of `arrow` rows.

    `properties` are librdkafka's, `bootstrap.servers` among them, and win over the defaults. One task sends the rows of
    a split in their order, so records of one key keep theirs. `written` counts the records sent by batch, `topics` are
    those that they were sent to. The
    transactional ids begin with `id_prefix`; `state_topic` holds what is committed. `query_id` names the checkpoint
    where Spark cannot: in a session of Spark Connect that has several queries.
    """

    properties: Properties = field(repr=False)
    config: Config
    source: SourceBlock
    steps: Sequence[Step] = ()
    delivery: Literal["exactly-once", "at-least-once"] = "exactly-once"
    id_prefix: str = "tailrace-"
    state_topic: str = "tailrace-state"
    query_id: str | None = None
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    written: Counts = field(default_factory=Counts)
    topics: frozenset[str] = frozenset()
    shape = "arrow"
    _claims: dict[str, ClusterClaim] = field(default_factory=dict, repr=False)

    def attach(self, frame: DataFrame) -> DataStreamWriter:
        """A writer that sends each micro-batch of `frame` and fails it with SinkError if a record is not delivered."""
        return frame.writeStream.foreachBatch(self.write)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Sends a micro-batch, the frame as `foreachBatch` has it. Raises SinkError."""
        settings = Settings(self.properties, self.id_prefix, self.state_topic)
        query = query_id(frame, self.query_id)
        # Each task needs a transactional id, and the next run cuts all of them off: no more than run at once.
        tasks, pool = _TASKS_WITHOUT_JAVA, None
        if has_java(frame.sparkSession):
            splits = frame.rdd.getNumPartitions()
            tasks = max(1, min(splits, frame.sparkSession.sparkContext.defaultParallelism, _MOST_TASKS))
            # Tasks that run side by side get another pool: in this one is one worker, whose producer stays.
            pool = f"{query} {'one' if splits < 2 else 'many'}"
        if self.delivery == "at-least-once":
            self.written[batch_id] = sum(records for records, *_ in self._send(frame, settings, None, pool))
            return
        # After a failure an old task may still run, also of this run: then the ids are claimed again.
        claim = self._claims.pop(query, None) or ClusterClaim(settings, query, tasks)
        sent = self._send(frame.coalesce(tasks), settings, claim.ticket(batch_id, tasks), pool)
        claim.done((task, token, end) for _, task, token, end in sent)
        self._claims[query] = claim
        self.written[batch_id] = sum(records for records, *_ in sent)

    def _send(
        self, frame: DataFrame, settings: Settings, ticket: Ticket | None, pool: str | None
    ) -> list[tuple[int, int, str, int]]:
        """Runs the tasks; what each says of each row."""
        from tailrace.spark.arrow_tasks import applied

        send = _task(settings, ticket, self.config, self.source, tuple(self.steps), self.run_id)
        session = frame.sparkSession
        with few_rows(session):
            with _own_workers(session, pool):
                sent = applied(frame, send, ("split", "bytes"), _SENT)
            said = [tuple(row[0]) for row in sent.collect()]
        self.topics |= {topic for *_, topics in said for topic in topics}
        return [(records, task, token, end) for records, task, token, end, _ in said]


@contextmanager
def _own_workers(session: SparkSession, pool: str | None) -> Iterator[None]:
    """A pool of Python workers of that name for the functions made meanwhile: Spark has one for each environment.

    None: the session cannot have one, without Java.

    Spark hands idle workers out in turn. If the pool held others, which the source's readers or a snapshot's tasks
    leave behind, each batch would go to another process, and start another producer.
    """
    if pool is None:
        yield
        return
    environment = session.sparkContext.environment
    environment[_OWN_WORKERS] = pool
    try:
        yield
    finally:
        environment.pop(_OWN_WORKERS, None)  # another query of the session may have done it


def _writer(settings: Settings, ticket: Ticket | None, task: int, attempt: int) -> AtLeastOnce | ExactlyOnce:
    return AtLeastOnce(settings) if ticket is None else ExactlyOnce(settings, ticket, task, attempt)


def _task(
    settings: Settings,
    ticket: Ticket | None,
    config: Config,
    source: SourceBlock,
    steps: tuple[Step, ...],
    run_id: str,
) -> Callable[[Iterator[Rows]], Iterator[pa.Array]]:
    """What a task does with its rows: encode and send each, say how many records, and wait until all is safe."""

    def send(chunks: Iterator[Rows]) -> Iterator[pa.Array]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = context.partitionId()
        writer = _writer(settings, ticket, task, context.attemptNumber())
        encoder, creation = Encoder(config, source, run_id, steps, own_times=True), Creation.of(config)
        try:
            for splits, blobs in chunks:
                sent = []
                for split, rows in groupby(zip(splits.to_pylist(), blobs, strict=True), key=itemgetter(0)):
                    before, mine, topics = writer.count, [blob for _, blob in rows], set[str]()
                    if writer.starts(split):
                        for records in encoder.encode_all(from_ipc(blob.as_buffer()) for blob in mine):
                            into = records.column("topic").unique().to_pylist()
                            topics.update(into)
                            if creation is not None:
                                creation.ensure(settings, into)
                            writer.send(records)
                    # One item for each row: what was sent of all of them is said with the first.
                    said = [(writer.count - before, sorted(topics)), *[(0, [])] * (len(mine) - 1)]
                    sent += [(count, task, writer.token, writer.end, into) for count, into in said]
                yield pa.array(sent, _SENT_TYPE)
            writer.finish()
            freeze_imports()
        except BaseException:
            writer.abandon()
            raise

    return send
