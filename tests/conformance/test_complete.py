"""Up to which time everything is read, by the server's clock: true under writers, and newer in a quiet database."""

from __future__ import annotations

import time

from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.subject import KEY, Source, Subject
from tests.conformance.traffic import inserting

PATIENCE_S = 200
# So often the time has to advance under the writers, and so many rows they insert at least.
ADVANCES, ROWS = 4, 25


def until(stream: Stepped) -> int | None:
    """The time in microseconds that is true of the offset which was read last."""
    found: int | None = (stream.capture.latest() or {}).get("complete_us")
    return found


def test_what_was_committed_before_the_time_is_read_and_a_quiet_database_gets_newer(
    subject: Subject, source: Source
) -> None:
    source.create("clocked")
    seen, last, advances = set[int](), 0, 0
    deadline = time.monotonic() + PATIENCE_S

    def step() -> int | None:
        events, _ = stream.step()
        seen.update(
            row[KEY]
            for event in events
            if "clocked" in (event["source"].get("table"), event["source"].get("collection"))
            if (row := source.image(event["after"])) is not None
        )
        return until(stream)

    with stepping(subject.connector, source, snapshot__mode="no_data") as stream:
        with inserting(source, "clocked") as returned:
            while advances < ADVANCES or len(returned) < ROWS:
                assert time.monotonic() < deadline, "the time does not advance under writers"
                found = step()
                if found is None:
                    continue
                assert found <= time.time() * 1e6
                assert found >= last, "the time went back"
                advances += found > last
                last = found
                before = {key for key, at in returned.copy().items() if at * 1e6 < found}
                assert before <= seen, f"{sorted(before - seen)} were committed before {found}"
        quiet = time.time() * 1e6
        while (step() or 0) <= quiet:
            assert time.monotonic() < deadline, "a quiet database does not get newer"
            source.rest()
        assert returned.keys() <= seen
