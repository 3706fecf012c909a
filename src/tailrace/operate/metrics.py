"""Metrics in Prometheus's text form: those of the reference's exporter under its names and labels, and our own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.registry import Collector

from tailrace.operate import as_debezium
from tailrace.operate.condition import Condition
from tailrace.operate.memory import memory
from tailrace.operate.watch import Figures
from tailrace.override import override
from tailrace.spark.observed import OPERATIONS, TRANSACTIONS
from tailrace.version import __version__

__all__ = ["CONTENT_TYPE", "exposition"]

# A value with the labels that it has besides `pipeline`.
Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True)
class MetricFamily:
    """One of our own metrics; `samples` gives its values for a pipeline, none where they are not known."""

    name: str
    help: str
    samples: Callable[[Figures], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    is_counter: bool = False

    def collected(self, all_figures: Sequence[Figures]) -> Metric:
        """The metric of all pipelines."""
        kind = CounterMetricFamily if self.is_counter else GaugeMetricFamily
        metric: CounterMetricFamily | GaugeMetricFamily = kind(self.name, self.help, labels=("pipeline", *self.labels))
        for figures in all_figures:
            for labels, value in self.samples(figures):
                metric.add_metric((figures.definition.name, *labels), value)
        return metric


def _known(value: float | None) -> list[Sample]:
    return [] if value is None else [((), value)]


def _by(values: Mapping[str, float]) -> list[Sample]:
    return [((name,), value) for name, value in values.items()]


def _conditions(figures: Figures) -> list[Sample]:
    present = figures.status.condition
    return [((each.value,), float(each is present)) for each in Condition]


def _lag_bytes(figures: Figures) -> list[Sample]:
    values = {"read": figures.read_bytes, "written": figures.status.lag_bytes}
    return _by({stage: value for stage, value in values.items() if value is not None})


def _lag_seconds(figures: Figures) -> list[Sample]:
    values = {"read": figures.read_seconds, "written": figures.status.lag_seconds}
    return _by({stage: value for stage, value in values.items() if value is not None})


def _tables(figures: Figures) -> list[Sample]:
    counts = Counter(each.state for each in figures.status.replica)
    counts["given up"] = len(figures.status.incomplete)
    return _by(counts)


def _complete(figures: Figures) -> list[Sample]:
    """The pipeline's value has an empty label."""
    status = figures.status
    values = {"": status.complete_until, **{each.table: each.complete_until for each in status.replica}}
    return _by({table: datetime.fromisoformat(at).timestamp() for table, at in values.items() if at is not None})


def _verified(figures: Figures) -> list[Sample]:
    values = {each.table: each.verified_up_to for each in figures.status.replica}
    return _by({table: datetime.fromisoformat(at).timestamp() for table, at in values.items() if at is not None})


def _differs(figures: Figures) -> list[Sample]:
    checked = [each for each in figures.status.replica if each.verified_percent is not None]
    return _by({each.table: float(each.differs is not None) for each in checked})


def _warnings(figures: Figures) -> list[Sample]:
    return _by(Counter(each.name for each in figures.status.problems if each.ok is None))


def _headroom(figures: Figures) -> list[Sample]:
    slot = figures.status.fields.get("slot") or {}
    return _known(slot.get("headroom_bytes"))


FAMILIES = (
    MetricFamily("tailrace_condition", "1 for the condition in which the pipeline is.", _conditions, ("condition",)),
    MetricFamily(
        "tailrace_ready", "Whether changes arrive in the sink.", lambda it: _known(it.status.condition.is_ready)
    ),
    MetricFamily(
        "tailrace_source_up", "Whether the database answers.", lambda it: _known(it.status.current is not None)
    ),
    MetricFamily(
        "tailrace_sink_up",
        "Whether the sink answers.",
        lambda it: [] if it.progress is None else _known(it.progress.sink_problem is None),
    ),
    MetricFamily(
        "tailrace_lag_bytes",
        "Log between its end and what is planned to be read, or written to the sink.",
        _lag_bytes,
        ("stage",),
    ),
    MetricFamily(
        "tailrace_lag_seconds",
        "How long ago the log ended at what is planned to be read, or written to the sink.",
        _lag_seconds,
        ("stage",),
    ),
    MetricFamily(
        "tailrace_complete_until_seconds",
        "Time of the source, in seconds since 1970, up to which everything is in the sink; by table of a replica.",
        _complete,
        ("table",),
    ),
    MetricFamily(
        "tailrace_verified_up_to_seconds",
        "Up to when, in seconds since 1970, what was committed was compared and is in a table.",
        _verified,
        ("table",),
    ),
    MetricFamily(
        "tailrace_table_differs",
        "Whether continuous reconciliation has found that a table differs from its source.",
        _differs,
        ("table",),
    ),
    MetricFamily(
        "tailrace_log_retained_bytes",
        "Log that the server keeps for the pipeline.",
        lambda it: _known(it.status.fields.get("retained_bytes")),
    ),
    MetricFamily("tailrace_log_headroom_bytes", "Log that can come before the server drops what is needed.", _headroom),
    MetricFamily("tailrace_events", "Events written.", lambda it: _known(it.totals.events), is_counter=True),
    MetricFamily(
        "tailrace_changes",
        "Changes read, by operation; those of micro-batches that are written.",
        lambda it: _by({name: value for name, value in it.totals.counts.items() if name in OPERATIONS}),
        ("operation",),
        is_counter=True,
    ),
    MetricFamily(
        "tailrace_transactions",
        "Transactions of the source with changes that are written.",
        lambda it: _known(it.totals.counts.get(TRANSACTIONS) if it.definition.entry.has_transactions else None),
        is_counter=True,
    ),
    MetricFamily("tailrace_batches", "Micro-batches written.", lambda it: _known(it.totals.batches), is_counter=True),
    MetricFamily(
        "tailrace_batch_stage_seconds",
        "Time of micro-batches, by Spark's names of their stages; triggerExecution is the whole.",
        lambda it: _by(it.totals.seconds),
        ("stage",),
        is_counter=True,
    ),
    MetricFamily(
        "tailrace_table_rows",
        "Rows put and deleted in a table of a replica.",
        lambda it: _by(it.totals.rows),
        ("table",),
        is_counter=True,
    ),
    MetricFamily("tailrace_tables", "Tables of a replica by state; given up: snapshots.", _tables, ("state",)),
    MetricFamily(
        "tailrace_dead_letters",
        "Changes that are stored for a table that is set aside.",
        lambda it: _by({each.name: each.changes for each in it.status.set_aside}),
        ("table",),
    ),
    MetricFamily(
        "tailrace_snapshot_rows",
        "Rows that a running snapshot has read.",
        lambda it: [] if it.status.snapshot is None else _known(it.status.snapshot.rows),
    ),
    MetricFamily(
        "tailrace_snapshot_seconds_left",
        "Time that a running snapshot will take, about.",
        lambda it: [] if it.status.snapshot is None else _known(it.status.snapshot.seconds_left),
    ),
    MetricFamily(
        "tailrace_warnings", "Warnings that status and console show, by what they are about.", _warnings, ("about",)
    ),
    MetricFamily("tailrace_restarts", "Restarts of the query.", lambda it: _known(it.totals.restarts), is_counter=True),
    MetricFamily("tailrace_starts", "Starts of the pipeline.", lambda it: _known(it.starts), is_counter=True),
    MetricFamily(
        "tailrace_looked_seconds",
        "How long ago checkpoint and database were looked at.",
        lambda it: [] if it.looked_at is None else _known(it.at - it.looked_at),
    ),
)


class _Metrics(Collector):
    def __init__(self, all_figures: Sequence[Figures], broken: Iterable[str]) -> None:
        self._figures, self._broken = all_figures, broken

    @override
    def collect(self) -> Iterator[Metric]:
        release = GaugeMetricFamily("tailrace_info", "The release.", labels=("version",))
        release.add_metric((__version__,), 1)
        yield release
        for family in FAMILIES:
            yield family.collected(self._figures)
        used = GaugeMetricFamily("tailrace_memory_bytes", "Resident memory by kind of process.", labels=("process",))
        for kind, resident in memory().items():
            used.add_metric((kind,), resident)
        yield used
        wrong = GaugeMetricFamily(
            "tailrace_broken_files", "Files without a pipeline that can be run.", labels=("file",)
        )
        for file in self._broken:
            wrong.add_metric((file,), 1)
        yield wrong
        yield from self._as_debezium()
        yield from self._as_worker()

    def _as_debezium(self) -> Iterator[Metric]:
        """The exporter of the reference gives metrics no type and no help of their own."""
        families: dict[str, UnknownMetricFamily] = {}
        for figures in self._figures:
            for name, labels, value in as_debezium.samples(figures):
                full = f"debezium_metrics_{name}"
                metric = families.setdefault(full, UnknownMetricFamily(full, f"The reference's attribute {name}."))
                metric.add_sample(full, labels, value)
        yield from families.values()

    def _as_worker(self) -> Iterator[Metric]:
        """Of a worker of Kafka Connect, under the names of the same exporter: a stopped connector has no task."""
        states = [figures.status.condition.connect_state for figures in self._figures]
        counts = {"connector_count": len(states), "task_count": sum(state != "STOPPED" for state in states)}
        for name, value in counts.items():
            yield UnknownMetricFamily(f"kafka_connect_worker_metrics_{name}", "Pipelines of this process.", value)


def exposition(all_figures: Sequence[Figures], broken: Iterable[str] = ()) -> bytes:
    """The metrics of all pipelines of this process; `broken` are the names of files that hold none."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(all_figures, broken))
    return generate_latest(registry)
