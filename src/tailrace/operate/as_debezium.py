"""Translates the figures of a run to the attributes that Debezium's metrics have, as its JMX exporter names them.

Names and labels are those of the exporter's configuration in Debezium's examples (monitoring/debezium-jmx-exporter),
the attributes those of its MXBeans. What Tailrace cannot know is left out: an attribute that is always 0 would hide
what it is looked at for. -1 stands for what is not known yet, as there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.config import Config
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.config.options.runtime import MAX_QUEUE_SIZE
from tailrace.config.options.spark import MAX_BYTES_PER_TRIGGER
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.config.snapshot_modes import SnapshotMode
from tailrace.operate.watch import Figures
from tailrace.snapshot.reading import Reading
from tailrace.snapshot.report import INITIAL

Sample = tuple[str, dict[str, str], float]
# What the attributes call an operation, and what observed.py does.
_OPERATIONS = {"Create": "creates", "Update": "updates", "Delete": "deletes"}
# Where most attributes are of a database, these are of the connector's task, as its MXBean of a task has them.
_OF_TASK = {
    "Connected",
    "QueueTotalCapacity",
    "QueueRemainingCapacity",
    "MaxQueueSizeInBytes",
    "CurrentQueueSizeInBytes",
}


def samples(figures: Figures) -> Iterator[Sample]:
    """Name of the attribute, labels and value."""
    config = figures.config
    for context, values in (("streaming", _streaming(figures, config)), ("snapshot", _snapshot(figures))):
        labels = _labels(figures, config, context)
        of_database = _database(figures, config)
        for name, value in values.items():
            yield name, labels if name in _OF_TASK else {**labels, **of_database}, float(value)
    for table, rows in figures.scanned.items():
        labels = {**_labels(figures, config, "snapshot"), **_database(figures, config), "table": table}
        yield "RowsScanned", labels, float(rows)


def _labels(figures: Figures, config: Config, context: str) -> dict[str, str]:
    entry = figures.definition.entry
    labels = {"plugin": entry.metrics or entry.name, "name": config[TOPIC_PREFIX], "context": context}
    if entry.has_tasks:
        labels["task"] = "0"
    return labels


def _database(figures: Figures, config: Config) -> dict[str, str]:
    """The label of the one database that the figures are of; none of several, as the figures are of all together."""
    names = config[DATABASE_NAMES] if figures.definition.entry.by_database else []
    return {"database": names[0]} if len(names) == 1 else {}


def _streaming(figures: Figures, config: Config) -> dict[str, float]:
    status, total = figures.status, config[MAX_QUEUE_SIZE]
    behind = -1.0 if status.lag_seconds is None or status.phase != "stream" else status.lag_seconds * 1000
    since = -1.0 if figures.events_at is None else (figures.at - figures.events_at) * 1000
    # What waits between log and sink is a micro-batch. If more than one waits, the queue is full.
    most = config[MAX_BYTES_PER_TRIGGER]
    waiting = min(status.lag_bytes or 0, most)
    values: dict[str, float] = {
        "Connected": status.current is not None and status.run is not None and status.run.state == "running",
        "MilliSecondsBehindSource": round(behind),
        "MilliSecondsSinceLastEvent": round(since),
        "TotalNumberOfEventsSeen": figures.totals.events,
        "NumberOfErroneousEvents": sum(each.changes for each in status.set_aside),
        "QueueTotalCapacity": total,
        "QueueRemainingCapacity": total - total * waiting // most if most else total,
        "MaxQueueSizeInBytes": most,
        "CurrentQueueSizeInBytes": waiting,
    }
    return values | _behind(figures) | _counts(figures)


def _behind(figures: Figures) -> dict[str, float]:
    """How far the pipeline was behind, in milliseconds, over the time of this process."""
    spread = figures.behind
    if not spread.count:
        return {}
    seconds = {
        "MinValue": spread.least,
        "MaxValue": spread.greatest,
        "AverageValue": spread.average,
        **{f"P{share}": spread.quantile(share / 100) for share in (50, 95, 99)},
    }
    return {f"MilliSecondsBehindSource{name}": round(value * 1000, 3) for name, value in seconds.items()}


def _counts(figures: Figures) -> dict[str, float]:
    """Changes by operation and transactions, where they are counted."""
    counts = figures.totals.counts
    values = {f"TotalNumberOf{name}EventsSeen": counts[key] for name, key in _OPERATIONS.items() if key in counts}
    if "transactions" in counts and figures.definition.entry.has_transactions:
        values["NumberOfCommittedTransactions"] = counts["transactions"]
    return dict(values)


def _snapshot(figures: Figures) -> dict[str, float]:
    status = figures.status
    done = status.phase == "stream"
    runs, report = status.condition.is_ready, status.snapshot
    first = report if report is not None and report.kind == INITIAL else None
    total, left = _tables(figures)
    values: dict[str, float] = {
        "SnapshotRunning": (runs and not done) or (runs and report is not None and not report.paused),
        "SnapshotPaused": report is not None and report.paused,
        "SnapshotCompleted": done,
        "SnapshotAborted": not done and status.condition.is_lost,
        "SnapshotSkipped": done and not SnapshotMode.of(figures.config).at_first,
        "SnapshotDurationInSeconds": round(figures.snapshot_seconds),
        "SnapshotPausedDurationInSeconds": round(figures.paused_seconds),
    }
    if total is not None:
        values["TotalTableCount"] = total
        values["RemainingTableCount"] = 0 if done else total if left is None else left
    elif done:
        values["RemainingTableCount"] = 0
    if first is not None and first.total is not None:
        values["TotalNumberOfEventsSeen"] = first.rows
    return values


def _tables(figures: Figures) -> tuple[int | None, int | None]:
    """How many tables the first snapshot reads, and how many are left; None where that is not known (any more)."""
    report, progress = figures.status.snapshot, figures.progress
    reading = None if progress is None else progress.offset.get("reading")
    if reading is not None:
        state = Reading.from_json(reading)
        return len({*state.touched, *state.place.left}), len(state.place.left)
    if report is not None and report.tables is not None:
        return report.tables, report.tables - (report.tables_read or 0)
    return None, None
