"""Change data capture: what the change tables hold after changes of every kind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Client
from .server import SqlServer

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4


class Captured:
    """A client of a database with change data capture."""

    def __init__(self, server: SqlServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.run = client.run
        self.error = client.error
        self.number = int(client.value("SELECT DB_ID()"))
        client.run("EXEC sys.sp_cdc_enable_db")

    def enable(self, table: str = "t", **options: str) -> None:
        """Create a capture instance of a table."""
        settings = "".join(f", @{name} = {value}" for name, value in options.items())
        named = f"@source_schema = 'dbo', @source_name = '{table}', @role_name = NULL"
        self.run(f"EXEC sys.sp_cdc_enable_table {named}{settings}")

    def changes(self, instance: str = "dbo_t", columns: str = "*") -> list[tuple[Any, ...]]:
        """The rows of a change table after a scan: operation, then the columns."""
        self.server.capture.scan(self.number)
        order = "__$start_lsn, __$command_id, __$seqval, __$operation"
        rows = self.run(f"SELECT __$operation, {columns} FROM cdc.{instance}_CT ORDER BY {order}")
        return [(row[0], *row[6:-1]) if columns == "*" else row for row in rows]


@pytest.fixture
def captured(server: SqlServer, client: Client) -> Captured:
    captured = Captured(server, client)
    captured.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), n INT)")
    return captured


def test_insert_update_delete(captured: Captured) -> None:
    captured.run("INSERT t VALUES (1, 'before', 0)")
    captured.enable()
    captured.run("INSERT t VALUES (2, 'x', 1), (3, 'y', 2)")
    captured.run("UPDATE t SET a = 'z' WHERE id > 1")
    captured.run("DELETE t WHERE id = 1")
    assert captured.changes() == [
        (INSERT, 2, "x", 1),
        (INSERT, 3, "y", 2),
        (BEFORE, 2, "x", 1),
        (AFTER, 2, "z", 1),
        (BEFORE, 3, "y", 2),
        (AFTER, 3, "z", 2),
        (DELETE, 1, "before", 0),
    ]
    assert captured.changes(columns="__$update_mask, __$command_id") == [
        (INSERT, b"\x07", 1),
        (INSERT, b"\x07", 2),
        (BEFORE, b"\x02", 1),
        (AFTER, b"\x02", 1),
        (BEFORE, b"\x02", 2),
        (AFTER, b"\x02", 2),
        (DELETE, b"\x07", 1),
    ]


def test_rollbacks_and_updates_without_effect_leave_nothing(captured: Captured) -> None:
    captured.enable()
    captured.run("BEGIN TRAN; INSERT t VALUES (1, 'x', 1); ROLLBACK")
    captured.run(
        "BEGIN TRAN; INSERT t VALUES (2, 'x', 1); SAVE TRAN s; INSERT t VALUES (3, 'x', 1); ROLLBACK TRAN s; COMMIT"
    )
    captured.run("UPDATE t SET a = a; DELETE t WHERE id = 99; UPDATE t SET a = 'q' WHERE id = 99")
    assert captured.changes() == [(INSERT, 2, "x", 1)]


def test_transactions_come_in_the_order_of_commits(captured: Captured, connect: Callable[..., Client]) -> None:
    captured.enable()
    other = connect()
    captured.run("BEGIN TRAN; INSERT t VALUES (1, 'first', 1)")
    other.run("INSERT t VALUES (2, 'second', 1)")
    captured.run("COMMIT")
    assert [row[1] for row in captured.changes()] == [2, 1]
    lsns = captured.changes(columns="__$start_lsn, __$seqval")
    assert lsns[0][1] < lsns[1][1]
    assert lsns[1][2] < lsns[0][2] < lsns[0][1]
    mapped = captured.run(
        "SELECT start_lsn, tran_begin_time, tran_end_time FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"
    )
    assert [row[0] for row in mapped] == [lsns[0][1], lsns[1][1]]
    assert mapped[1][1] <= mapped[0][1] <= mapped[0][2] <= mapped[1][2]


def test_key_change_is_a_deletion_and_an_insertion(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1); UPDATE t SET id = 9, a = 'y' WHERE id = 1")
    assert captured.changes()[1:] == [(DELETE, 1, "x", 1), (INSERT, 9, "y", 1)]
    _, deleted, inserted = captured.changes(columns="__$seqval, __$command_id")
    assert deleted[1] == inserted[1]
    assert deleted[2] < inserted[2]


def test_statement_that_moves_many_keys(captured: Captured) -> None:
    """Keys that exist before and after are updated; only the first goes, only the last is new."""
    captured.enable()
    captured.run("INSERT t VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1); UPDATE t SET id = id + 1")
    assert captured.changes()[3:] == [
        (DELETE, 1, "a", 1),
        (BEFORE, 2, "b", 1),
        (AFTER, 2, "a", 1),
        (BEFORE, 3, "c", 1),
        (AFTER, 3, "b", 1),
        (INSERT, 4, "c", 1),
    ]


def test_change_of_a_unique_column_is_an_update(captured: Captured) -> None:
    captured.run("CREATE UNIQUE INDEX u ON t (a)")
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1); UPDATE t SET a = 'y'")
    assert captured.changes()[1:] == [(BEFORE, 1, "x", 1), (AFTER, 1, "y", 1)]


def test_merge_and_cascades(captured: Captured) -> None:
    captured.run("CREATE TABLE c (id INT PRIMARY KEY, t INT REFERENCES t(id) ON DELETE CASCADE)")
    captured.enable()
    captured.enable("c")
    captured.run("INSERT t VALUES (1, 'a', 1), (2, 'b', 2); INSERT c VALUES (10, 1)")
    captured.run(
        "MERGE INTO t USING (VALUES (2, 'B'), (3, 'C')) s(id, a) ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a"
        " WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE;"
    )
    assert sorted(captured.changes()[2:]) == [
        (DELETE, 1, "a", 1),
        (INSERT, 3, "C", None),
        (BEFORE, 2, "b", 2),
        (AFTER, 2, "B", 2),
    ]
    assert captured.changes("dbo_c") == [(INSERT, 10, 1), (DELETE, 10, 1)]


def test_large_values(captured: Captured) -> None:
    captured.run("CREATE TABLE l (id INT PRIMARY KEY, a INT, m VARCHAR(MAX), x TEXT)")
    captured.enable("l")
    captured.run(
        "INSERT l VALUES (1, 1, 'max', 'text'); UPDATE l SET a = 2; UPDATE l SET m = 'new', x = 'new'; DELETE l"
    )
    assert captured.changes("dbo_l") == [
        (INSERT, 1, 1, "max", "text"),
        (BEFORE, 1, 1, None, None),
        (AFTER, 1, 2, "max", "text"),
        (BEFORE, 1, 2, "max", None),
        (AFTER, 1, 2, "new", "new"),
        (DELETE, 1, 2, "new", None),
    ]


def test_column_list_and_wide_masks(captured: Captured) -> None:
    names = [f"c{number}" for number in range(1, 12)]
    captured.run(f"CREATE TABLE w (id INT PRIMARY KEY, {', '.join(f'{name} INT' for name in names)}, out_of_list INT)")
    captured.enable("w", captured_column_list=f"'{', '.join(reversed(names))}, [id]'", capture_instance="'wide'")
    captured.run("INSERT w (id) VALUES (1); UPDATE w SET c1 = 1, c9 = 9; UPDATE w SET out_of_list = 5")
    masks = captured.changes("wide", "__$update_mask")
    assert masks == [
        (INSERT, b"\x0f\xff"),
        *[(op, b"\x02\x02") for op in (BEFORE, AFTER)],
        *[(op, b"\0\0") for op in (BEFORE, AFTER)],
    ]
    found = captured.run("SELECT column_name, column_ordinal FROM cdc.captured_columns ORDER BY column_ordinal")
    assert found == [(name, number) for number, name in enumerate(["id", *names], 1)]
    mask = "(SELECT TOP 1 __$update_mask FROM cdc.wide_CT WHERE __$operation = 3 ORDER BY __$start_lsn)"
    ordinal = "sys.fn_cdc_get_column_ordinal('wide', 'c9')"
    assert captured.run(
        f"SELECT {ordinal}, sys.fn_cdc_is_bit_set({ordinal}, {mask}), sys.fn_cdc_is_bit_set(1, {mask})"
    ) == [(10, True, False)]


def test_computed_columns_are_null_and_rowversions_binary(captured: Captured) -> None:
    captured.run("CREATE TABLE s (id INT IDENTITY PRIMARY KEY, a INT, twice AS (a * 2), v ROWVERSION)")
    captured.enable("s")
    captured.run("INSERT s (a) VALUES (4)")
    version = captured.run("SELECT v FROM s")[0][0]
    assert captured.changes("dbo_s") == [(INSERT, 1, 4, None, version)]
    types = (
        "SELECT TYPE_NAME(system_type_id) FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_s_CT') AND name = 'v'"
    )
    assert captured.run(types) == [("binary",)]


def test_two_instances_and_the_columns_between(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'old', 1)")
    captured.run("ALTER TABLE t ADD b INT; INSERT t VALUES (2, 'between', 1, 5)")
    captured.enable(capture_instance="'second'")
    captured.run("INSERT t VALUES (3, 'new', 1, 6)")
    assert captured.changes() == [(INSERT, 1, "old", 1), (INSERT, 2, "between", 1), (INSERT, 3, "new", 1)]
    assert captured.changes("second") == [(INSERT, 3, "new", 1, 6)]
    (row,) = captured.run(
        "SELECT a.__$start_lsn, a.__$seqval FROM cdc.dbo_t_CT a JOIN cdc.second_CT b ON a.__$seqval = b.__$seqval"
    )
    starts = captured.run("SELECT start_lsn FROM cdc.change_tables ORDER BY start_lsn")
    assert starts[0][0] < starts[1][0] < row[1] < row[0]
    assert (
        captured.error("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'third'")
        == 22962
    )


def test_dropped_and_retyped_columns(captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'x', 1); ALTER TABLE t DROP COLUMN n; INSERT t VALUES (2, 'y')")
    captured.run("ALTER TABLE t ALTER COLUMN a NVARCHAR(50); INSERT t VALUES (3, N'a longer žtext')")
    assert captured.changes() == [(INSERT, 1, "x", 1), (INSERT, 2, "y", None), (INSERT, 3, "a longer žtext", None)]
    assert captured.error("EXEC sp_rename 't.a', 'other', 'COLUMN'") == 4928
    assert len(captured.run("SELECT ddl_command FROM cdc.ddl_history")) == 2


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
    deadline = time.monotonic() + 20
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


def test_two_databases_in_one_transaction(captured: Captured, connect: Callable[..., Client]) -> None:
    captured.run("CREATE DATABASE second_db")
    second = connect(database="second_db")
    try:
        second.run("EXEC sys.sp_cdc_enable_db; CREATE TABLE t (id INT PRIMARY KEY)")
        second.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
        captured.enable()
        captured.run("BEGIN TRAN; INSERT t VALUES (1, 'x', 1); INSERT second_db.dbo.t VALUES (2); COMMIT")
        captured.run("EXEC second_db.sys.sp_cdc_scan")
        assert captured.changes() == [(INSERT, 1, "x", 1)]
        assert captured.run("SELECT id FROM second_db.cdc.dbo_t_CT") == [(2,)]
        assert captured.run("SELECT COUNT(*) FROM second_db.sys.tables WHERE is_tracked_by_cdc = 1") == [(1,)]
    finally:
        second.close()
        captured.run("DROP DATABASE second_db")
