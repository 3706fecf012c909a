"""Chooses binary or text COPY for a table, and resumes the read after a lost connection."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from psycopg import sql

from tailrace.config import Config
from tailrace.connectors.columns import CapturedTable
from tailrace.connectors.postgres.server.connect import is_transient
from tailrace.connectors.postgres.snapshot import text_rows
from tailrace.connectors.postgres.snapshot.blocks import RowBlock
from tailrace.connectors.retry import Backoff, is_listed
from tailrace.errors import SourceError

# Less takes no longer to read as text than the other road's connection takes to be made.
BINARY_BYTES = 8 << 20


def blocks(config: Config, snapshot: str, table: CapturedTable, rows: sql.Composable, size: int) -> Iterator[RowBlock]:
    """About so many bytes of a table's rows (`rows` follows the SELECT list) under an exported snapshot.

    A lost connection is opened again, and rows that were returned before are not repeated. Raises SourceError, with the
    table.
    """
    backoff = Backoff(config)
    handed: list[bytes] = []
    while True:
        try:
            for block in _after(handed, _road(config, snapshot, table, rows, size), table):
                handed.append(block.digest)
                backoff.reset()
                yield block
            return
        except (SourceError, psycopg.OperationalError) as error:  # noqa: PERF203  # the loop is the retrying
            if not is_transient(error) and not is_listed(config, error):
                raise
            backoff.wait(error)


def _road(config: Config, snapshot: str, table: CapturedTable, rows: sql.Composable, size: int) -> Iterator[RowBlock]:
    if size < BINARY_BYTES:
        return text_rows.blocks(config, snapshot, table, rows)
    from tailrace.connectors.postgres.snapshot import (
        binary_rows,  # loads pandas, half a second that no planner has to wait
    )

    return binary_rows.blocks(config, snapshot, table, rows)


def _after(handed: list[bytes], blocks: Iterator[RowBlock], table: CapturedTable) -> Iterator[RowBlock]:
    """The blocks behind those handed out. Under one snapshot the same come first, unless the server reads otherwise."""
    for digest in tuple(handed):
        block = next(blocks, None)
        if block is None or block.digest != digest:
            raise SourceError(
                "the connection was lost, and the rows that were read already come in another order now",
                where=str(table.schema.id),
                remedy="start the pipeline again; what was read of this table since its last batch is read again",
            )
    yield from blocks
