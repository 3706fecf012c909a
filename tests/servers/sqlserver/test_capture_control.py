"""Change data capture: its procedures and functions, rights, jobs and clean-up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .conftest import Captured, Client

INSERT, BEFORE, AFTER = 2, 3, 4


def test_disabling(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1)")
    assert captured.error("TRUNCATE TABLE t") == 4711
    captured.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'dbo_t'")
    assert captured.error("SELECT * FROM cdc.dbo_t_CT") == 208
    assert captured.run("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'") == [(False,)]
    captured.run("TRUNCATE TABLE t; EXEC sys.sp_cdc_disable_db")
    assert captured.error("SELECT * FROM cdc.change_tables") == 208
    assert captured.run("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") == [(False,)]


def test_dropping_a_captured_table(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1); DROP TABLE t")
    assert captured.run("SELECT * FROM cdc.change_tables") == []
    captured.run("CREATE TABLE t (id INT PRIMARY KEY)")
    captured.enable()


def test_refusals(captured: Captured, client: Client) -> None:
    enable = "EXEC sys.sp_cdc_enable_table 'dbo', "
    assert captured.error(f"{enable} 'nothing', @role_name = NULL") == 22931
    assert captured.error(f"{enable} 't'") == 201
    captured.enable()
    assert captured.error(f"{enable} 't', @role_name = NULL") == 22926
    captured.run("CREATE TABLE heap (a INT)")
    assert captured.error(f"{enable} 'heap', @role_name = NULL, @supports_net_changes = 1") == 22939
    assert captured.error("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'nothing'") == 22960
    client.run("USE master")
    assert captured.error(f"{enable} 't', @role_name = NULL") == 22901


def test_functions(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1); UPDATE t SET a = 'y'")
    captured.changes()
    (low, high, before, after) = captured.run(
        "SELECT sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(),"
        " sys.fn_cdc_decrement_lsn(sys.fn_cdc_get_min_lsn('dbo_t')),"
        " [test_db].sys.fn_cdc_increment_lsn(0x000000250000FFFFFFFF)"
    )[0]
    assert before < low < high
    assert after == bytes.fromhex("00000025000100000000")
    call = "SELECT __$operation, a FROM cdc.fn_cdc_get_all_changes_dbo_t({}, sys.fn_cdc_get_max_lsn(), N'{}')"
    lowest = "sys.fn_cdc_get_min_lsn('dbo_t')"
    assert captured.run(call.format(lowest, "all")) == [(INSERT, "x"), (AFTER, "y")]
    assert captured.run(call.format(lowest, "all update old")) == [(INSERT, "x"), (BEFORE, "x"), (AFTER, "y")]
    assert captured.error(call.format("sys.fn_cdc_decrement_lsn(" + lowest + ")", "all")) == 313
    assert captured.run("SELECT sys.fn_cdc_get_min_lsn('nothing')") == [(bytes(10),)]
    times = "SELECT tran_end_time, sys.fn_cdc_map_lsn_to_time(start_lsn) FROM cdc.lsn_time_mapping"
    assert all(first == second for first, second in captured.run(times))
    mapped = "SELECT sys.fn_cdc_map_time_to_lsn('largest less than or equal', GETDATE()), sys.fn_cdc_get_max_lsn()"
    assert len(set(captured.run(mapped)[0])) == 1


def test_net_changes_are_not_supported(captured: Captured) -> None:
    captured.enable(supports_net_changes="1")
    range_ = "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn()"
    query = f"SELECT * FROM cdc.fn_cdc_get_net_changes_dbo_t({range_}, 'all')"
    assert captured.error(query) == 208


def test_help(captured: Captured) -> None:
    captured.enable(supports_net_changes="1")
    (row,) = captured.run("EXEC [test_db].sys.sp_cdc_help_change_data_capture")
    assert (row[:3], row[7], row[10:12], row[13:]) == (
        ("dbo", "t", "dbo_t"),
        True,
        (row[10], None),
        ("[id]", "[id], [a], [n]"),
    )
    jobs = {job[1]: job for job in captured.run("EXEC sys.sp_cdc_help_jobs")}
    assert jobs["capture"][2:7] == ("cdc.test_db_capture", 500, 10, True, 5)
    assert jobs["cleanup"][7:] == (4320, 5000)
    captured.run("EXEC sys.sp_cdc_change_job @job_type = 'capture', @pollinginterval = 1")
    assert {job[1]: job[6] for job in captured.run("EXEC sys.sp_cdc_help_jobs")} == {"capture": 1, "cleanup": 0}


def test_gating_role(captured: Captured, connect: Callable[..., Client]) -> None:
    captured.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = 'readers'")
    captured.run("INSERT t VALUES (1, 'x', 1)")
    captured.changes()
    captured.run(
        "CREATE LOGIN some_reader WITH PASSWORD = 'Reader-Password-1'; CREATE USER some_reader FOR LOGIN some_reader"
    )
    try:
        reader = connect(user="some_reader", password="Reader-Password-1")
        help_ = "EXEC sys.sp_cdc_help_change_data_capture"
        range_ = "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn()"
        query = f"SELECT a FROM cdc.fn_cdc_get_all_changes_dbo_t({range_}, 'all')"
        assert (
            reader.error("SELECT * FROM t")
            == reader.error("SELECT * FROM cdc.change_tables")
            == reader.error(query)
            == 229
        )
        assert reader.error("SELECT * FROM sys.dm_server_services") == 300
        assert reader.run(help_) == []
        assert reader.error("EXEC sys.sp_cdc_enable_db") == 22902
        captured.run("GRANT SELECT ON SCHEMA::dbo TO some_reader; ALTER ROLE readers ADD MEMBER some_reader")
        captured.run("USE master; GRANT VIEW SERVER STATE TO some_reader; USE test_db")
        assert reader.run(query) == [("x",)]
        assert len(reader.run(help_)) == 1
        assert len(reader.run("SELECT * FROM sys.dm_server_services")) == 2
        assert reader.run(
            "SELECT IS_MEMBER('readers'), IS_SRVROLEMEMBER('sysadmin'), HAS_PERMS_BY_NAME('t', 'OBJECT', 'SELECT')"
        ) == [(1, 0, 1)]
    finally:
        captured.run("DROP LOGIN some_reader")


def until(captured: Captured, query: str, expected: Any) -> None:
    """Wait for the capture job to do its work."""
    deadline = time.monotonic() + 60
    while captured.run(query) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert captured.run(query) == expected


def test_the_job_captures_by_itself(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1)")
    until(captured, "SELECT id FROM cdc.dbo_t_CT", [(1,)])
    idle = "SELECT TOP 1 start_lsn FROM sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC"
    until(captured, idle, [("00000000:00000000:0000\0",)])


def test_a_stopped_job_captures_later(captured: Captured) -> None:
    captured.run("EXEC sys.sp_cdc_add_job 'capture'; EXEC sys.sp_cdc_stop_job 'capture'")
    captured.enable()
    assert captured.run("SELECT sys.fn_cdc_get_max_lsn()") == [(None,)]
    captured.run("INSERT t VALUES (1, 'x', 1)")
    time.sleep(0.2)
    assert captured.run("SELECT * FROM cdc.dbo_t_CT") == []
    assert captured.run("SELECT log_reuse_wait_desc FROM sys.databases WHERE name = DB_NAME()") == [("REPLICATION",)]
    captured.run("EXEC sys.sp_cdc_start_job 'capture'")
    until(captured, "SELECT id FROM cdc.dbo_t_CT", [(1,)])


def test_a_stopped_agent(captured: Captured) -> None:
    running = "SELECT status FROM test_db.sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
    captured.enable()
    assert captured.run(running) == [(4,)]
    captured.run("EXEC xp_servicecontrol 'STOP', 'SQLServerAGENT'")
    try:
        assert captured.run(running) == [(1,)]
        captured.run("INSERT t VALUES (1, 'x', 1)")
        time.sleep(0.2)
        assert captured.run("SELECT * FROM cdc.dbo_t_CT") == []
        assert captured.error("EXEC sys.sp_cdc_start_job 'capture'") == 22022
    finally:
        captured.run("EXEC xp_servicecontrol 'START', 'SQLServerAGENT'")
    until(captured, "SELECT id FROM cdc.dbo_t_CT", [(1,)])


def test_clean_up(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1)")
    captured.run("INSERT t VALUES (2, 'y', 1)")
    captured.changes()
    captured.run(
        "DECLARE @mark BINARY(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', @mark, 5000"
    )
    assert [row[1] for row in captured.changes()] == [2]
    assert captured.run("SELECT COUNT(*) FROM cdc.lsn_time_mapping") == [(1,)]
    assert captured.run("SELECT start_lsn FROM cdc.change_tables") == captured.run("SELECT sys.fn_cdc_get_max_lsn()")
    captured.server.capture.clean_up(captured.number, minutes=0)
    assert captured.run("SELECT COUNT(*) FROM cdc.dbo_t_CT") == [(1,)]


def test_idle_databases_get_rows_without_a_transaction(captured: Captured) -> None:
    captured.enable()
    captured.changes()
    before = captured.run("SELECT sys.fn_cdc_get_max_lsn()")[0][0]
    captured.server.capture.write_idle_row(captured.number)
    (row,) = captured.run(
        f"SELECT tran_id, tran_begin_lsn FROM cdc.lsn_time_mapping WHERE start_lsn > 0x{before.hex()}"
    )
    assert row == (b"\0", None)
