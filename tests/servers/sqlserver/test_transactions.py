"""Transactions, isolation levels and locks, with several sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from .conftest import Client

LOCK_TIMEOUT = 1222


@pytest.fixture
def table(client: Client) -> Client:
    client.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT t VALUES (1, 10), (2, 20)")
    return client


@pytest.fixture
def other(connect: Callable[..., Client], table: Client) -> Client:
    """A second session, which gives up a lock at once."""
    client = connect()
    client.run("SET LOCK_TIMEOUT 0")
    return client


def test_counts_and_rollback(table: Client) -> None:
    table.run("BEGIN TRAN; BEGIN TRAN; UPDATE t SET a = 11 WHERE id = 1; COMMIT")
    assert table.value("SELECT @@TRANCOUNT") == 1
    table.run("ROLLBACK")
    assert table.run("SELECT @@TRANCOUNT, a FROM t WHERE id = 1") == [(0, 10)]


def test_savepoints(table: Client) -> None:
    table.run("BEGIN TRAN; UPDATE t SET a = 11 WHERE id = 1; SAVE TRAN s; UPDATE t SET a = 22 WHERE id = 2")
    table.run("ROLLBACK TRAN s; COMMIT")
    assert table.run("SELECT a FROM t") == [(11,), (20,)]


def test_a_failed_statement_leaves_the_transaction_open(table: Client) -> None:
    table.run("BEGIN TRAN; INSERT t VALUES (3, 30)")
    assert table.error("INSERT t VALUES (1, 0)") == 2627
    assert table.error("SELECT nothing FROM t") == 207
    assert table.value("SELECT @@TRANCOUNT") == 1
    table.run("COMMIT")
    assert table.value("SELECT COUNT(*) FROM t") == 3


def test_xact_abort_ends_the_transaction(table: Client) -> None:
    table.run("SET XACT_ABORT ON; BEGIN TRAN; INSERT t VALUES (3, 30)")
    assert table.error("INSERT t VALUES (1, 0)") == 2627
    assert table.run("SELECT @@TRANCOUNT, COUNT(*) FROM t") == [(0, 2)]


def test_implicit_transactions(table: Client) -> None:
    table.run("SET IMPLICIT_TRANSACTIONS ON")
    assert table.value("SELECT @@TRANCOUNT") == 0
    table.run("UPDATE t SET a = 0")
    assert table.value("SELECT @@TRANCOUNT") == 1
    # As the reference connector begins a transaction.
    table.run("IF @@TRANCOUNT = 0 BEGIN BEGIN TRAN IF @@TRANCOUNT = 2 COMMIT TRAN END SAVE TRAN [dbz_schema_snapshot]")
    table.run("IF @@TRANCOUNT > 0 ROLLBACK TRAN")
    assert table.value("SELECT @@TRANCOUNT") == 0
    assert table.run("SELECT @@TRANCOUNT, MAX(a) FROM t") == [(1, 20)]


def test_definitions_roll_back(table: Client, other: Client) -> None:
    table.run("BEGIN TRAN; CREATE TABLE made (id INT); ALTER TABLE t ADD b INT")
    assert table.run("SELECT b FROM t WHERE id = 1") == [(None,)]
    assert other.error("SELECT * FROM made") == 208
    table.run("ROLLBACK")
    assert table.error("SELECT * FROM made") == 208
    assert other.error("SELECT b FROM t") == 207


def test_writers_wait_for_each_other(table: Client, other: Client) -> None:
    table.run("BEGIN TRAN; UPDATE t SET a = 11 WHERE id = 1")
    assert other.error("UPDATE t SET a = 12 WHERE id = 1") == LOCK_TIMEOUT
    other.run("UPDATE t SET a = 21 WHERE id = 2")
    table.run("COMMIT")
    other.run("UPDATE t SET a = 12 WHERE id = 1")


def test_a_lock_timeout_leaves_the_transaction_open(table: Client, other: Client) -> None:
    table.run("BEGIN TRAN; UPDATE t SET a = 11 WHERE id = 1")
    other.run("BEGIN TRAN; UPDATE t SET a = 21 WHERE id = 2")
    assert other.error("UPDATE t SET a = 12 WHERE id = 1") == LOCK_TIMEOUT
    other.run("COMMIT")
    table.run("ROLLBACK")
    assert table.run("SELECT a FROM t") == [(10,), (21,)]


def test_deadlock_has_a_victim(table: Client, connect: Callable[..., Client]) -> None:
    second = connect()
    table.run("BEGIN TRAN; UPDATE t SET a = 11 WHERE id = 1")
    second.run("BEGIN TRAN; UPDATE t SET a = 22 WHERE id = 2")
    waiting = threading.Thread(
        target=lambda: table.run("BEGIN TRY UPDATE t SET a = 12 WHERE id = 2 END TRY BEGIN CATCH END CATCH")
    )
    waiting.start()
    victim = second.run(
        "BEGIN TRY UPDATE t SET a = 21 WHERE id = 1; SELECT 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH"
    )
    second.run("IF @@TRANCOUNT > 0 COMMIT")
    waiting.join()
    counts = (table.value("SELECT @@TRANCOUNT"), second.value("SELECT @@TRANCOUNT"))
    assert victim == [(1205,)] or counts == (0, 0)


def test_a_table_that_is_dropped_while_a_statement_waits_for_it_is_an_invalid_object(
    table: Client, connect: Callable[..., Client]
) -> None:
    second = connect()
    table.run("BEGIN TRAN; DROP TABLE t")
    failures: list[int | None] = []
    waiting = threading.Thread(target=lambda: failures.append(second.error("UPDATE t SET a = 21 WHERE id = 1")))
    waiting.start()
    waiting.join(1)
    table.run("COMMIT")
    waiting.join()
    assert failures == [208]


def test_repeatable_read_keeps_the_rows_read(table: Client, other: Client) -> None:
    table.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN TRAN")
    assert table.run("SELECT a FROM t WHERE id = 1") == [(10,)]
    assert other.error("UPDATE t SET a = 11 WHERE id = 1") == LOCK_TIMEOUT
    other.run("UPDATE t SET a = 21 WHERE id = 2; INSERT t VALUES (3, 30)")
    assert table.run("SELECT a FROM t") == [(10,), (21,), (30,)]
    table.run("COMMIT")
    other.run("UPDATE t SET a = 11 WHERE id = 1")


def test_serializable_keeps_out_new_rows(table: Client, other: Client) -> None:
    table.run("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN TRAN; SELECT * FROM t")
    assert other.error("INSERT t VALUES (3, 30)") == LOCK_TIMEOUT
    table.run("COMMIT")


def test_snapshot_sees_the_state_of_its_first_read(table: Client, other: Client) -> None:
    assert table.error("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; SELECT * FROM t") == 3952
    table.run("ALTER DATABASE test_db SET ALLOW_SNAPSHOT_ISOLATION ON; BEGIN TRAN; SELECT * FROM t")
    other.run("UPDATE t SET a = 11 WHERE id = 1")
    assert table.run("SELECT a FROM t WHERE id = 1") == [(10,)]
    assert table.error("UPDATE t SET a = 12 WHERE id = 1") == 3960
    assert table.run("SELECT @@TRANCOUNT, a FROM t WHERE id = 1") == [(0, 11)]


def test_snapshot_cannot_begin_inside_a_transaction(table: Client) -> None:
    table.run("ALTER DATABASE test_db SET ALLOW_SNAPSHOT_ISOLATION ON; BEGIN TRAN; SELECT * FROM t")
    assert table.error("SET TRANSACTION ISOLATION LEVEL SNAPSHOT") == 3951


def test_exclusive_table_lock(table: Client, other: Client, connect: Callable[..., Client]) -> None:
    """TABLOCKX keeps out writers and readers, but for those of snapshots and of dirty data; a savepoint lets it go."""
    reader = connect()
    table.run("ALTER DATABASE test_db SET ALLOW_SNAPSHOT_ISOLATION ON")
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
    table.run("BEGIN TRAN; SAVE TRAN [before]; SELECT TOP(0) * FROM [test_db].[dbo].[t] WITH (TABLOCKX)")
    assert other.error("UPDATE t SET a = 11 WHERE id = 1") == LOCK_TIMEOUT
    assert other.error("SELECT * FROM t") == LOCK_TIMEOUT
    assert other.run("SELECT COUNT(*) FROM t WITH (NOLOCK)") == [(2,)]
    assert reader.run("SELECT COUNT(*) FROM t") == [(2,)]
    locks = "SELECT request_mode FROM sys.dm_tran_locks WHERE resource_associated_entity_id = OBJECT_ID('t')"
    assert ("X",) in other.run(locks)
    table.run("ROLLBACK TRAN [before]")
    assert other.run("SELECT COUNT(*) FROM t") == [(2,)]
    other.run("UPDATE t SET a = 11 WHERE id = 1")
    table.run("COMMIT")


def test_exclusive_lock_ends_with_the_transaction(table: Client, other: Client) -> None:
    table.run("BEGIN TRAN; SELECT TOP(0) * FROM t WITH (TABLOCKX)")
    assert other.error("SELECT * FROM t") == LOCK_TIMEOUT
    table.run("ROLLBACK")
    assert other.value("SELECT COUNT(*) FROM t") == 2


def test_update_lock_and_readpast(table: Client, other: Client) -> None:
    table.run("BEGIN TRAN; SELECT * FROM t WITH (UPDLOCK) WHERE id = 1")
    assert other.error("UPDATE t SET a = 11 WHERE id = 1") == LOCK_TIMEOUT
    assert other.run("BEGIN TRAN; SELECT id FROM t WITH (UPDLOCK, READPAST)") == [(2,)]
    other.run("ROLLBACK")
    table.run("ROLLBACK")


def test_a_client_that_leaves_is_rolled_back(table: Client, connect: Callable[..., Client]) -> None:
    leaving = connect()
    leaving.run("BEGIN TRAN; UPDATE t SET a = 0")
    leaving.close()
    table.run("UPDATE t SET a = a + 1")
    assert table.run("SELECT a FROM t") == [(11,), (21,)]
