"""Tests what a batch does beside the log, by the state of the requested snapshots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.snapshot.progress import Progress
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL, TableRequest
from tailrace.snapshot.work import BatchWork, work

CHUNKS, TABLES = TableRequest("a", INCREMENTAL, "public.t"), TableRequest("b", BLOCKING, "public.t")


@pytest.mark.parametrize(
    ("progress", "is_behind", "expected"),
    [
        (Progress(), False, BatchWork.NOTHING),
        (Progress(), True, BatchWork.CATCH_UP),
        (Progress(wait=9), False, BatchWork.NOTHING),
        (Progress(queue=(CHUNKS,)), False, BatchWork.CHUNK),
        (Progress(queue=(CHUNKS,)), True, BatchWork.CATCH_UP),
        (Progress(queue=(CHUNKS,), paused=True), False, BatchWork.NOTHING),
        (Progress(queue=(CHUNKS,), wait=9), False, BatchWork.WAIT),
        (Progress(queue=(CHUNKS,), wait=9), True, BatchWork.WAIT),
        (Progress(queue=(CHUNKS,), wait=8), False, BatchWork.CHUNK),
        (Progress(queue=(TABLES,)), False, BatchWork.TABLES),
        (Progress(queue=(TABLES, CHUNKS)), True, BatchWork.CATCH_UP),
        (Progress(queue=(CHUNKS, TABLES), paused=True), False, BatchWork.TABLES),
        (Progress(queue=(CHUNKS, TABLES)), False, BatchWork.CHUNK),
    ],
)
def test_the_first_row_that_applies_decides(progress: Progress, is_behind: bool, expected: BatchWork) -> None:
    assert work(progress, is_behind=is_behind, has_ended=lambda number: number < 9) is expected


def test_the_server_is_asked_for_open_transactions_only_where_a_table_waits_for_them() -> None:
    asked: list[int] = []

    def has_ended(number: int) -> bool:
        asked.append(number)
        return False

    state = Progress(queue=(CHUNKS,))
    work(state, is_behind=False, has_ended=has_ended)
    work(replace(state, queue=(), wait=3), is_behind=False, has_ended=has_ended)
    assert not asked
    work(replace(state, wait=3), is_behind=False, has_ended=has_ended)
    assert asked == [3]
