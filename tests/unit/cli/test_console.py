"""Events as lines for people."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from tailrace.sinks.console import ConsoleEvent, line


def event(op: str, before: str | None, after: str | None, key: str | None = '{"id":1}') -> ConsoleEvent:
    ts = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    return ConsoleEvent(ts, op, "s.t", *(json.loads(text or "{}") for text in (key, before, after)))


def test_a_create_shows_the_row_without_repeating_its_key() -> None:
    text = line(event("c", None, '{"id":1,"name":"A","n":null}'), 6).plain
    assert text == "03:04:05.678 create   s.t     id=1  name=A, n=null"


def test_an_update_with_an_old_image_shows_what_changed() -> None:
    text = line(event("u", '{"id":1,"a":1,"b":2}', '{"id":1,"a":1,"b":3}')).plain
    assert text.endswith("update   s.t  id=1  b: 2 → 3")


def test_a_delete_shows_the_key_and_a_truncate_the_table() -> None:
    assert line(event("d", '{"id":1,"a":1}', None)).plain.endswith("delete   s.t  id=1")
    assert line(event("t", None, None, None)).plain.rstrip().endswith("truncate s.t")


def test_long_values_are_cut() -> None:
    assert line(event("c", None, '{"a":"%s"}' % ("x" * 100))).plain.endswith("x" * 57 + "...")


def test_operations_differ_in_colour() -> None:
    styles = {str(line(event(op, None, "{}")).spans[1].style) for op in "cudtr"}
    assert len(styles) == 5
