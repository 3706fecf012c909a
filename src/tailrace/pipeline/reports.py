"""Takes what Spark reports of a running query's micro-batches out of Java, each report once."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from tailrace.pipeline.progress import offset_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from tailrace.spark.latest_file import LatestFile

Report = dict[str, Any]


class Reports:
    """The reports of one query. All methods may be called by several threads, and raise what Spark fails with.

    Spark keeps the newest 100. `recentProgress` of PySpark asks Java for all of them at each call, and converts each
    twice; a run looks twice a second.

    `latest` has what a Spark that does not ask the source lacks in the reports: `latestOffset` of the newest one.
    """

    def __init__(self, query: StreamingQuery, latest: LatestFile | None = None) -> None:
        self._java: Any = query._jsq
        self._latest = latest
        self._lock = threading.Lock()
        self._text: str | None = None
        self._last: Report | None = None
        self._untold: list[Report] = []

    @property
    def last(self) -> Report | None:
        """The newest report, None before the first."""
        with self._lock:
            self._look()
            return self._last

    def new(self) -> list[Report]:
        """The reports since the last call, in order."""
        with self._lock:
            self._look()
            untold, self._untold = self._untold, []
            return untold

    def _look(self) -> None:
        newest = self._java.lastProgress()
        text = None if newest is None else newest.json()
        if text is None or text == self._text:
            return
        kept, texts = self._java.recentProgress(), list[str]()
        for number in range(len(kept) - 1, -1, -1):
            each = kept[number].json()
            if each == self._text:
                break
            texts.insert(0, each)
        self._text = texts[-1]
        reports = [json.loads(each) for each in texts]
        self._last = reports[-1]
        if self._latest is not None and reports[-1].get("sources"):
            reports[-1]["sources"][0]["latestOffset"] = self._latest.read(offset_of(reports[-1], "endOffset"))
        self._untold += reports
