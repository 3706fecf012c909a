"""How much of the log is decoded at once."""

from __future__ import annotations

from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.log.reader import DecodeSize, _joined
from tailrace.connectors.reader_socket import AnswerBlock
from tests.unit.spark.test_shapes import inserted

_BLOCK = bytes(4 << 20)


def sizes(blocks: int, tables: int) -> list[int]:
    """How many blocks each chunk is decoded from, with a row of each table in it."""
    size, found = DecodeSize(), []
    for joined in _joined((AnswerBlock(None, _BLOCK) for _ in range(blocks)), size):
        found.append(len(joined))
        size.see(Chunk([inserted()] * tables))
    return found


def test_blocks_with_many_columns_are_decoded_together_up_to_a_limit() -> None:
    columns = len(inserted().table.columns)
    assert sizes(blocks=6, tables=60 // columns) == [1] * 6, "a block is more than their columns ask for"
    assert sizes(blocks=8, tables=320 // columns) == [1, 5, 2], "20 MB for 320 columns"
    assert sizes(blocks=50, tables=3000 // columns) == [1, 16, 16, 16, 1]
