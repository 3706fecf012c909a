"""Names what a server refuses of a table that is read by a text of a signal or of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.connectors.snapshot_ports import Failures
from tailrace.errors import SourceError
from tailrace.model.table import TableId


@contextmanager
def refusals(failures: Failures, table: TableId, origin: str) -> Iterator[None]:
    """Turn what the server refuses within the block into a SourceError; `origin` is where the user corrects it."""
    try:
        yield
    except failures.driver_error as error:
        if failures.is_lost(error) or failures.is_passing(error):
            raise
        raise SourceError(
            f"the snapshot cannot read the table: {failures.line(error)}", where=str(table), remedy=f"fix {origin}"
        ) from error
