"""What `check` tells of SQL Server, and what a snapshot refuses to read. On the stand-in as each platform."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tailrace.connectors import registry
from tailrace.connectors.finding import Finding
from tailrace.errors import SourceError
from tests.behaviour.stepping import Stepped
from tests.conformance.sqlserver import ENABLE, PASSWORD, SqlServerSource
from tests.servers.sqlserver import platforms

READER = "reader"


@pytest.fixture
def source(sqlserver_source: SqlServerSource) -> SqlServerSource:
    return sqlserver_source


@pytest.fixture
def reader(source: SqlServerSource) -> Iterator[dict[str, str]]:
    """The properties of a login that may read tables and change tables, and nothing else."""
    source.server.execute(f"CREATE LOGIN {READER} WITH PASSWORD = '{PASSWORD}'")
    source.run(f"CREATE USER {READER} FOR LOGIN {READER}")
    for schema in ("dbo", "cdc"):
        source.run(f"GRANT SELECT ON SCHEMA::{schema} TO {READER}")
    yield {"database.user": READER, "database.password": PASSWORD}
    source.server.execute(f"DROP LOGIN {READER}")


def checks(source: SqlServerSource, tables: str = "orders", **given: str) -> list[Finding]:
    package = registry.named("sqlserver").load()
    lists = {"table.include.list": rf"dbo\.({tables})", "topic.prefix": "t"}
    properties = {**source.properties("p"), **lists, **{name.replace("__", "."): each for name, each in given.items()}}
    found: list[Finding] = package.admin(package.resolve(properties)).checks()
    return found


def about(found: list[Finding], words: str) -> Finding:
    """The one finding that has these words."""
    matching = [each for each in found if words in each.what]
    assert len(matching) == 1, [each.what for each in found]
    return matching[0]


def test_an_agent_that_stops_is_a_problem_of_a_running_pipeline(source: SqlServerSource) -> None:
    """The log's end stands still then, so that the pipeline seems to have read all of it."""
    package = registry.named("sqlserver").load()
    lists = {"table.include.list": r"dbo\.orders", "topic.prefix": "t"}
    admin = package.admin(package.resolve({**source.properties("p"), **lists}))
    assert admin.problems(begun=True) == []
    source.server.execute("EXEC xp_servicecontrol 'STOP', 'SQLServerAGENT'")
    try:
        (stopped,) = admin.problems(begun=True)
        assert (stopped.ok, stopped.what) == (False, "SQL Server Agent is not running")
        assert "start the service SQL Server Agent" in (stopped.remedy or "")
    finally:
        source.server.execute("EXEC xp_servicecontrol 'START', 'SQLServerAGENT'")


def test_a_capture_job_that_ends_is_a_problem_of_a_running_pipeline(source: SqlServerSource) -> None:
    """The Agent runs on then. A job that is scheduled rests most of the time, and a login may not see jobs."""
    package = registry.named("sqlserver").load()
    lists = {"table.include.list": r"dbo\.orders", "topic.prefix": "t"}
    admin = package.admin(package.resolve({**source.properties("p"), **lists}))
    source.run("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
    (stopped,) = admin.problems(begun=True)
    assert (stopped.ok, stopped.what) == (
        False,
        f"the capture job of {source.name} is not running, so changes do not come",
    )
    assert "sp_cdc_start_job" in (stopped.remedy or "")
    source.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 0")
    assert admin.problems(begun=True) == []
    source.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 1")
    source.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    assert admin.problems(begun=True) == []


def test_two_instances_are_told_and_which_is_narrower(source: SqlServerSource) -> None:
    source.run(f"{ENABLE.format('orders')}, @capture_instance = 'audit', @captured_column_list = N'id'")
    found = checks(source)
    lacking = about(found, "which lacks note, v")
    assert lacking.ok is None
    assert "internal.capture.instance.exclude.list" in (lacking.remedy or "")
    several = about(found, "several capture instances (dbo_orders, audit), of which audit is read")
    assert "sp_cdc_disable_table" in (several.remedy or "")


def test_columns_that_no_instance_has_are_told(source: SqlServerSource) -> None:
    source.run("CREATE TABLE part (id int PRIMARY KEY, v int, w int)")
    source.run(f"{ENABLE.format('part')}, @captured_column_list = N'id,v'", "ALTER TABLE orders ADD extra int")
    assert "dbo_part of" in about(checks(source, "part"), "lacks w: no change of them arrives").what
    added = about(checks(source), "lacks extra: no change of them arrives")
    assert added.ok is None
    assert "capture.instance.auto" in (added.remedy or "")
    excluded = checks(source, column__exclude__list=r"dbo\.orders\.extra")
    assert not [each for each in excluded if "lacks" in each.what]


def test_a_comparison_names_the_columns_that_the_log_does_not_have(source: SqlServerSource) -> None:
    source.run("CREATE TABLE part (id int PRIMARY KEY, v int, w int, twice AS (v * 2), x int)")
    source.run(f"{ENABLE.format('part')}, @captured_column_list = N'id,v,twice'")
    package = registry.named("sqlserver").load()
    given = {**source.properties("p"), "topic.prefix": "t", "column.exclude.list": r"dbo\.part\.x"}
    with package.admin(package.resolve({**given, **package.replica_properties})).now() as now:
        table = now.table(source.id("part"))
        assert ([*now.unlogged(table)], sorted(now.excluded(table))) == (["w"], ["twice", "x"])


def test_columns_that_change_tables_or_snapshots_treat_otherwise_are_told(source: SqlServerSource) -> None:
    columns = (
        "id int PRIMARY KEY, n int, twice AS (n * 2), ssn varchar(20), name varchar(20) COLLATE Cyrillic_General_CI_AS"
    )
    source.run(f"CREATE TABLE people ({columns})", ENABLE.format("people"))
    source.server.encrypt(source.name, "people", "ssn")
    found = checks(source, "people")
    assert "null" in about(found, "twice are computed").what
    assert about(found, "ssn are encrypted").ok is None
    assert "nvarchar" in (about(found, "name have another collation").remedy or "")


def test_a_table_whose_partitions_may_be_switched_is_told(source: SqlServerSource) -> None:
    source.server.partition(source.name, "orders", 3)
    assert "@allow_partition_switch = 0" in (about(checks(source), "SWITCH PARTITION").remedy or "")
    source.run("CREATE TABLE kept (id int PRIMARY KEY)", f"{ENABLE.format('kept')}, @allow_partition_switch = 0")
    source.server.partition(source.name, "kept", 3)
    assert not [each for each in checks(source, "kept") if "SWITCH" in each.what]


def test_large_values_of_a_table_without_a_key_are_told(source: SqlServerSource) -> None:
    """Change tables do not have what an update left, so that a row may not be found by its values."""
    columns = "id int{}, body nvarchar(max), raw image, name nvarchar(20)"
    for table, key in (("loose", ""), ("keyed", " PRIMARY KEY")):
        source.run(f"CREATE TABLE {table} ({columns.format(key)})", ENABLE.format(table))
    found = about(checks(source, "loose|keyed"), "lack old values of body, raw")
    assert (found.ok, "dbo.loose has no key" in found.what) == (None, True)
    left_out = {"column__exclude__list": r"dbo\.loose\.(body|raw)"}
    chosen = {"message__key__columns": "dbo.loose:id"}
    for given in (left_out, chosen):
        assert not [each for each in checks(source, "loose|keyed", **given) if "lack old values" in each.what]


def snapshot(source: SqlServerSource, table: str, **given: str) -> list[dict[str, object]]:
    properties = {
        "table.include.list": rf"dbo\.{table}",
        **{name.replace("__", "."): each for name, each in given.items()},
    }
    stream = Stepped("sqlserver", source, properties)
    try:
        return [event["after"] for _ in range(2) for event in stream.step()[0]]
    finally:
        stream.close()


def test_masked_values_are_no_snapshot(source: SqlServerSource, reader: dict[str, str]) -> None:
    source.run("INSERT INTO orders VALUES (1, 7, N'secret')")
    source.server.mask(source.name, "orders", "note")
    given = {name.replace(".", "__"): value for name, value in reader.items()}
    with pytest.raises(SourceError, match="masks instead of the values of note") as caught:
        snapshot(source, "orders", **given)
    assert "GRANT UNMASK" in (caught.value.remedy or "")
    assert about(checks(source, **given), "masks instead of the values").ok is False
    left_out = {"column__exclude__list": r"dbo\.orders\.note"}
    assert snapshot(source, "orders", **given, **left_out) == [{"id": 1, "v": 7}]
    source.run(f"GRANT UNMASK TO {READER}")
    assert snapshot(source, "orders", **given) == [{"id": 1, "v": 7, "note": "secret"}]


def test_rows_that_a_policy_hides_are_no_snapshot(source: SqlServerSource, reader: dict[str, str]) -> None:
    source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO orders VALUES (2, 2, N'b')")
    source.server.add_policy(source.name, "orders", "c1 > 1", exempt="sa conformance")
    given = {name.replace(".", "__"): value for name, value in reader.items()}
    assert "GRANT VIEW DEFINITION" in (about(checks(source, **given), "may not see the security policies").remedy or "")
    source.run(f"GRANT VIEW DEFINITION TO {READER}")
    assert not [each for each in checks(source, **given) if "may not see" in each.what]
    with pytest.raises(SourceError, match="policy_orders shows the login 1 of 2 rows"):
        snapshot(source, "orders", **given)
    assert about(checks(source, **given), "shows the login 1 of 2 rows").ok is False
    assert len(snapshot(source, "orders")) == 2
    assert not [each for each in checks(source) if "policy" in each.what]


def test_a_policy_that_nobody_sees_and_that_hides_all_rows_is_noticed(
    source: SqlServerSource, reader: dict[str, str]
) -> None:
    """A login without a right on the database is shown no policy: sys.security_policies is empty for it."""
    given = {name.replace(".", "__"): value for name, value in reader.items()}
    assert snapshot(source, "orders", **given) == [], "a table without rows is no sign"
    source.run("INSERT INTO orders VALUES (1, 1, N'a')", "INSERT INTO orders VALUES (2, 2, N'b')")
    assert len(snapshot(source, "orders", **given)) == 2
    source.server.add_policy(source.name, "orders", "c1 > 2", exempt="sa conformance")
    with pytest.raises(SourceError, match="may not see shows the login 0 of 2 rows"):
        snapshot(source, "orders", **given)
    assert about(checks(source, **given), "shows the login 0 of 2 rows").ok is False


def test_a_signal_for_a_table_with_masks_is_given_up(source: SqlServerSource, reader: dict[str, str]) -> None:
    """And the pipeline goes on."""
    source.run("INSERT INTO orders VALUES (1, 7, N'secret')")
    source.server.mask(source.name, "orders", "note")
    source.run(f"GRANT INSERT, DELETE ON SCHEMA::dbo TO {READER}")
    given = {**reader, "snapshot.mode": "no_data", "signal.data.collection": f"{source.name}.dbo.signals"}
    stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.orders", **given})
    stream.step()
    source.signal("s", "execute-snapshot", json.dumps({"data-collections": [f"{source.name}.dbo.orders"]}))
    source.run("UPDATE orders SET v = 8")
    found = [event for _ in range(6) for event in stream.step()[0] if event["source"]["table"] == "orders"]
    stream.close()
    assert [(event["op"], event["after"]["note"]) for event in found] == [("u", "secret")]


def test_defaults_that_the_login_may_not_see_are_told(source: SqlServerSource, reader: dict[str, str]) -> None:
    source.run("CREATE TABLE made (id int PRIMARY KEY, v int DEFAULT 5)", ENABLE.format("made"))
    given = {name.replace(".", "__"): value for name, value in reader.items()}
    found = about(checks(source, "made", **given), "may not see the defaults of")
    assert "GRANT VIEW DEFINITION" in (found.remedy or "")
    source.run(f"GRANT VIEW DEFINITION ON SCHEMA::dbo TO {READER}")
    assert not [each for each in checks(source, "made", **given) if "may not see the defaults" in each.what]


PLATFORMS = {
    "SQL Server": (platforms.SQL_SERVER_2022, "as a member of sysadmin: USE [{}]; EXEC sys.sp_cdc_enable_db"),
    "Linux": (platforms.LINUX, "as a member of sysadmin: USE [{}]; EXEC sys.sp_cdc_enable_db"),
    "2016": (platforms.SQL_SERVER_2016, "as a member of sysadmin: USE [{}]; EXEC sys.sp_cdc_enable_db"),
    "2025": (platforms.SQL_SERVER_2025, "as a member of sysadmin: USE [{}]; EXEC sys.sp_cdc_enable_db"),
    "Azure SQL Database": (platforms.AZURE_SQL_DATABASE, "connected to {}, as its owner: EXEC sys.sp_cdc_enable_db"),
    "Azure SQL Managed Instance": (
        platforms.MANAGED_INSTANCE,
        "as a member of sysadmin: USE [{}]; EXEC sys.sp_cdc_enable_db",
    ),
    "Amazon RDS": (platforms.RDS, "EXEC msdb.dbo.rds_cdc_enable_db N'{}'"),
}


@pytest.mark.parametrize("named", PLATFORMS)
def test_a_pipeline_runs_on_each_platform_and_check_has_its_commands(source: SqlServerSource, named: str) -> None:
    platform, enabling = PLATFORMS[named]
    source.run("INSERT INTO orders VALUES (1, 1, N'a')")
    with source.server.being(platform):
        stream = Stepped("sqlserver", source, {"table.include.list": r"dbo\.orders"})
        found = [event["after"]["id"] for _ in range(2) for event in stream.step()[0]]
        source.run("INSERT INTO orders VALUES (2, 1, N'a')")
        assert [*found, *(event["after"]["id"] for event in stream.step()[0])] == [1, 2]
        stream.close()
        assert [each.what for each in checks(source) if each.ok is not True] == []
        if named.startswith(("Azure", "Amazon")):
            assert named in checks(source)[0].what
        package = registry.named("sqlserver").load()
        properties = {**source.properties("p"), "topic.prefix": "t"}
        with package.admin(package.resolve(properties)).now() as now:
            assert now.horizon
        if platform is not platforms.RDS:
            source.run("EXEC sys.sp_cdc_disable_db")
            assert about(checks(source), "is not enabled").remedy == enabling.format(source.name)


@pytest.mark.parametrize(
    ("platform", "command"), [(platforms.LINUX, "mssql-conf"), (platforms.SQL_SERVER_2022, "service")]
)
def test_a_stopped_agent_is_told_with_the_command_of_its_system(
    source: SqlServerSource, platform: platforms.Platform, command: str
) -> None:
    source.server.run("UPDATE cat.server SET agent_running = 0")
    try:
        with source.server.being(platform):
            found = checks(source)
    finally:
        source.server.run("UPDATE cat.server SET agent_running = 1")
    assert command in (about(found, "SQL Server Agent is not running").remedy or "")
    assert ("on Linux" in found[0].what) == (command == "mssql-conf")


def test_on_rds_capture_is_enabled_by_amazon_s_procedure(source: SqlServerSource) -> None:
    source.run("EXEC sys.sp_cdc_disable_db")
    with source.server.being(platforms.RDS):
        remedy = about(checks(source), "is not enabled").remedy or ""
        assert remedy == PLATFORMS["Amazon RDS"][1].format(source.name)
        source.run(remedy)
        source.run(ENABLE.format("orders"))
        assert [each.what for each in checks(source) if each.ok is False] == []


def test_azure_sql_database_reads_one_database(source: SqlServerSource) -> None:
    with source.server.being(platforms.AZURE_SQL_DATABASE):
        found = checks(source, database__names=f"{source.name},other")
        assert about(found, "one database over a connection").ok is False
        with pytest.raises(SourceError, match="no database") as caught:
            Stepped("sqlserver", source, {"database.names": f"{source.name},other"}).step()
    assert "a pipeline of its own" in (caught.value.remedy or "")
