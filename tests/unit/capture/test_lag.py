"""How far a position is behind the end of the log, by looks at that end."""

from tailrace.capture.lag import Lag


def test_a_position_is_as_old_as_the_last_poll_that_saw_the_log_end_there() -> None:
    lag = Lag()
    assert lag.seconds(0.0, 5) == 0.0
    for now, end in ((10.0, 100), (20.0, 200), (30.0, 200), (40.0, 300)):
        lag.look(now, end)
    assert lag.seconds(50.0, 300) == lag.seconds(50.0, 400) == 0.0

    lag = Lag()
    for now, end in ((10.0, 100), (20.0, 200), (30.0, 200), (40.0, 300)):
        lag.look(now, end)
    assert lag.seconds(50.0, 50) == 40.0  # as far back as is known
    assert lag.seconds(50.0, 100) == 40.0
    assert lag.seconds(50.0, 150) == 40.0
    assert lag.seconds(50.0, 250) == 30.0
    assert lag.seconds(50.0, 300) == 0.0


def test_a_long_backlog_takes_little_memory_and_stays_exact_enough() -> None:
    lag = Lag()
    for number in range(100_000):
        lag.look(float(number), number)
    assert len(lag._looks.kept) <= 1024
    found = lag.seconds(100_000.0, 50_000)
    assert 50_000 <= found <= 50_000 + 1_000
