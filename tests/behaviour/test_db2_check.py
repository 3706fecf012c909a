"""What `check` warns of on Db2 before rows are missing. On the stand-in."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tailrace.connectors import registry
from tailrace.connectors.db2 import admin as admin_module
from tailrace.connectors.db2 import checks
from tailrace.connectors.db2.client import connect
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.finding import Finding
from tailrace.errors import SourceError
from tests.conformance.db2 import REGISTER, Db2Source
from tests.servers.db2.server import Db2


@pytest.fixture
def source(db2: Db2, request: pytest.FixtureRequest) -> Iterator[Db2Source]:
    source = Db2Source(db2, f"C{abs(hash(request.node.name)) % 10**8}")
    source.create("orders")
    yield source
    db2.without_apply()
    source.close()


def found(source: Db2Source, table: str = "orders", **properties: str) -> str:
    package = registry.named("db2").load()
    own = {name.replace("__", "."): value for name, value in properties.items()}
    given = source.properties("p") | {"topic.prefix": "t", "table.include.list": rf"{source.schema}\.{table}", **own}
    checked = package.admin(package.resolve(given)).checks()
    return " | ".join(f"{each.what} -> {each.remedy}" for each in checked)


def test_updates_of_zos_without_old_rows_are_told(source: Db2Source) -> None:
    """Which row has a key at the end of a statement is known where updates come as pairs, as elsewhere."""

    def is_settled() -> bool:
        package = registry.named("db2").load()
        given = {**source.properties("p"), "topic.prefix": "t", "db2.platform": "ZOS"}
        with package.admin(package.resolve({**given, **package.replica_properties})).now() as now:
            return bool(now.table(source.id("orders")).unique_at_commit)

    what = "a replica keeps the row of the old key"
    assert is_settled()
    assert what not in found(source, db2__platform="ZOS")
    registered = f"ASNCDC.IBMSNAP_REGISTER SET CHG_UPD_TO_DEL_INS = 'N' WHERE SOURCE_OWNER = '{source.schema}'"
    source.run(f"UPDATE {registered}")
    assert not is_settled()
    assert what in found(source, db2__platform="ZOS")


def test_a_comparison_names_the_columns_that_the_change_table_lacks(source: Db2Source) -> None:
    source.run(f'ALTER TABLE "{source.schema}"."orders" ADD COLUMN "w" INTEGER')
    package = registry.named("db2").load()
    given = {**source.properties("p"), "topic.prefix": "t"}
    with package.admin(package.resolve({**given, **package.replica_properties})).now() as now:
        assert [*now.unlogged(now.table(source.id("orders")))] == ["w"]


def test_a_capture_program_that_stops_is_a_problem_of_a_running_pipeline(
    source: Db2Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's end stands still then, so that the pipeline seems to have read all of it."""
    monkeypatch.setattr(admin_module, "intervals", lambda *_: 0.5)
    package = registry.named("db2").load()
    lists = {"topic.prefix": "t", "table.include.list": rf"{source.schema}\.orders"}
    admin = package.admin(package.resolve({**source.properties("p"), **lists}))

    def problems() -> list[Finding]:
        return admin.problems(begun=True)

    eventually(lambda: problems() == [])
    source.server.services("stop")
    try:
        eventually(lambda: len(problems()) == 1)
        (stopped,) = problems()
        assert stopped.ok is False
        assert "the capture program has read nothing for" in stopped.what
        statement = re.search(r"VALUES \S+\('start', 'asncdc'\)", stopped.remedy or "")
        assert statement is not None
        source.run(statement[0])
    finally:
        source.server.services("start")
    eventually(lambda: problems() == [])


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_apply_is_told(source: Db2Source) -> None:
    assert "Apply" not in found(source)
    source.server.apply(source.schema, "orders")
    assert "1 subscription sets of the program Apply use these change tables" in found(source)


def test_large_objects_are_told(source: Db2Source) -> None:
    key = '"id" INTEGER NOT NULL PRIMARY KEY'
    source.run(f'CREATE TABLE {source.name("docs")} ({key}, "body" CLOB(1G), "small" BLOB(1M))')
    source.run(f'CREATE TABLE {source.name("bare")} ("id" INTEGER, "body" CLOB(1M))')
    source.server.capture((source.schema, "docs"), (source.schema, "bare"))
    told = found(source, "docs")
    assert "docs have the values of body, small that the row has when they are read" in told
    assert "body of" in told
    assert "may have values of more than 134,217,728 bytes" in told
    assert "has no key, so its large objects body are in no event" in found(source, "bare")


def test_columns_that_a_change_table_lacks_are_told(source: Db2Source) -> None:
    source.run(f'ALTER TABLE {source.name("orders")} ADD COLUMN "hidden" INTEGER')
    assert "lacks the columns hidden: they are in no event" in found(source)


def test_registrations_that_stopped_are_told(source: Db2Source) -> None:
    assert "is not active" not in found(source)
    source.run(f"UPDATE {REGISTER} SET STATE = 'S' WHERE SOURCE_TABLE = 'orders' AND SOURCE_OWNER = '{source.schema}'")
    assert "is not active (STATE S): its changes are lost" in found(source)


def test_permissions_of_rows_are_told(source: Db2Source) -> None:
    source.run(f"INSERT INTO ASNCDCLOG.CONTROLS VALUES ('{source.schema}', 'orders', 'Y')")
    assert "has row permissions or column masks" in found(source)


def test_platforms_are_told(source: Db2Source) -> None:
    assert "never run" in found(source, db2__platform="ZOS")
    config = registry.named("db2").load().resolve({**source.properties("p"), "topic.prefix": "t"})
    for name, words in (("AS", "Db2 for i"), ("DB2", "z/OS")):
        (finding,) = checks.platform(name, config)
        assert words in finding.what
        assert finding.ok is False
    assert not list(checks.platform("DB2/LINUXX8664", config))


@pytest.mark.parametrize("schema", ["asncdc", "AsnCdc", "ASNCDC"])
def test_the_control_schema_is_written_in_any_case(source: Db2Source, schema: str) -> None:
    told = found(source, cdc__control__schema=schema, cdc__change__tables__schema=schema)
    assert "1 tables are captured" in told
    assert "missing or cannot be read" not in told


@pytest.mark.long
def test_a_table_in_reorg_pending_says_what_ends_it() -> None:
    given = {"database.user": "db2inst1", "database.password": "db2inst1", "topic.prefix": "t"}
    with Db2(reorg=True) as server:
        place = {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.dbname": server.database,
        }
        package = registry.named("db2").load()
        config = package.resolve({**given, **place, "driver.securityMechanism": "3"})
        server.execute("CREATE TABLE DB2INST1.T (ID INTEGER NOT NULL PRIMARY KEY, A INTEGER)")
        server.execute("ALTER TABLE DB2INST1.T DROP COLUMN A")
        connection = connect(config)
        try:
            with pytest.raises(SourceError, match="reason code") as caught, FAILURES.translated("DB2INST1.T"):
                connection.rows("SELECT * FROM DB2INST1.T")
            assert "REORG TABLE" in (caught.value.remedy or "")
            assert FAILURES.is_transient(caught.value)
            server.execute("CALL SYSPROC.ADMIN_CMD('REORG TABLE DB2INST1.T')")
            assert connection.rows("SELECT * FROM DB2INST1.T") == []
        finally:
            connection.close()
