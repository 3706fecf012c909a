"""Up to which time everything that was committed lies before a position, by what servers said of their logs."""

from tailrace.capture.complete import CompleteUntil
from tailrace.connectors.log_ports import Committed


def seen(*looks: tuple[int, int]) -> CompleteUntil:
    found = CompleteUntil()
    for time, position in looks:
        found.look(Committed(time, position))
    return found


def test_a_clock_is_true_from_the_end_on_that_was_asked_for_after_it() -> None:
    looks = (10, 100), (20, 200), (30, 300)
    assert seen(*looks).at(99) is None, "a batch that ends before the log did says nothing"
    assert seen(*looks).at(100) == 10
    assert seen(*looks).at(299) == 20
    assert seen(*looks).at(300) == seen(*looks).at(900) == 30


def test_a_quiet_log_gets_newer_although_it_ends_where_it_did() -> None:
    assert seen((10, 100), (20, 100), (30, 100)).at(100) == 30
    assert seen((10, 100), (20, 100), (30, 101)).at(100) == 20


def test_a_server_that_does_not_tell_says_nothing() -> None:
    found = seen((10, 100))
    found.look(None)
    assert found.at(500) == 10
    assert CompleteUntil().at(500) is None


def test_neither_a_clock_that_is_set_back_nor_an_end_before_the_last_one_moves_it_back() -> None:
    found = seen((100, 10))
    assert found.at(10) == 100
    found.look(Committed(50, 20))
    assert found.at(20) == 100
    found.look(Committed(120, 5))
    assert found.at(20) == 100, "a standby that has less of the log than before says nothing about more of it"
    found.look(Committed(130, 20))
    assert found.at(20) == 130


def test_a_long_backlog_takes_little_memory_and_never_says_more_than_was_seen() -> None:
    found = CompleteUntil()
    for number in range(50_000):
        found.look(Committed(number, number))
    assert len(found._looks.kept) <= 1024
    for here in (10_000, 25_000, 49_000):
        until = found.at(here)
        assert until is not None
        assert here - 100 <= until <= here
