"""`tailrace signal`: how its options become a signal's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.errors import ConfigError, SignalError
from tailrace.operate.signal_content import content
from tailrace.pipeline.signaling import send


@pytest.mark.parametrize(
    ("data", "listed"), [("{}", ["public.t", "public.u"]), ('{"data-collections": ["public.t", "public.u"]}', [])]
)
def test_a_filter_is_for_all_tables_wherever_they_are_named(data: str, listed: list[str]) -> None:
    found = content("execute-snapshot", data, listed, None, "id = 1", None)
    assert found == {
        "data-collections": ["public.t", "public.u"],
        "additional-conditions": [
            {"data-collection": "public.t", "filter": "id = 1"},
            {"data-collection": "public.u", "filter": "id = 1"},
        ],
    }


def test_tables_that_are_no_list_are_an_error() -> None:
    with pytest.raises(ConfigError, match="data-collections is no list"):
        content("execute-snapshot", '{"data-collections": "public.t"}', [], None, "id = 1", None)


def test_a_signal_that_is_too_large_is_not_sent(tmp_path: Path) -> None:
    keys = [[str(n)] for n in range(10_001)]
    with pytest.raises(SignalError, match=r"names 10,001 keys, and a signal may name 10,000\n  Remedy: send 2 signals"):
        send(tmp_path, "execute-snapshot", {"data-collections": ["public.t"], "keys": keys})
    with pytest.raises(SignalError, match="longer than 1,048,576 characters"):
        send(tmp_path, "log", {"message": "m" * (1 << 20)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("type_", "kind", "words"),
    [("exceute-snapshot", None, "is no type of signal"), ("execute-snapshot", "blockin", "is no type of snapshot")],
)
def test_unknown_types_are_errors_that_name_the_known_ones(type_: str, kind: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        content(type_, "{}", ["public.t"], kind, None, None)
    assert ("execute-snapshot" if kind is None else "blocking") in (caught.value.remedy or "")
