"""A database that another node answers for, that is restored, or that is another one of its name. On the stand-in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tailrace.errors import OffsetError
from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import SqlServerSource

FAST = {"retriable__restart__connector__wait__ms": "50", "table__include__list": r"dbo\.orders"}


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


def again(source: SqlServerSource, stream: Stepped) -> Stepped:
    """Another process that continues the pipeline."""
    stream.close()
    other = Stepped("sqlserver", source, dict(stream.config.given))
    other.offset = json.loads(json.dumps(stream.offset))
    return other


def ids(events: list[dict[str, Any]]) -> list[int]:
    return [event["after"]["id"] for event in events]


def reconnected(source: SqlServerSource) -> None:
    """Let the test's own connection be a new one, as all were cut."""
    del source._writers.connection


@pytest.mark.parametrize("is_running", [True, False])
def test_a_pipeline_goes_on_at_another_node(source: SqlServerSource, is_running: bool) -> None:
    """The nodes of a group have names of their own, and made their copies of the database at different times."""
    before = source.server.name
    with stepping("sqlserver", source, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert ids(stream.step()[0]) == [1]
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        try:
            source.server.fail_over("NODE2", source.name)
            reconnected(source)
            other = stream if is_running else again(source, stream)
            assert ids(other.step()[0]) == [2]
            source.run("INSERT INTO orders VALUES (3, 1, N'a')")
            assert ids(other.step()[0]) == [3]
            other.close()
        finally:
            source.server.become(source.server.platform, before)


@pytest.mark.parametrize("later", [0, *(pytest.param(many, marks=pytest.mark.long) for many in (1, 2, 3))])
@pytest.mark.parametrize("is_running", [True, False])
def test_a_restore_to_an_older_point_is_an_error(source: SqlServerSource, is_running: bool, later: int) -> None:
    """Whether the restored log ends before what was read, at the same LSN, or behind it."""
    with stepping("sqlserver", source, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert ids(stream.step()[0]) == [1]
        source.server.back_up(source.name)
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        assert ids(stream.step()[0]) == [2]
        source.server.restore(source.name)
        reconnected(source)
        for number in range(later):
            source.run(f"INSERT INTO orders VALUES ({10 + number}, 1, N'a')")
        other = stream if is_running else again(source, stream)
        with pytest.raises(OffsetError, match="restored") as caught:
            other.step()
        assert "when_needed" in (caught.value.remedy or "")


def test_a_restore_to_a_point_that_was_not_read_yet_changes_nothing(source: SqlServerSource) -> None:
    with stepping("sqlserver", source, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert ids(stream.step()[0]) == [1]
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        source.settle()
        source.server.back_up(source.name)
        source.run("INSERT INTO orders VALUES (3, 1, N'a')")
        source.server.restore(source.name)
        reconnected(source)
        source.run("INSERT INTO orders VALUES (4, 1, N'a')")
        assert ids(stream.step()[0]) == [2, 4]


def test_another_database_of_the_name_is_an_error(source: SqlServerSource) -> None:
    with stepping("sqlserver", source, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert ids(stream.step()[0]) == [1]
        source.close()
        other = SqlServerSource(source.server, source.name)
        try:
            other.create("orders")
            for number in range(5):
                other.run(f"INSERT INTO orders VALUES ({number}, 1, N'a')")
            other.settle()
            with pytest.raises(OffsetError, match=r"another one of this name|was disabled and enabled again"):
                again(other, stream).step()
        finally:
            source.run = other.run  # type: ignore[method-assign]
            other.close()


@pytest.mark.long
def test_a_readable_replica_that_lags_is_waited_for(source: SqlServerSource) -> None:
    """The primary replica has told of more than the secondary one has got by now."""
    with stepping("sqlserver", source, **FAST) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert ids(stream.step()[0]) == [1]
        source.server.back_up(source.name)
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        assert ids(stream.step()[0]) == [2]
        here = stream.offset["position"]
        source.server.restore(source.name)
        reconnected(source)
        source.run(f"ALTER DATABASE [{source.name}] SET READ_ONLY")
        other = again(source, stream)
        for _ in range(2):
            assert other.step()[0] == []
            assert other.offset["position"] == here
        other.close()
