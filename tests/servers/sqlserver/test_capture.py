"""Change data capture: what the change tables hold after changes of every kind."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import Captured, Client

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4


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


def test_transactions_are_captured_in_the_order_of_commits(captured: Captured, connect: Callable[..., Client]) -> None:
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
