"""The Kafka sink with and without transactions (`make bench-kafka`): throughput and latency; README.md says how."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import contestants
import measure
import pyarrow as pa
import workload
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from contestants import Course, Result
from run import CHANGES_A_SECOND, WARM_UP_SECONDS, console, environment, throughput_table

from tailrace.events.headers import HEADERS
from tailrace.sinks.kafka.claim import ClusterClaim
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.delivery import AtLeastOnce
from tailrace.sinks.kafka.transactions import ExactlyOnce
from tailrace.testing.kafka import EmbeddedKafka
from tailrace.testing.postgres import EmbeddedPostgres

DELIVERIES = ("at-least-once", "exactly-once")
TRIGGERS = ("0ms", "500ms")
PARTITIONS = 4
PATIENCE_SECONDS = 120
VALUE = '{"op": "u", "after": {"id": 1, "v": "x"}}' * 10
BATCH_SIZES, BATCHES = (1, 100, 10_000), 100


def main() -> None:
    """The whole benchmark."""
    options = arguments()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rows:,} rows")
    report: dict[str, Any] = {"environment": environment(), "options": vars(options)}
    with EmbeddedPostgres(contestants.VERSION, settings=workload.SETTINGS) as server, EmbeddedKafka() as kafka:
        workload.prepare(server)
        report["sink"] = {size: sink_alone(kafka, size) for size in BATCH_SIZES}
        if not options.sink_alone:
            report["throughput"] = throughput(server, kafka, options.rows, options.repetitions)
            report["latency"] = {
                f"{delivery}, {trigger}": latency(server, kafka, delivery, trigger, options.latency_seconds)
                for trigger in TRIGGERS
                for delivery in DELIVERIES
                if options.latency_seconds
            }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2, default=str) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000, help="inserts in the backlog")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--latency-seconds", type=float, default=30.0, help="how long latency is measured; 0: not at all"
    )
    parser.add_argument("--sink-alone", action="store_true", help="no pipelines, only a task's send of a micro-batch")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args()


def sink_alone(kafka: EmbeddedKafka, size: int) -> dict[str, list[float]]:
    """Milliseconds that a task takes to send micro-batches of so many records, each with both deliveries in turn."""
    topic, pipeline = new_topic(kafka), str(time.time_ns())
    settings = Settings({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    claim = ClusterClaim(settings, pipeline, 1)
    keys = [f'{{"id": {n}}}' for n in range(size)]
    rows = {"topic": [topic] * size, "partition": pa.nulls(size, pa.int32()), "key": keys, "value": [VALUE] * size}
    records = pa.record_batch({**rows, "headers": pa.array([[]] * size, HEADERS)})
    taken: dict[str, list[float]] = {delivery: [] for delivery in DELIVERIES}
    for n in range(BATCHES):
        for delivery in DELIVERIES:
            begin = time.perf_counter()
            writer = (
                AtLeastOnce(settings)
                if delivery == "at-least-once"
                else ExactlyOnce(settings, claim.ticket(n, 1), task=0, attempt=0)
            )
            writer.starts(f"range-{n}/0/1")
            writer.send(records)
            writer.finish()
            taken[delivery].append((time.perf_counter() - begin) * 1000)
            if isinstance(writer, ExactlyOnce):
                claim.done([(0, writer.token, writer.end)])
    told = "; ".join(f"{name} median {median(each):,.1f} ms, p90 {p90(each):,.1f} ms" for name, each in taken.items())
    console.print(f"A task's send of {size:,} records: {told}")
    return taken


def p90(values: list[float]) -> float:
    """Nine of ten are no longer."""
    return sorted(values)[int(len(values) * 0.9)]


def throughput(server: EmbeddedPostgres, kafka: EmbeddedKafka, rows: int, repetitions: int) -> dict[str, Any]:
    """A backlog, read by both in turn, each time from a slot of its own into a topic of its own."""
    slots = {delivery: [f"{delivery[:2]}_{n}" for n in range(repetitions)] for delivery in DELIVERIES}
    workload.make_slots(server, [slot for each in slots.values() for slot in each])
    with console.status("Inserting the rows"):
        backlog = workload.fill(server, rows)
    course = Course(server, backlog)
    results: dict[str, list[Result]] = {delivery: [] for delivery in DELIVERIES}
    for n in range(repetitions):
        for delivery in DELIVERIES:
            topic = new_topic(kafka)
            content = into(course, slots[delivery][n], kafka, delivery, topic)
            with console.status(f"{delivery}, {n + 1} of {repetitions}"), tempfile.TemporaryDirectory() as folder:
                results[delivery].append(contestants.measured(course, content, Path(folder)))
            check(kafka, topic, backlog)
    console.print(throughput_table(results))
    return {name: [result.to_json() for result in each] for name, each in results.items()}


def into(course: Course, slot: str, kafka: EmbeddedKafka, delivery: str, topic: str) -> dict[str, Any]:
    """A pipeline that writes a slot's backlog into a topic."""
    sink = {"kafka": {"bootstrap.servers": kafka.bootstrap, "delivery": delivery}}
    route = {"route": {"regex": r"bench\..*", "replacement": topic}}
    return {**course.content(slot, "null"), "sink": sink, "steps": [route]}


def new_topic(kafka: EmbeddedKafka) -> str:
    """A topic that is there before anything is measured."""
    name = f"bench-{time.time_ns()}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    return name


def check(kafka: EmbeddedKafka, topic: str, backlog: workload.Backlog) -> None:
    """Ends the benchmark unless the topic holds each row once."""
    with Reading(kafka, topic) as reading:
        reading.await_count(backlog.rows)
    found = len(reading.keys), sum(reading.keys)
    if found != (backlog.rows, backlog.ids):
        raise SystemExit(f"the topic holds {found[0]} records with ids summing up to {found[1]}, not {backlog}")


@dataclass
class Reading:
    """Reads a topic's committed records from its beginning; notes keys, times of commit and of arrival (ms)."""

    kafka: EmbeddedKafka
    topic: str
    keys: list[int] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)

    def __enter__(self) -> Reading:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def await_count(self, count: int) -> None:
        """Waits until so many have arrived, or for so long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.keys) < count and time.monotonic() < deadline:
            time.sleep(0.1)

    def _read(self) -> None:
        settings = {"bootstrap.servers": self.kafka.bootstrap, "group.id": "bench", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.auto.commit": False, "fetch.wait.max.ms": 10})
        consumer.assign([TopicPartition(self.topic, n, 0) for n in range(PARTITIONS)])
        while not self._over.is_set():
            for message in consumer.consume(10_000, 0.005):
                error = message.error()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise SystemExit(str(error))
                    continue
                now = time.time() * 1000
                self.keys.append(json.loads(message.key() or "")["id"])
                self.times.append((json.loads(message.value() or "")["source"]["ts_us"] / 1000, now))
        consumer.close()


def latency(
    server: EmbeddedPostgres, kafka: EmbeddedKafka, delivery: str, trigger: str, seconds: float
) -> dict[str, Any]:
    """From commit in the database to a consumer of committed records, under CHANGES_A_SECOND transactions a second."""
    slot, first = f"live_{delivery[:2]}_{trigger}", time.time_ns() // 1000
    workload.make_slots(server, [slot])
    course, topic = Course(server, workload.Backlog(0, 0, "", 0)), new_topic(kafka)
    with tempfile.TemporaryDirectory() as folder, Reading(kafka, topic) as reading:
        content = {**into(course, slot, kafka, delivery, topic), "trigger": trigger}
        with contestants.reader({"content": content, "folder": folder, "kind": "live"}) as process:
            contestants.tell(process, "go")
            contestants.expect(process, "STREAMING")
            tree = measure.Tree(process.pid)
            warm = workload.trickle(server, first, CHANGES_A_SECOND, WARM_UP_SECONDS)
            before = tree.cpu()
            sent = workload.trickle(server, first + 500_000, CHANGES_A_SECOND, seconds)
            cpu = (tree.cpu() - before) / seconds
            reading.await_count(warm + sent)
            contestants.tell(process, "stop")
            batches = contestants.answer(process)["batches"]
    if len(reading.times) != warm + sent:
        raise SystemExit(f"{len(reading.times)} of {warm + sent} changes arrived")
    waits = sorted(arrival - commit for commit, arrival in sorted(reading.times)[warm:])
    figures = {"median_ms": median(waits), "p99_ms": waits[int(len(waits) * 0.99)], "most_ms": waits[-1]}
    told = ", ".join(f"{name.removesuffix('_ms')} {value:,.0f} ms" for name, value in figures.items())
    console.print(f"Latency, {delivery}, trigger {trigger}: {told}; {cpu:.2f} cores busy; {batches} batches")
    return {**figures, "changes": sent, "cores_busy": cpu, "batches": batches}


if __name__ == "__main__":
    main()
