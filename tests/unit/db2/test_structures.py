"""What of the catalog of Db2 says that rows have changed without a change in the log."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tailrace.connectors.db2.structures import Catalogued, described
from tailrace.model.differences import differences
from tailrace.model.structure import Member, Stored, Structure

NAME = ("SHOP", "ORDERS")
CREATED = "2026-11-27-01.02.03.000004"
EARLY, LATE = 20261127010203, 20261127020304


def structure(
    loaded: int = 0, created: str = CREATED, capture: str = "Y", parts: Mapping[str, str] | None = None
) -> Structure:
    members = {number: Member(name, "") for number, name in (parts or {"0": "PART0"}).items()}
    tables = {NAME: (created, capture)}
    return described(Catalogued({}, tables, {NAME: members}, {NAME: loaded}), NAME, ["ID"], ())


def why(before: Structure, now: Structure) -> str:
    return "; ".join(differences(Stored.of(before), now).why)


@pytest.mark.parametrize(("before", "now"), [(0, EARLY), (EARLY, LATE)])
def test_a_table_that_was_loaded_differs(before: int, now: int) -> None:
    assert "LOAD" in why(structure(before), structure(now))


def test_a_history_that_was_pruned_tells_nothing() -> None:
    assert why(structure(EARLY), structure(EARLY)) == ""
    assert why(structure(EARLY), structure(0)) == ""
    assert "LOAD" in why(structure(0), structure(LATE))


def test_a_table_that_was_created_again_is_another_one() -> None:
    assert "created again" in why(structure(), structure(created="2026-11-28-01.02.03.000004"))
    earlier = Stored.of(structure())
    earlier.identity = ""  # as for one that was unknown then
    assert differences(earlier, structure()).why == ()


def test_what_was_not_captured_for_a_while_differs_afterwards() -> None:
    assert structure(capture="N").unsent is not None
    assert structure(capture="").unsent is not None  # z/OS
    assert structure(capture="L").unsent is None  # with INCLUDE LONGVAR COLUMNS
    assert "did not come for a while" in why(structure(capture="N"), structure())


def test_parts_that_come_and_go_are_told() -> None:
    both = {"0": "PART0", "1": "PART1"}
    assert "PART1 became a part" in why(structure(), structure(parts=both))
    assert "PART1 was detached" in why(structure(parts=both), structure())
