"""Capture instances: when they begin, which of two is read, what becomes of those that go. On the stand-in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.connectors import registry
from tailrace.connectors.change_tables import connector, ranges, reader
from tailrace.errors import OffsetError
from tests.behaviour.stepping import Stepped, stepping
from tests.conformance.sqlserver import ENABLE, SqlServerSource

DISABLE = (
    "EXEC sys.sp_cdc_disable_table @source_schema = 'dbo', @source_name = 'orders', @capture_instance = 'dbo_orders'"
)
CLEANED = (
    "DECLARE @low binary(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table "
    "@capture_instance = '{}', @low_water_mark = @low"
)


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


@pytest.fixture
def late(source: SqlServerSource) -> Iterator[None]:
    """Capture instances have their start from the scan that meets them, and none before; scans come when tests ask."""
    capture = source.server.capture
    source.run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
    capture.starts_late = True
    yield
    capture.starts_late = False


def rows(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["after"] for event in events]


def orders(**given: str) -> dict[str, str]:
    return {"table__include__list": r"dbo\.orders", **given}


@pytest.mark.usefixtures("late")
def test_a_pipeline_that_starts_before_its_table_s_capture_has_begun_reads_every_change(
    source: SqlServerSource,
) -> None:
    """cdc.change_tables: "NULL = the low endpoint has not been established"."""
    source.run("CREATE TABLE new (id int PRIMARY KEY)", ENABLE.format("new"), "INSERT INTO new VALUES (1)")
    stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.new"})
    settle, stream._source.settle = stream._source.settle, lambda: None  # type: ignore[method-assign]
    found = [row["id"] for _ in range(3) for row in rows(stream.step()[0])]
    source.run("INSERT INTO new VALUES (2)")
    stream._source.settle = settle  # type: ignore[method-assign]
    found += [row["id"] for _ in range(3) for row in rows(stream.step()[0])]
    assert sorted(set(found)) == [1, 2], "what was committed before the snapshot may come once more"
    stream.close()


@pytest.mark.usefixtures("late")
def test_a_table_that_is_captured_while_a_pipeline_runs_begins_without_a_gap(source: SqlServerSource) -> None:
    source.run("CREATE TABLE later (id int PRIMARY KEY)")
    with stepping("sqlserver", source, table__include__list=r"dbo\.(orders|later)") as stream:
        source.run(ENABLE.format("later"))
        settle, stream._source.settle = stream._source.settle, lambda: None  # type: ignore[method-assign]
        assert stream.step()[0] == []
        stream._source.settle = settle  # type: ignore[method-assign]
        source.run("INSERT INTO later VALUES (1)")
        assert [row["id"] for row in rows(stream.step()[0])] == [1]


@pytest.mark.usefixtures("late")
def test_a_second_instance_is_read_from_its_start_on_and_not_before(source: SqlServerSource) -> None:
    with stepping("sqlserver", source, **orders()) as stream:
        source.run("ALTER TABLE orders ADD extra int", f"{ENABLE.format('orders')}, @capture_instance = 'second'")
        settle, stream._source.settle = stream._source.settle, lambda: None  # type: ignore[method-assign]
        source.run("INSERT INTO orders VALUES (1, 1, N'a', 11)")
        assert stream.step()[0] == []
        stream._source.settle = settle  # type: ignore[method-assign]
        found = rows(stream.step()[0])
        source.run("INSERT INTO orders VALUES (2, 2, N'b', 22)")
        found += rows(stream.step()[0])
        assert [(row["id"], row.get("extra")) for row in found] == [(1, 11), (2, 22)]


@pytest.mark.usefixtures("late")
def test_capture_that_is_enabled_again_and_has_not_begun_is_a_gap(source: SqlServerSource) -> None:
    with stepping("sqlserver", source, **orders()) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert len(stream.step()[0]) == 1
        source.run(DISABLE, "INSERT INTO orders VALUES (2, 1, N'a')", ENABLE.format("orders"))
        stream._source.settle = lambda: None  # type: ignore[method-assign]
        with pytest.raises(Exception, match="capture was disabled and enabled again"):
            stream.step()


@pytest.mark.usefixtures("late")
def test_check_tells_that_a_capture_instance_has_not_begun(source: SqlServerSource) -> None:
    source.run("CREATE TABLE new (id int PRIMARY KEY)", ENABLE.format("new"))
    package = registry.named("sqlserver").load()
    given = {**source.properties("p"), "topic.prefix": "t", "table.include.list": r"dbo\.new"}
    (found,) = [each for each in package.admin(package.resolve(given)).checks() if "has not begun" in each.what]
    assert found.ok is None
    assert "sp_cdc_start_job" in (found.remedy or "")


@pytest.mark.parametrize("cleaned", ["dbo_orders", "second"])
def test_cleaning_one_of_two_instances_changes_nothing(source: SqlServerSource, cleaned: str) -> None:
    """Clean-up raises the start of an instance, which so becomes the later one of the two."""
    with stepping("sqlserver", source, **orders(include__schema__changes="true")) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')", "ALTER TABLE orders ADD extra int")
        source.run(f"{ENABLE.format('orders')}, @capture_instance = 'second'")
        source.run("INSERT INTO orders VALUES (2, 2, N'b', 22)")
        assert [row.get("extra", "-") for row in rows(stream.step()[0])] == ["-", 22]
        source.settle()
        source.run(CLEANED.format(cleaned))
        for number in (3, 4):
            source.run(f"INSERT INTO orders VALUES ({number}, 1, N'c', {number * 11})")
            events, structures = stream.step()
            assert [(row["id"], row["extra"]) for row in rows(events)] == [(number, number * 11)]
            assert structures == []


def test_clean_up_of_the_old_instance_ahead_of_the_position_is_a_gap(source: SqlServerSource) -> None:
    with stepping("sqlserver", source, **orders()) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert len(stream.step()[0]) == 1
        source.run("INSERT INTO orders VALUES (2, 1, N'a')", "INSERT INTO orders VALUES (3, 1, N'a')")
        source.run("ALTER TABLE orders ADD extra int", f"{ENABLE.format('orders')}, @capture_instance = 'second'")
        source.run("INSERT INTO orders VALUES (4, 2, N'b', 22)")
        source.settle()
        source.run(CLEANED.format("dbo_orders"))
        with pytest.raises(Exception, match="clean-up has removed changes that were not read"):
            stream.step()


def test_a_wide_table_stops_no_pipeline_of_its_database(source: SqlServerSource) -> None:
    columns = ", ".join(f"c{number} nvarchar(4000)" for number in range(500))
    source.run(f"CREATE TABLE wide (id int PRIMARY KEY, {columns}, d decimal(38, 10))", ENABLE.format("wide"))
    with stepping("sqlserver", source, **orders()) as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')")
        assert len(stream.step()[0]) == 1
    package = registry.named("sqlserver").load()
    checks = package.admin(package.resolve({**source.properties("p"), "topic.prefix": "t"})).checks()
    assert [each.what for each in checks if each.ok is False] == []


@pytest.mark.parametrize(("when", "again"), [("counted", False), ("described", False), ("read", False), ("read", True)])
def test_an_instance_that_is_dropped_while_it_is_read_stops_nothing(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str, again: bool
) -> None:
    """Another instance may have its name by then."""
    source.create("items")

    dropping_done: list[bool] = []

    def dropping(known: Any) -> Any:
        def dropped(*arguments: Any, **named: Any) -> Any:
            if (
                source.run("SELECT 1 FROM cdc.change_tables WHERE capture_instance = 'dbo_orders'")
                and not dropping_done
            ):
                source.run(DISABLE, *([ENABLE.format("orders")] if again else []))
                dropping_done.append(True)
            return known(*arguments, **named)

        return dropped

    with stepping("sqlserver", source, table__include__list=r"dbo\.(orders|items)") as stream:
        source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO items VALUES (1, 1, N'a')")
        stream.step()
        source.run("INSERT INTO orders VALUES (2, 1, N'a')", "INSERT INTO items VALUES (2, 1, N'a')")
        place = {"counted": (ranges, "_of_piece"), "described": (reader, "_change_table")}
        owner, name = place.get(when, (reader.RangeReader, "_blocks"))
        monkeypatch.setattr(owner, name, dropping(getattr(owner, name)))
        with caplog.at_level(logging.ERROR):
            assert [row["id"] for row in rows(stream.step()[0])] == [2]
        assert "dbo_orders of" in caplog.text
        assert "was dropped before its changes from LSN" in caplog.text
        monkeypatch.undo()
        if again:
            with pytest.raises(OffsetError, match="capture was disabled and enabled again"):
                stream.step()
            return
        source.run("INSERT INTO items VALUES (3, 1, N'a')")
        events, structures = stream.step()
        assert [row["id"] for row in rows(events)] == [3]
        assert [each["tableChanges"][0]["type"] for each in structures] == ["DROP"]


def test_new_instances_leave_out_what_was_kept_out_of_the_old_one(
    source: SqlServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns of the old one and those that the table got since; with its role, its index and its filegroup."""
    monkeypatch.setattr(connector, "_LOOKS_S", 0.0)
    source.run("CREATE TABLE people (id int PRIMARY KEY, name varchar(20), ssn varchar(20))")
    enable = ENABLE.format("people").replace("NULL", "N'readers'")
    source.run(f"{enable}, @captured_column_list = N'id, name'")
    captured = "SELECT column_name FROM cdc.captured_columns WHERE object_id = OBJECT_ID('cdc.{}_CT')"
    given = {"table__include__list": r"dbo\.people", "capture__instance__auto": "true"}
    with stepping("sqlserver", source, **given) as stream:
        source.run("ALTER TABLE people ADD city varchar(20) NOT NULL DEFAULT 'x', [post code] int")
        for _ in range(2):
            source.run("INSERT INTO people SELECT COUNT(*) + 1, 'Ann', '987-65-4321', 'Ulm', 89073 FROM people")
            events = stream.step()[0]
        assert [event["after"] for event in events] == [{"id": 2, "name": "Ann", "city": "Ulm", "post code": 89073}]
        found = {row[0] for row in source.run(captured.format("dbo_people_tailrace1"))}
        assert found == {"id", "name", "city", "post code"}
        role = "SELECT role_name FROM cdc.change_tables WHERE capture_instance = 'dbo_people_tailrace1'"
        assert source.run(role) == [("readers",)]
        source.run("ALTER TABLE people ALTER COLUMN ssn varchar(40)")
        source.run("INSERT INTO people VALUES (9, 'Bo', 's', 'Bonn', 1)")
        stream.step()
        assert "987-65-4321" not in str(stream.records)
        assert len(source.run("SELECT 1 FROM cdc.change_tables WHERE capture_instance LIKE 'dbo_people%'")) == 2
