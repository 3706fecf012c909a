"""How many blocks of messages are decoded at once."""

from __future__ import annotations

from tailrace.connectors.base import Chunk
from tailrace.connectors.postgres.log.reader import Pace, _joined
from tailrace.connectors.reader_socket import Block
from tests.unit.spark.test_shapes import inserted


def test_blocks_of_few_rows_of_many_tables_are_decoded_together() -> None:
    pace, sizes = Pace(), []
    for blocks in _joined((Block(None, b"") for _ in range(24)), pace):
        sizes.append(len(blocks))
        pace.see(Chunk([inserted(), inserted()]))
    assert sizes == [1, 2, 4, 8, 8, 1]


def test_blocks_of_one_table_are_decoded_one_by_one() -> None:
    pace, sizes = Pace(blocks=4), []
    for blocks in _joined((Block(None, b"") for _ in range(6)), pace):
        sizes.append(len(blocks))
        pace.see(Chunk([inserted()]))
    assert sizes == [4, 1, 1]
