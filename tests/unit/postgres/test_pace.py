"""How much of the log is decoded at once."""

from __future__ import annotations

from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.log.reader import Pace, _joined
from tailrace.connectors.reader_socket import Block
from tests.unit.spark.test_shapes import inserted

_BLOCK = bytes(4 << 20)


def sizes(pace: Pace, blocks: int, tables: int) -> list[int]:
    """How many blocks each chunk is decoded from, with a row of each table in it."""
    found = []
    for joined in _joined((Block(None, _BLOCK) for _ in range(blocks)), pace):
        found.append(len(joined))
        pace.see(Chunk([inserted()] * tables), len(joined) * len(_BLOCK))
    return found


def test_blocks_of_few_rows_of_many_tables_are_decoded_together() -> None:
    assert sizes(Pace(), blocks=50, tables=2) == [1, 16, 16, 16, 1]


def test_blocks_of_one_table_are_decoded_one_by_one() -> None:
    assert sizes(Pace(bytes=4 * len(_BLOCK)), blocks=6, tables=1) == [4, 1, 1]
