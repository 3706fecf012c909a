"""Reads pages of a table for comparisons, by the pager that reads its chunks for incremental snapshots."""

from __future__ import annotations

import pyarrow as pa

from tailrace.connectors.snapshot_ports import Page
from tailrace.connectors.snapshots import PagingKey
from tailrace.model.native import compared_rows
from tailrace.model.table import TableSchema


def page_of(
    table: TableSchema, pages: Page, after: PagingKey | None, until: PagingKey | None, size: int
) -> tuple[pa.Table, PagingKey | None]:
    """What SourceNow.page gives."""
    end = pages.maximum() if until is None else until
    if end is None:
        return compared_rows(table, pa.nulls(0, table.row_type)), None
    images, last, _ = pages.after(after, end, size)
    return compared_rows(table, images), last
