"""Takes over the pipeline's transactional ids for a run: fences all earlier runs and reads what they committed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tailrace.sinks.kafka import state
from tailrace.sinks.kafka.client import Settings
from tailrace.sinks.kafka.transactions import Ticket, fence, look, taken_over
from tailrace.spark import failpoint

_AT_ONCE = 16  # guessed

# What a task returns: its number, its producer's token, and how far it has read the state topic (0: not at all).
Sent = tuple[int, str, int]


class ClusterClaim:
    """A run's right to write into a cluster, held on the driver. Raises SinkError.

    The order matters. First the run becomes the newest, so that a task of an earlier run that starts its producer from
    now on sees it and stops. Then the producers that were started before are cut off. What the state topic says after
    that is final.
    """

    def __init__(self, settings: Settings, pipeline: str, tasks: int) -> None:
        self._settings, self._pipeline = settings, pipeline
        self._run = uuid.uuid4().hex
        self._owners: dict[int, str] = {}
        state.prepare(settings)
        before = state.read(settings, pipeline, 0, is_committed=False)
        self._tasks = max(tasks, before.tasks)
        state.register(settings, pipeline, self._run, self._tasks)
        failpoint.reach("kafka-claim")
        ids = [settings.transactional_id(pipeline, task) for task in range(self._tasks)]
        with ThreadPoolExecutor(min(len(ids), _AT_ONCE)) as pool:
            list(pool.map(lambda transactional_id: fence(settings, transactional_id), ids))
        topic_state = state.read(settings, pipeline, 0)
        if topic_state.run != self._run:
            raise taken_over(settings, pipeline)
        self._since, self._splits = topic_state.end, frozenset(topic_state.splits)

    def ticket(self, batch: int, tasks: int) -> Ticket:
        """What the tasks of a micro-batch need; `tasks` is their largest number."""
        if tasks > self._tasks:
            # A run that is not the newest any more must not become it again: it would write what it planned long ago.
            self._look()
            state.register(self._settings, self._pipeline, self._run, tasks)
            self._look()
            self._tasks = tasks
        return Ticket(self._pipeline, self._run, batch, self._since, self._splits, dict(self._owners))

    def done(self, sent: Iterable[Sent]) -> None:
        """All tasks of a micro-batch have succeeded."""
        # The next batch holds other splits: what the runs before have committed concerns the first one alone.
        self._splits = frozenset()
        for task, token, end in sent:
            if token:
                self._owners[task] = token
            self._since = max(self._since, end)

    def _look(self) -> None:
        self._since = look(self._settings, self._pipeline, self._run, self._since).end
