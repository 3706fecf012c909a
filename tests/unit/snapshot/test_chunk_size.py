"""Sizes of chunks: by time and bytes where nobody sets one, and exactly what is set otherwise."""

from tailrace.config import Config
from tailrace.snapshot.chunk_size import MOST_BYTES, MOST_ROWS, ChunkSize, fixed_size
from tests.unit.events.event_recordings import configured


def of(**properties: str) -> ChunkSize:
    return ChunkSize(settings(**properties))


def settings(**properties: str) -> Config:
    return configured({name.replace("_", "."): value for name, value in properties.items()})


def test_a_size_that_is_set_is_kept() -> None:
    size = of(incremental_snapshot_chunk_size="1024")
    size.learn(1024, 100_000, 0.001)
    assert size.rows == fixed_size(settings(incremental_snapshot_chunk_size="1024")) == 1024
    assert fixed_size(settings()) is None


def test_chunks_grow_to_a_second_and_shrink_again() -> None:
    size = of()
    sizes = []
    for _ in range(8):
        sizes.append(size.rows)
        size.learn(size.rows, size.rows * 100, size.rows / 50_000)  # 50,000 rows/s
    assert sizes[:3] == [1024, 4096, 16384]
    assert 45_000 <= sizes[-1] <= 50_000
    size.learn(size.rows, size.rows * 100, 10.0)
    assert size.rows <= 5_000
    size.begin()
    assert size.rows == 1024


def test_chunks_are_bounded_in_rows_and_bytes() -> None:
    narrow, wide = of(), of()
    for _ in range(20):
        narrow.learn(narrow.rows, narrow.rows * 10, 0.001)
        wide.learn(wide.rows, wide.rows * 100_000, 0.001)
    assert narrow.rows == MOST_ROWS
    assert wide.rows == MOST_BYTES // 100_000
    wide.learn(1, MOST_BYTES * 2, 0.001)
    assert wide.rows == 1
    wide.learn(0, 0, 0.001)
    assert wide.rows == 1
