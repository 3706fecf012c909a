"""Writers that change rows of a table until a block ends."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.conformance.subject import KEY, NOTE, VALUE, Change, Delete, Insert, Source, Update

WRITERS, KEYS, FIRST_KEY = 2, 20, 1000


@contextmanager
def traffic(source: Source, *tables: str, pause: float = 0.05) -> Iterator[None]:
    """Transactions of several changes, of all kinds; every writer has keys of its own. Raises what a writer raised."""
    with _writing(lambda number, over: _write(source, tables, number, over, pause)):
        yield


@contextmanager
def inserting(source: Source, table: str, after: int = FIRST_KEY - 1) -> Iterator[dict[int, float]]:
    """Transactions that insert a row each, with keys above `after`; by KEY the time at which the commit had returned.

    Raises as `traffic`.
    """
    returned: dict[int, float] = {}

    def insert(number: int, over: threading.Event) -> None:
        key = after + 1 + number
        while not over.wait(0.01):
            source.commit(Insert(table, {KEY: key, VALUE: 0, NOTE: None}))
            returned[key] = time.time()
            key += WRITERS

    with _writing(insert):
        yield returned


@contextmanager
def _writing(write: Callable[[int, threading.Event], None]) -> Iterator[None]:
    """Writers in threads, by their numbers, until the block ends."""
    over = threading.Event()
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            write(number, over)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _write(source: Source, tables: tuple[str, ...], number: int, over: threading.Event, pause: float) -> None:
    draw = random.Random(number)
    # Rows that an earlier traffic has left.
    present = {table: {row[KEY] for row in source.rows(table) if row[KEY] % WRITERS == number} for table in tables}
    version = 0
    while not over.wait(pause):
        changes: list[Change] = []
        for _ in range(draw.randint(1, 4)):
            version += 1
            table = draw.choice(tables)
            key = FIRST_KEY + draw.randrange(KEYS) * WRITERS + number
            if key not in present[table]:
                changes.append(Insert(table, {KEY: key, VALUE: version, NOTE: f"{number}"}))
                present[table].add(key)
            elif draw.random() < 0.3:
                changes.append(Delete(table, key))
                present[table].discard(key)
            else:
                changes.append(Update(table, key, {VALUE: version}))
        source.commit(*changes)
