"""The reader's thread: same items, same errors, and the producer closed before the consumer goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tailrace.connectors.ahead import ahead


def test_items_are_prepared_in_order_and_one_step_ahead() -> None:
    produced: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            produced.append(number)
            yield number

    consumed = []
    for number in ahead(items()):
        consumed.append(number)
        # One waits in the queue, one in the producer's hands.
        assert len(produced) <= number + 3
    assert consumed == list(range(100))


def test_the_next_item_is_prepared_meanwhile() -> None:
    begun = [threading.Event() for _ in range(10)]

    def items() -> Iterator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    for number in ahead(items()):
        assert all(event.wait(60) for event in begun[: number + 2]), "it waits until this one is processed"


def test_an_error_of_the_producer_is_raised_to_the_consumer() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    taken = ahead(items())
    assert next(taken) == 1
    with pytest.raises(KeyError, match="gone"):
        next(taken)


def test_leaving_early_closes_the_producer_in_its_thread_first() -> None:
    closed: list[str] = []

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(threading.current_thread().name)

    taken = ahead(items())
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]
    assert closed == ["tailrace-read"]
    assert "tailrace-read" not in [thread.name for thread in threading.enumerate()]
