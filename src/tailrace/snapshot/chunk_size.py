"""Sizes the chunks of an incremental snapshot by the time that reading one takes."""

from __future__ import annotations

from tailrace.config import Config
from tailrace.config.options.snapshot import INCREMENTAL_SNAPSHOT_CHUNK_SIZE

# Micro-batches have a fixed cost, so small chunks are slow; while a chunk is read, the log waits.
TARGET_SECONDS = 1.0
# A chunk travels in the plan of its micro-batch, through the driver.
MOST_BYTES, MOST_ROWS = 16 << 20, 1 << 17
# One quick chunk says little: caches are warm, or a condition let nothing through.
_MOST_GROWTH = 4.0


def fixed_size(config: Config) -> int | None:
    """The rows of a chunk that the user set, None for chunks sized by time."""
    return config[INCREMENTAL_SNAPSHOT_CHUNK_SIZE] if config.is_given(INCREMENTAL_SNAPSHOT_CHUNK_SIZE) else None


class ChunkSize:
    """How many rows the next chunk reads: as many as the user set, or as many as a second allows, from 1024 on.

    The sizes of a table say nothing about the next one, so each starts again.
    """

    def __init__(self, config: Config) -> None:
        self._is_fixed = fixed_size(config) is not None
        self._first = config[INCREMENTAL_SNAPSHOT_CHUNK_SIZE]
        self.rows = self._first

    def begin(self) -> None:
        """Another table is read."""
        self.rows = self._first

    def learn(self, rows: int, size: int, seconds: float) -> None:
        """Size the next chunk by one of so many rows and bytes that took so long to read."""
        if self._is_fixed or not rows:
            return
        by_time = self.rows * min(TARGET_SECONDS / max(seconds, 1e-3), _MOST_GROWTH)
        by_bytes = rows * MOST_BYTES / max(size, 1)
        self.rows = max(1, min(int(by_time), int(by_bytes), MOST_ROWS))
