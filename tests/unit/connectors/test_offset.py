"""Offsets: what is stored, and that it is read again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.capture.offset import Offset
from tailrace.connectors.change_tables.position import LsnPosition as ChangeTablePosition
from tailrace.connectors.offset import STREAM, position_of
from tailrace.connectors.postgres.position import (
    LogClaim,
    SeenLog,
    claim,
    claim_of_slot,
    format_lsn,
    parse_lsn,
    remembered,
)
from tailrace.connectors.snapshots import SnapshotPlace
from tailrace.errors import OffsetError
from tailrace.snapshot.progress import Progress, Undo
from tailrace.snapshot.reading import Reading
from tailrace.snapshot.signals import TableRequest

SOURCE = "7312/shop/tailrace_shop"
REQUEST = TableRequest("s1", "incremental", "public.a")
# As a checkpoint has it.
NODE: dict[str, Any] = {
    "version": 2,
    "connector": "postgresql",
    "source": SOURCE,
    "pipeline": "9f2c",
    "phase": "stream",
    "position": "16/B374D848",
    "ts_us": 1764000000000000,
    "log": {
        "last_commit": 97500059720,
        "timeline": 1,
        "slot": {"name": "tailrace_shop", "from": "16/B3740000"},
        "server": {"confirmed": "16/B3741200", "clock_us": 1764000000000123},
    },
    "snapshots": {
        "handled": [{"id": "s1", "row": "760"}, {"id": "s0", "row": None}],
        "queue": [{"signal": "s1", "kind": "incremental", "table": "public.a"}],
        "last": ["3"],
        "maximum": ["9"],
        "rows": 3,
        "paused": False,
        "undo": {
            "queue": [
                0,
                {
                    "signal": "s1",
                    "kind": "incremental",
                    "table": "public.b",
                    "condition": "x > 1",
                    "surrogate": "k",
                    "keys": [["1"]],
                    "leading": ["my.s"],
                },
            ],
            "last": None,
            "maximum": ["9"],
            "rows": 0,
            "key": "id integer",
        },
    },
    "reading": {
        "place": {"left": ["public.a"], "last": ["7"], "began": "97500000000", "storage": 16384, "whole": False},
        "undo": None,
        "touched": ["public.a"],
        "splits": 3,
        "of": 9,
    },
}
SEEN = SeenLog(0x16_B3741200, 1764000000000123, 97500059720)
READ = Offset(
    "postgresql",
    SOURCE,
    "9f2c",
    STREAM,
    position=0x16_B374D848,
    ts_us=1764000000000000,
    log=remembered(97500059720, timeline=1, slot="tailrace_shop", moved_from=0x16_B3740000, seen=SEEN),
    progress=Progress(
        handled=(("s1", "760"), ("s0", None)),
        queue=(REQUEST,),
        last=("3",),
        maximum=("9",),
        rows=3,
        undo=Undo(
            (
                REQUEST,
                TableRequest(
                    "s1", "incremental", "public.b", "x > 1", surrogate="k", keys=(("1",),), leading=("my.s",)
                ),
            ),
            None,
            ("9",),
            0,
            "id integer",
        ),
    ),
    reading=Reading(SnapshotPlace(("public.a",), ("7",), "97500000000", 16384), touched=("public.a",), splits=3, of=9),
)


def stored(node: Any) -> dict[str, Any]:
    """As it comes back from a checkpoint."""
    found: dict[str, Any] = json.loads(json.dumps(node))
    return found


def read(node: dict[str, Any], source: str = SOURCE) -> Offset:
    return Offset.from_json(node, "postgresql", source, parse_lsn)


def test_an_offset_is_read() -> None:
    assert read(NODE) == READ
    assert position_of(NODE) == "16/B374D848"


def test_an_offset_is_stored_as_version_2_and_read_again() -> None:
    node = READ.to_json(format_lsn)
    assert (node["version"], node["position"], position_of(node)) == (2, "16/B374D848", "16/B374D848")
    assert read(stored(node)) == READ
    assert json.dumps(read(stored(node)).to_json(format_lsn)) == json.dumps(node), "Spark compares the text"


def test_what_is_remembered_of_the_log_is_claimed_of_the_server() -> None:
    assert claim(READ) == LogClaim(0x16_B374D848, None, 1, 1764000000000000, 0x16_B3740000, SEEN)
    first = READ.at(phase="snapshot", position=None)
    assert claim_of_slot(None, first) == LogClaim(None, moved_from=0x16_B3740000)
    assert claim_of_slot(READ, first) == LogClaim(0x16_B374D848, moved_from=0x16_B3740000)
    assert claim_of_slot(None, READ) == LogClaim(0x16_B374D848)


def test_lists_are_stored_by_names_alone() -> None:
    snapshots = READ.to_json(format_lsn)["snapshots"]
    assert snapshots["handled"] == [{"id": "s1", "row": "760"}, {"id": "s0", "row": None}]
    assert snapshots["queue"] == [{"signal": "s1", "kind": "incremental", "table": "public.a"}]
    assert snapshots["undo"]["queue"][0] == 0, "a request of the present queue is not stored twice"
    assert set(snapshots["undo"]) == {"queue", "last", "maximum", "rows", "key"}


def test_a_position_is_text_that_only_its_connector_reads() -> None:
    position = ("00000025:00000013:0003", 7)
    offset = Offset("other", "s", "p", STREAM, position=position, ts_us=5, log={"instance": "dbo_t"})
    node = stored(offset.to_json(lambda position: f"{position[0]}/{position[1]}"))
    assert node["position"] == "00000025:00000013:0003/7"

    def parse(text: str) -> tuple[str, int]:
        lsn, _, number = text.partition("/")
        return lsn, int(number)

    assert Offset.from_json(node, "other", "s", parse) == offset


@pytest.mark.parametrize("version", [None, 0, 1, 3])
def test_another_version_is_an_error(version: int | None) -> None:
    with pytest.raises(OffsetError, match=f"offsets of version {version}, this release reads version 2") as caught:
        read({**NODE, "version": version})
    assert "set `checkpoint` to a new folder" in (caught.value.remedy or "")


def test_another_sources_offset_is_an_error() -> None:
    with pytest.raises(OffsetError, match="belongs to postgresql '7312/shop/tailrace_shop'"):
        read(NODE, "7312/shop/other")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"position": "16B374D848"}, "'16B374D848' is no LSN"),
        ({"position": "x/y"}, "invalid literal"),
        ({"position": 5}, "has no attribute"),
        ({"position": None}, "it has no position, although the log is being read"),
        ({"phase": "stroll"}, "its phase is 'stroll'"),
        ({"pipeline": ...}, "it lacks 'pipeline'"),
        ({"snapshots": {**NODE["snapshots"], "handled": 5}}, "not iterable"),
        ({"snapshots": []}, "it lacks 'queue'"),
        ({"reading": {"place": None}}, "it lacks 'undo'"),
    ],
)
def test_an_offset_that_cannot_be_read_is_an_error_with_its_remedy(change: dict[str, Any], said: str) -> None:
    node = {name: value for name, value in {**NODE, **change}.items() if value is not ...}
    with pytest.raises(OffsetError, match=f"the checkpoint's offset cannot be read.*{said}") as caught:
        read(node)
    assert "restore the newest file in the checkpoint's folder `offsets`" in (caught.value.remedy or "")


@pytest.mark.parametrize("text", ["", "shop", "shop=0x05'; DROP", "shop=0x05 other", "sh%20op=0x05\n"])
def test_a_position_in_change_tables_has_nothing_that_is_no_number(text: str) -> None:
    with pytest.raises(OffsetError, match="is no position in change tables"):
        ChangeTablePosition.from_text(text)
