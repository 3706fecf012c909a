"""A snapshot that is given up stays visible until its rows are requested again, and is then read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.behaviour.capture import Capture, capturing
from tests.behaviour.signalling import GIVEN, ROWS, SIGNALS, drained, execute, keyed, send
from tests.conftest import Database

ALL = [("r", n) for n in range(1, 11)]
KINDS = pytest.mark.parametrize("kind", ["incremental", "blocking"])


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A role that may read the signals and `other`, but not `t`."""
    name = f"reader_{uuid4().hex[:8]}"
    database.server.create_role(name, "secret")
    database.execute(SIGNALS, *ROWS, "CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (77)")
    database.execute(f"GRANT SELECT, INSERT ON signals, other TO {name}", "CREATE PUBLICATION p FOR ALL TABLES")
    yield name
    database.execute(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


@pytest.fixture
def capture(database: Database, role: str) -> Iterator[Capture]:
    own = {"database__user": role, "database__password": "secret"}
    with capturing(
        database, **GIVEN, **own, publication__name="p", publication__autocreate__mode="disabled"
    ) as capture:
        capture.step()
        yield capture


def incomplete(capture: Capture) -> dict[str, str]:
    """The incomplete tables of the offset, each with the reason."""
    return {table["table"]: table["why"] for table in capture.offset["snapshots"].get("incomplete", [])}


def type_of_snapshot(kind: str) -> str:
    return f', "type": "{kind}"'


def restarted(capture: Capture) -> Capture:
    properties = {name: value for name, value in capture.config.given.items() if name != "topic.prefix"}
    capture.close()
    second = Capture(capture.database, properties)
    second.offset = json.loads(json.dumps(capture.offset))
    return second


@KINDS
def test_a_table_that_may_not_be_read_is_incomplete_until_it_is_read(capture: Capture, role: str, kind: str) -> None:
    database = capture.database
    execute(database, "s1", type_of_snapshot(kind))
    execute(database, "s2", type_of_snapshot(kind), table="public.other")
    assert keyed(drained(capture)) == [("r", 77)]
    why = incomplete(capture)["public.t"]
    assert "permission denied for table t" in why
    assert f'GRANT SELECT ON "public"."t" TO "{role}"' in why
    assert "signal s1" in why
    second = restarted(capture)
    database.execute("DELETE FROM other")
    assert keyed(drained(second)) == [("d", 77)]
    assert list(incomplete(second)) == ["public.t"]
    database.execute(f"GRANT SELECT ON t TO {role}")
    execute(database, "s3", type_of_snapshot(kind))
    assert keyed(drained(second)) == ALL
    assert incomplete(second) == {}
    assert "incomplete" not in second.offset["snapshots"]
    second.close()


@KINDS
def test_a_table_that_is_not_there_is_incomplete_until_somebody_stops_its_snapshot(capture: Capture, kind: str) -> None:
    execute(capture.database, "s1", type_of_snapshot(kind), table="public.absent")
    assert drained(capture) == []
    assert "there is no such table" in incomplete(capture)["public.absent"]
    send(capture.database, "x", "stop-snapshot", '{"data-collections": ["public.absent"]}')
    drained(capture)
    assert incomplete(capture) == {}


def test_keys_that_cannot_be_read_do_not_hide_that_the_table_is_incomplete(capture: Capture, role: str) -> None:
    database = capture.database
    execute(database, "s1")
    drained(capture)
    database.execute(f"GRANT SELECT ON t TO {role}")
    execute(database, "s2", ', "keys": [["3"]]')
    assert keyed(drained(capture)) == [("r", 3)]
    assert "public.t" in incomplete(capture), "a single row does not make it complete"
    execute(database, "s3", ', "keys": [["no number"]]')
    assert drained(capture) == []
    assert "public.t" in incomplete(capture)
    execute(database, "s4")
    assert keyed(drained(capture)) == ALL
    execute(database, "s5", ', "keys": [["no number"]]')
    drained(capture)
    assert "invalid input syntax" in incomplete(capture)["public.t"]
    execute(database, "s6", ', "keys": [["4"]]')
    drained(capture)
    assert incomplete(capture) == {}


@KINDS
def test_a_crash_after_a_snapshot_was_given_up_changes_nothing(capture: Capture, role: str, kind: str) -> None:
    """The batch that gave it up was planned and not committed."""
    database = capture.database
    execute(database, "s1", type_of_snapshot(kind))
    while not incomplete(capture):
        capture.plan()
    second = restarted(capture)
    drained(second)
    assert list(incomplete(second)) == ["public.t"]
    second.close()
