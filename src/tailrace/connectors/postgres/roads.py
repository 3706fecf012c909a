"""Which road a table's rows come by: in binary form where they are many, else as text."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.postgres import text_rows
from tailrace.connectors.postgres.blocks import Block
from tailrace.connectors.postgres.catalog import CapturedTable

# Less takes no longer to read as text than the other road's connection takes to be made.
BINARY_BYTES = 8 << 20


def blocks(config: Config, snapshot: str, table: CapturedTable, rows: sql.Composable, size: int) -> Iterator[Block]:
    """About so many bytes of a table's rows (`rows` follows the SELECT list) under an exported snapshot.

    Raises SourceError, naming the table.
    """
    if size < BINARY_BYTES:
        return text_rows.blocks(config, snapshot, table, rows)
    from tailrace.connectors.postgres import binary_rows  # loads pandas, half a second that no planner has to wait

    return binary_rows.blocks(config, snapshot, table, rows)
