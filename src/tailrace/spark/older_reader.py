"""The stream reader for Spark 4.0 and 4.1, which ask where a micro-batch ends and say neither its start nor a limit.

A method `latestOffset` without parameters is how a reader asks for that protocol, also of a newer Spark. Spark's
Java class for it (PythonMicroBatchStream, 4.0 to 4.2) calls in this order:

- A query that resumes: `partitions(x, x)`, where x is the newest offset of the checkpoint; then `partitions(w, x)` if
  that micro-batch was not committed; then `latestOffset()`, and so on.
- A new query: `latestOffset()` at once, and `initialOffset()` only when it plans that micro-batch.

So the newest `end` that `partitions` got is where the next micro-batch starts, and a query that has called nothing
before is new. One setting breaks the order, see `Capture.plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from pyspark.sql.types import StructType

from tailrace.capture.capture import Capture
from tailrace.config.options.spark import MAX_BYTES_PER_TRIGGER
from tailrace.override import override
from tailrace.spark.latest_file import LatestFile
from tailrace.spark.reader import StreamReader
from tailrace.spark.recipe import Recipe
from tailrace.spark.versions import InputPartition

log = logging.getLogger(__name__)

# How the query goes on, as its maker says: micro-batch after micro-batch, or so up to where the log ends at first.
# None: nobody says. Then Spark may end the query after one micro-batch, as it does with AvailableNow.
Pace = Literal["endless", "bounded"]


class OlderReader(StreamReader):
    """Offsets as the capture gives them, from a start that Spark was seen to have reached."""

    def __init__(
        self,
        capture: Capture | Recipe,
        schema: StructType,
        steps: str,
        run_id: str,
        pause_seconds: float = 0.0,
        pace: Pace | None = None,
        latest_file: str | None = None,
    ) -> None:
        super().__init__(capture, schema, steps, run_id, pause_seconds)
        self._latest = None if latest_file is None else LatestFile(latest_file)
        self._bounded = pace == "bounded"
        self._goes_on = pace is not None
        self._start: dict[str, Any] | None = None

    @override
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Where the next micro-batch ends; where it starts when there is nothing to read.

        The first one has no limit where it may be the only one: it then reads all that there is.
        """
        if self._start is None:
            self._start = self.initialOffset()
        most = self.capture.config[MAX_BYTES_PER_TRIGGER] if self._goes_on else None
        end = self.head(self._start, most)
        if not self._goes_on and end.get("reading") is not None:
            log.warning(
                "this first snapshot takes several micro-batches. With AvailableNow this Spark ends a query after one: "
                "use `tailrace run`, or a trigger by time"
            )
        self._goes_on = True
        if self._latest is not None:
            self._latest.write(end, self.capture.latest())
        return end

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The splits of a micro-batch; none where Spark only tells the offset that a query resumes from."""
        splits = super().partitions(start, end)
        self._start = end
        return splits
