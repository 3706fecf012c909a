"""The states of a replica's tables: every event in every state, and what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.sinks.replica.states import (
    ASIDE,
    COMPLETE,
    GONE,
    INCOMPLETE,
    READING,
    TRANSITIONS,
    SeenVersion,
    TableEvent,
    TableState,
    first,
    from_text,
    to_text,
)

STATES = (COMPLETE, READING, INCOMPLETE, ASIDE, GONE)


def test_each_event_has_a_next_state_for_each_state_and_for_an_unknown_table() -> None:
    assert {*TRANSITIONS} == {*TableEvent}
    assert all(len(states) == len(STATES) + 1 and {*states} <= {*STATES} for states in TRANSITIONS.values())


@pytest.mark.parametrize(("event", "state"), [*product(TableEvent, STATES)])
def test_an_event_leads_to_the_state_of_the_table(event: TableEvent, state: str) -> None:
    why = ("a reason",) if state in (INCOMPLETE, ASIDE) else ()
    after = TableState(state, 1.0, why, request="r").after(event, 2.0, why="something", request="r")
    assert after.state == TRANSITIONS[event][STATES.index(state)]
    assert after.since == (1.0 if after.state == state else 2.0)
    assert (after.why == ()) == (after.state in (COMPLETE, GONE))


def test_what_happens_while_a_table_is_read_makes_it_incomplete_once_it_is_read() -> None:
    state = TableState(COMPLETE, 1.0).after(TableEvent.LACKING, 2.0, why="first")
    state = state.after(TableEvent.ASKED, 3.0, request="r1").after(TableEvent.BEGUN, 4.0, request="r1")
    assert (state.state, state.request, state.is_lacking) == (READING, "r1", True)
    state = state.after(TableEvent.LACKING, 5.0, why="second").after(TableEvent.ENDED, 6.0)
    assert (state.state, state.why, state.again, state.request) == (INCOMPLETE, ("second",), (), None)
    state = state.after(TableEvent.BEGUN, 7.0, request="r2").after(TableEvent.ENDED, 8.0)
    assert (state.state, state.why, state.tries, state.is_lacking) == (COMPLETE, (), 0, False)


def test_a_first_reading_is_no_lack_and_a_table_that_is_set_aside_stays_so_until_it_is_read() -> None:
    assert not first(TableEvent.BEGUN, 1.0, request="s").is_lacking
    aside = (
        first(TableEvent.SET_ASIDE, 1.0, why="a date")
        .after(TableEvent.WRITTEN, 2.0)
        .after(TableEvent.LACKING, 3.0, why="more")
    )
    assert (aside.state, aside.why) == (ASIDE, ("a date", "more"))
    assert aside.after(TableEvent.BEGUN, 4.0, request="s").after(TableEvent.ENDED, 5.0).state == COMPLETE


def test_reasons_are_bounded_and_each_comes_once() -> None:
    state = first(TableEvent.LACKING, 1.0, why="x" * 1000)
    for number in [*range(10), 9]:
        state = state.after(TableEvent.LACKING, 2.0, why=f"reason {number}")
    assert state.why == tuple(f"reason {number}" for number in range(5, 10))
    assert len(first(TableEvent.LACKING, 1.0, why="x" * 1000).why[0]) == 300


def states() -> Iterator[st.SearchStrategy[TableState]]:
    texts = st.text(max_size=20)
    yield st.builds(
        TableState,
        st.sampled_from(STATES),
        st.floats(0, 1e10),
        st.lists(texts, max_size=3).map(tuple),
        st.none() | texts,
        asked=st.none() | st.floats(0, 1e10),
        tries=st.integers(0, 9),
        again=st.lists(texts, max_size=3).map(tuple),
        seen=st.none() | st.builds(SeenVersion, st.integers(0), texts),
        is_cured=st.booleans(),
    )


@given(st.dictionaries(st.text(), next(states())))
def test_states_are_read_as_they_were_stored(tables: dict[str, TableState]) -> None:
    assert from_text(to_text(tables)) == tables


def test_a_table_that_is_gone_remembers_what_its_rows_lacked_until_another_one_has_its_name() -> None:
    incomplete = TableState(COMPLETE, 1.0).after(TableEvent.LACKING, 2.0, why="lost")
    gone = incomplete.after(TableEvent.DROPPED, 3.0)
    assert (gone.why, gone.left_behind, gone.is_lacking) == ((), ("lost",), False)
    assert gone.after(TableEvent.DROPPED, 4.0).left_behind == ("lost",)
    assert gone.after(TableEvent.WRITTEN, 4.0).left_behind == ()
    assert gone.after(TableEvent.LACKING, 4.0, why="new").left_behind == ("new",)
    assert first(TableEvent.BEGUN, 1.0, request="s").left_behind == ("it was being read",)
    assert TableState(COMPLETE, 1.0).after(TableEvent.DROPPED, 2.0).left_behind == ()


def test_a_reading_that_began_before_what_is_the_matter_ends_nothing() -> None:
    state = (
        TableState(COMPLETE, 1.0)
        .after(TableEvent.BEGUN, 2.0, request="by hand")
        .after(TableEvent.LACKING, 3.0, why="lost")
    )
    assert (state.state, state.request) == (INCOMPLETE, None)
    assert state.after(TableEvent.ENDED, 4.0, request="by hand") == state
    state = state.after(TableEvent.ASKED, 4.0, request="again").after(TableEvent.BEGUN, 5.0, request="again")
    assert state.after(TableEvent.ENDED, 6.0, request="by hand") == state
    assert state.after(TableEvent.ENDED, 6.0, request="again").state == COMPLETE
