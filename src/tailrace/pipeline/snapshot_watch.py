"""Reports the progress of a running first snapshot: by its splits, and the tasks that Spark counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.connectors.ports import Admin
from tailrace.errors import SourceError
from tailrace.pipeline.checkpoint import SparkAloneError, position
from tailrace.snapshot.report import INITIAL, Report, named

if TYPE_CHECKING:
    from pyspark.core.status import StatusTracker
    from pyspark.sql.streaming.query import StreamingQuery


class SnapshotWatch:
    """Watches the query until the batches are done that read the tables."""

    def __init__(
        self, admin: Admin, config: Config, checkpoint: str, tracker: StatusTracker, query: StreamingQuery
    ) -> None:
        self._admin = admin
        self._config = config
        self._checkpoint = checkpoint
        self._is_alone = False
        self._tracker = tracker
        self._group = str(query.runId)
        self._since: float | None = None
        self._estimate: tuple[int, int] | None = None

    def report(self) -> Report | None:
        """The snapshot that runs now, None where none does, or where only Spark can read the checkpoint."""
        if self._is_alone:
            return None
        try:
            now = position(self._checkpoint)
        except SparkAloneError:
            self._is_alone = True  # to ask a store without its keys takes seconds
            return None
        done = -1 if now.committed is None else now.committed.number
        if now.planned is None or now.planned.number == done or now.planned.offset.get("phase") != "snapshot":
            return None
        tasks, finished, active = self._tasks()
        if not tasks:
            return None
        reading = now.planned.offset.get("reading")
        if reading is not None and reading["of"]:
            finished, tasks = reading["splits"] - tasks + finished, reading["of"]
        self._since = self._since or time.monotonic()
        self._estimate = self._estimate or estimate(self._admin, self._config)
        tables, total = self._estimate
        left = (time.monotonic() - self._since) * (tasks - finished) / finished if finished else None
        rows = total * finished // tasks
        return Report(
            INITIAL,
            named(tables),
            rows,
            total,
            chunk=finished,
            chunks=tasks,
            seconds_left=left,
            active=active,
        )

    def _tasks(self) -> tuple[int, int, int]:
        """How many tasks the query's running job has, how many of them are done, and how many run."""
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(self._group)]
        stages = [id_ for job in jobs if job is not None and job.status == "RUNNING" for id_ in job.stageIds]
        stage_infos = [info for id_ in stages if (info := self._tracker.getStageInfo(id_)) is not None]
        done, active = (
            sum(info.numCompletedTasks for info in stage_infos),
            sum(info.numActiveTasks for info in stage_infos),
        )
        return sum(info.numTasks for info in stage_infos), done, active


def estimate(admin: Admin, config: Config) -> tuple[int, int]:
    """How many tables the snapshot reads, and how many rows the server thinks they have."""
    wanted = TableFilter.from_config(config)
    try:
        tables = [table for table in admin.overview() if wanted.snapshots(table.id)]
    except SourceError:
        # Busy or unreachable for the moment: the pipeline itself will report it.
        tables = []
    return len(tables), sum(table.rows for table in tables)
