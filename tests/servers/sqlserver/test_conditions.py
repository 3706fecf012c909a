"""What tests switch on: other platforms, errors, late and slow capture, readers that wait, backups, masks, policies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pymssql
import pytest

from . import platforms
from .conftest import Captured, Client
from .server import SqlServer
from .tsql.errors import error

LOGIN, PASSWORD = "condition_login", "Condition-1"


@pytest.fixture
def login(server: SqlServer, client: Client) -> Iterator[dict[str, str]]:
    """A login that may read the tables of dbo."""
    server.execute(f"CREATE LOGIN {LOGIN} WITH PASSWORD = '{PASSWORD}'")
    client.run(f"CREATE USER {LOGIN} FOR LOGIN {LOGIN}; GRANT SELECT ON SCHEMA::dbo TO {LOGIN}")
    yield {"user": LOGIN, "password": PASSWORD}
    server.execute(f"DROP LOGIN {LOGIN}")


def test_azure_sql_database_has_one_database_and_no_agent(server: SqlServer, client: Client) -> None:
    with server.being(platforms.AZURE_SQL_DATABASE):
        assert client.value("SELECT CONVERT(int, SERVERPROPERTY('EngineEdition'))") == 5
        assert client.error("SELECT name FROM msdb.dbo.cdc_jobs") == 40515
        assert client.error("SELECT 1 FROM sys.dm_server_services") == 208
        assert client.error("USE master") == 40508
        assert client.run("SELECT name FROM sys.databases ORDER BY name") == [("master",), ("test_db",)]
        assert client.run("SELECT name FROM test_db.sys.tables") == []


def test_members_of_sysadmin_alone_enable_capture_but_on_rds(
    server: SqlServer, client: Client, connect: Callable[..., Client], login: dict[str, str]
) -> None:
    client.run(f"ALTER ROLE db_owner ADD MEMBER {LOGIN}")
    owner = connect(**login)
    assert owner.error("EXEC sys.sp_cdc_enable_db") == 22902
    with server.being(platforms.RDS):
        assert client.error("EXEC sys.sp_cdc_enable_db") == 22902
        owner.run("EXEC msdb.dbo.rds_cdc_enable_db 'test_db'")
    assert client.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'test_db'")
    assert client.error("EXEC msdb.dbo.rds_cdc_enable_db 'test_db'") == 2812


def test_errors_are_reported_as_often_as_a_test_says(server: SqlServer, connect: Callable[..., Client]) -> None:
    client = connect()
    with server.faults.statements("SELECT 7", error(976, "test_db"), times=2):
        assert [client.error("SELECT 7"), client.error("SELECT 7")] == [976, 976]
        assert client.value("SELECT 7") == 7
    with server.faults.logins(error(4060, "test_db"), error(18456, "sa")), pytest.raises(pymssql.Error):
        connect()
    with server.faults.statements("SELECT 8", error(596)):
        assert client.error("SELECT 8") == 596
    with pytest.raises(pymssql.Error):
        client.value("SELECT 9")


def test_an_instance_has_its_start_from_the_scan_that_meets_it(server: SqlServer, captured: Captured) -> None:
    start = "SELECT start_lsn FROM cdc.change_tables"
    server.capture.starts_late = True
    captured.run("EXEC sys.sp_cdc_stop_job @job_type = 'capture'")
    try:
        captured.enable()
        captured.run("EXEC sys.sp_cdc_stop_job @job_type = 'capture'")
        captured.run("INSERT t VALUES (1, 'a', 1)")
        captured.changes()
        assert captured.run(start)[0][0] is not None
        captured.enable(capture_instance="'later'")
        before = captured.run(f"{start} WHERE capture_instance = 'later'")
        assert before == [(None,)] or before[0][0] is not None  # the job may have met it already
    finally:
        server.capture.starts_late = False


def test_a_paced_job_scans_after_its_pause(server: SqlServer, captured: Captured) -> None:
    captured.enable()
    captured.run("EXEC sys.sp_cdc_change_job @job_type = 'capture', @pollinginterval = 1")
    server.capture.is_paced = True
    try:
        begun = time.monotonic()
        for number in range(2):
            captured.run(f"INSERT t VALUES ({number}, 'a', 1)")
            while captured.client.value("SELECT COUNT(*) FROM cdc.dbo_t_CT") <= number:
                time.sleep(0.02)
        assert time.monotonic() - begun > 0.9, "a pause is between two scans"
    finally:
        server.capture.is_paced = False


@pytest.mark.parametrize("has_versions", [False, True])
def test_readers_wait_for_writers_unless_rows_have_versions(
    server: SqlServer, client: Client, connect: Callable[..., Client], has_versions: bool
) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY); INSERT t VALUES (1)")
    if has_versions:
        client.run("ALTER DATABASE test_db SET READ_COMMITTED_SNAPSHOT ON")
    writer, reader = connect(), connect()
    server.readers_wait = True
    try:
        writer.run("BEGIN TRANSACTION; INSERT t VALUES (2)")
        reader.run("SET LOCK_TIMEOUT 200")
        if has_versions:
            assert reader.run("SELECT id FROM t") == [(1,)]
        else:
            assert reader.error("SELECT id FROM t") == 1222
        reader.run("SET LOCK_TIMEOUT -1")
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.extend(reader.run("SELECT id FROM t")))
        thread.start()
        thread.join(60 if has_versions else 0.2)
        assert bool(found) == has_versions
        writer.run("COMMIT")
        thread.join(60)
        assert found == ([(1,)] if has_versions else [(1,), (2,)])
    finally:
        server.readers_wait = False


def test_a_restored_database_gives_positions_again(server: SqlServer, captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'a', 1)")
    captured.changes()
    server.back_up("test_db")
    captured.run("INSERT t VALUES (2, 'b', 2)")
    captured.changes()
    last = "SELECT MAX(__$start_lsn) FROM cdc.dbo_t_CT"
    lsn = captured.client.value(last)
    server.restore("test_db")
    again = Client(server, "test_db")
    assert again.run("SELECT id FROM t") == [(1,)]
    again.run("INSERT t VALUES (3, 'c', 3)")
    server.settle("test_db")
    assert again.value(last) == lsn
    again.close()


def test_masks_policies_and_definitions_are_for_others(
    server: SqlServer, client: Client, connect: Callable[..., Client], login: dict[str, str]
) -> None:
    client.run("CREATE TABLE t (id int PRIMARY KEY, v int DEFAULT 5, s varchar(9)); INSERT t VALUES (1, 2, 'x')")
    client.run("INSERT t VALUES (2, 2, 'y')")
    server.mask("test_db", "t", "s")
    server.add_policy("test_db", "t", "c1 > 1", exempt="sa")
    other, definition = connect(**login), "SELECT definition FROM sys.default_constraints"
    assert other.run("SELECT id, s FROM t") == [(2, "xxxx")]
    assert client.run("SELECT id, s FROM t ORDER BY id") == [(1, "x"), (2, "y")]
    assert (other.value(definition), client.value(definition)) == (None, "((5))")
    client.run(f"GRANT UNMASK TO {LOGIN}; GRANT VIEW DEFINITION ON SCHEMA::dbo TO {LOGIN}")
    assert other.run("SELECT s FROM t") == [("y",)]
    assert other.value(definition) == "((5))"
    policies = "SELECT COUNT(*) FROM sys.security_policies"
    assert (other.value(policies), client.value(policies)) == (0, 1)
    client.run(f"GRANT VIEW DEFINITION TO {LOGIN}")
    assert other.value(policies) == 1


def test_clean_up_takes_time_and_readers_wait_for_it(server: SqlServer, captured: Captured) -> None:
    captured.enable()
    captured.run("INSERT t VALUES (1, 'a', 1)")
    captured.run("INSERT t VALUES (2, 'a', 1)")
    captured.changes()
    server.capture.cleanup_seconds, server.readers_wait = 1.0, True
    try:
        begun = time.monotonic()
        thread = threading.Thread(target=lambda: server.capture.clean_up(captured.number, -1))
        thread.start()
        cleans = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        while thread.is_alive() and not int(server.lookup(cleans) or 0):
            time.sleep(0.02)
        assert captured.client.value("SELECT COUNT(*) FROM cdc.dbo_t_CT") == 1
        assert time.monotonic() - begun > 0.8
        thread.join()
    finally:
        server.capture.cleanup_seconds, server.readers_wait = 0.0, False
