"""Rows of SQL Server by mssql-python: the values of FreeTDS, and its errors. By the stand-in."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pymssql
import pytest

from tailrace.config import Config
from tailrace.connectors import registry
from tailrace.connectors.sql_tables.images import images, selected
from tailrace.connectors.sqlserver import arrow_client, client
from tailrace.connectors.sqlserver.arrow_client import ArrowConnection
from tailrace.connectors.sqlserver.catalog import Catalog
from tailrace.connectors.sqlserver.failures import FAILURES, number_of
from tailrace.connectors.sqlserver.statements import name, table
from tailrace.errors import SourceError
from tests.behaviour.proxies import proxy
from tests.servers.sqlserver.server import SqlServer

DATABASE = "rows_by_column"
# Of each type: values at its ends, and such as a driver may round, cut, shift or take for another.
VALUES: dict[str, tuple[str, ...]] = {
    "bit": ("0", "1"),
    "tinyint": ("0", "255"),
    "smallint": ("-32768", "32767"),
    "int": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "real": ("0", "-3.4e38", "1.17549435e-38", "0.1"),
    "float": ("0", "-1.7976931348623157e308", "2.2250738585072014e-308", "0.1"),
    "decimal(38,0)": ("-99999999999999999999999999999999999999", "1"),
    "decimal(38,38)": ("0.00000000000000000000000000000000000001",),
    "numeric(5,2)": ("-999.99", "0"),
    "money": ("-922337203685477.5808", "922337203685477.5807", "0.0001"),
    "smallmoney": ("-214748.3648", "214748.3647"),
    "date": ("'0001-01-01'", "'9999-12-31'", "'1582-10-10'"),
    "time(0)": ("'00:00:00'", "'23:59:59'"),
    "time(3)": ("'12:34:56.789'",),
    "time(6)": ("'23:59:59.999999'",),
    "time(7)": ("'23:59:59.9999999'", "'00:00:00.0000001'"),
    "smalldatetime": ("'1900-01-01'", "'2079-06-06 23:59:00'"),
    "datetime": ("'1753-01-01'", "'9999-12-31 23:59:59.997'", "'2024-01-02 03:04:05.003'", "'1969-12-31 23:59:59.993'"),
    "datetime2(0)": ("'0001-01-01'", "'9999-12-31 23:59:59'"),
    "datetime2(3)": ("'1969-12-31 23:59:59.999'", "'2024-02-29 12:00:00.120'"),
    "datetime2(6)": ("'0001-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"),
    "datetime2(7)": ("'9999-12-31 23:59:59.9999999'", "'1969-12-31 23:59:59.9999999'"),
    "datetimeoffset(7)": ("'2024-01-02 03:04:05.1234567 +14:00'", "'0001-01-02 00:00:00 -14:00'"),
    "char(5)": ("'a'", "''"),
    "varchar(20)": ("''", "'it''s'", "' x '"),
    "varchar(max)": ("''", "REPLICATE(CAST('ab' AS varchar(max)), 50000)"),
    "nchar(3)": ("N'漢'",),
    "nvarchar(20)": ("N'äß漢😀'", "N''"),
    "nvarchar(max)": ("N'😀'", "REPLICATE(CAST(N'漢' AS nvarchar(max)), 50000)"),
    "text": ("'x'", "''"),
    "ntext": ("N'漢'",),
    "xml": ("'<a b=\"1\">x</a>'",),
    "binary(4)": ("0x01", "0x"),
    "varbinary(20)": ("0x", "0x00FF00"),
    "varbinary(max)": ("0x", "CAST(REPLICATE(CAST('ab' AS varchar(max)), 50000) AS varbinary(max))"),
    "image": ("0x0001",),
    "uniqueidentifier": ("'6F9619FF-8B86-D011-B42D-00C04FC964FF'",),
}


@pytest.fixture(scope="module", autouse=True)
def _filled(sqlserver: SqlServer) -> Iterator[None]:
    sqlserver.create(DATABASE)
    with closing(sqlserver.connect(DATABASE)) as connection, connection.cursor() as cursor:
        for number, (kind, values) in enumerate(VALUES.items()):
            cursor.execute(f"CREATE TABLE t{number} (id int NOT NULL PRIMARY KEY, c {kind})")
            for row, value in enumerate([*values, "NULL"]):
                cursor.execute(f"INSERT INTO t{number} VALUES ({row}, {value})")
        cursor.execute("CREATE TABLE many (id int NOT NULL PRIMARY KEY, note varchar(100))")
        cursor.execute("INSERT INTO many SELECT value, REPLICATE('x', 100) FROM GENERATE_SERIES(1, 50000, 1)")
    yield
    sqlserver.drop(DATABASE)


def config_of(server: SqlServer, **given: str) -> Config:
    properties = {
        "database.hostname": "localhost",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": DATABASE,
        "topic.prefix": "t",
        "driver.encrypt": "false",
        **{each.replace("__", "."): value for each, value in given.items()},
    }
    return registry.named("sqlserver").load().resolve(properties)


def read(connection: client.Connection, config: Config, number: int) -> list[Any]:
    """The event values of a table's column c, in blocks of two rows."""
    catalog = Catalog(connection, config)
    (id_,) = [each for each in catalog.tables() if each.table == f"t{number}"]
    captured = catalog.table(id_)
    assert captured is not None
    statement = f"SELECT {', '.join(selected(name, captured))} FROM {table(id_)} ORDER BY id"
    blocks = [images(captured, block, len(block[0])) for block in connection.blocks(statement, 2)]
    assert all(len(block) <= 2 for block in blocks)
    found: list[Any] = pa.chunked_array(blocks).combine_chunks().field("c").to_pylist()
    return found


@pytest.mark.parametrize("mode", ["adaptive", "connect", "isostring", "structured"])
def test_both_drivers_read_the_same(sqlserver: SqlServer, mode: str) -> None:
    config = config_of(sqlserver, time__precision__mode=mode)
    with closing(arrow_client.connect(config)) as columns, closing(client.connect(config)) as rows:
        assert isinstance(columns, ArrowConnection)
        for number, (kind, values) in enumerate(VALUES.items()):
            found = read(columns, config, number)
            assert repr(found) == repr(read(rows, config, number)), kind
            assert len(found) == len(values) + 1, kind
            assert found[-1] is None, kind


def test_errors_have_the_servers_numbers(sqlserver: SqlServer) -> None:
    with closing(arrow_client.connect(config_of(sqlserver))) as connection:
        for statement, number, said in (
            ("SELECT * FROM dbo.none", 208, "Invalid object name 'dbo.none'."),
            ("RAISERROR('it is so', 16, 1)", 50000, "it is so"),
            # After 49,999 rows.
            ("SELECT 1 / (50000 - id) FROM many ORDER BY id", 8134, "Divide by zero error encountered."),
        ):
            for ask in (connection.rows, lambda each: list(connection.blocks(each, 10_000))):
                with pytest.raises(pymssql.Error) as caught:
                    ask(statement)
                assert number_of(caught.value) == number
                assert FAILURES.line(caught.value) == said
                assert not FAILURES.is_transient(caught.value)
        assert connection.value("SELECT 1") == 1


@pytest.mark.parametrize("column", ["note", "CAST(note AS varchar(max))"])
def test_a_block_has_so_many_bytes(sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    monkeypatch.setattr(arrow_client, "_BLOCK_BYTES", 21_000)
    with closing(arrow_client.connect(config_of(sqlserver))) as connection:
        blocks = list(connection.blocks(f"SELECT {column} FROM many WHERE id <= 1000", 500))
    sizes = [len(block[0]) for block in blocks]
    assert sum(sizes) == 1000
    assert sizes[0] == 100
    assert 150 <= max(sizes) <= 210


def test_a_connection_that_is_cut_is_lost(sqlserver: SqlServer) -> None:
    with proxy(sqlserver.port) as between:
        between.cut = 1_000_000
        config = config_of(sqlserver, database__port=str(between.port))
        with closing(arrow_client.connect(config)) as connection:
            blocks = connection.blocks("SELECT * FROM many", 1000)
            assert len(next(blocks)[0]) == 100
            with pytest.raises(pymssql.Error) as caught:
                list(blocks)
            assert FAILURES.is_lost(caught.value)
            with pytest.raises(pymssql.Error) as caught:
                connection.rows("SELECT 1")
            assert FAILURES.is_lost(caught.value)


def test_the_rest_of_an_unfinished_answer_is_not_waited_for(sqlserver: SqlServer) -> None:
    """The driver would read the rest; a snapshot that is stopped has a table of any size before it."""
    with proxy(sqlserver.port) as between:
        connection = arrow_client.connect(config_of(sqlserver, database__port=str(between.port)))
        blocks = connection.blocks("SELECT * FROM many", 10)
        assert len(next(blocks)[0]) == 10
        between.spoil("stall", for_all=True)
        began = time.monotonic()
        blocks.close()  # type: ignore[attr-defined]  # it is a generator
        with pytest.raises(pymssql.Error) as caught:
            connection.run("ROLLBACK")
        assert FAILURES.is_lost(caught.value)
        connection.close()
        assert time.monotonic() - began < 60


def test_a_statement_that_takes_too_long_ends(sqlserver: SqlServer) -> None:
    with closing(arrow_client.connect(config_of(sqlserver, database__query__timeout__ms="1000"))) as connection:
        began = time.monotonic()
        with pytest.raises(pymssql.Error, match="imeout"):
            connection.run("WAITFOR DELAY '00:00:40'")
        assert time.monotonic() - began < 35


def test_freetds_reads_where_the_driver_does_not_connect(
    sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driver = arrow_client._driver()

    def refuse(*_: object, **__: object) -> None:
        raise driver.OperationalError("Client unable to establish connection", "[Microsoft][Driver]no library")

    monkeypatch.setattr(driver, "connect", refuse)
    config = config_of(sqlserver)
    for _ in range(2):
        with caplog.at_level(logging.WARNING), closing(arrow_client.connect(config)) as connection:
            assert not isinstance(connection, ArrowConnection)
            assert read(connection, config, 0) == [False, True, None]
    (told,) = caplog.messages
    assert "FreeTDS" in told
    assert told.endswith("no library")


def test_freetds_reads_where_the_driver_does_not_load(
    sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    arrow_client._driver.cache_clear()
    monkeypatch.setitem(sys.modules, "mssql_python", None)
    with caplog.at_level(logging.WARNING), closing(arrow_client.connect(config_of(sqlserver))) as connection:
        assert connection.value("SELECT 1") == 1
    (told,) = caplog.messages
    assert "mssql_python" in told


@pytest.mark.parametrize("password", ["a}b;c={d}}e 1", "Ein'ß漢;{", "}}", "{x}"])
def test_any_password_reaches_the_server(sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setattr(sqlserver, "password", password)
    with closing(arrow_client.connect(config_of(sqlserver))) as connection:
        assert isinstance(connection, ArrowConnection)
        assert connection.value("SELECT 1") == 1


def test_a_refused_login_is_reported_once(sqlserver: SqlServer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(pymssql.Error) as caught:
        arrow_client.connect(config_of(sqlserver, database__password="wrong"))
    with pytest.raises(SourceError, match="refuses the login"), FAILURES.translated("rows cannot be read"):
        raise caught.value
    assert not caplog.messages


@pytest.mark.parametrize("encryption", ["off", "login", "required"])
@pytest.mark.parametrize("encrypt", ["false", "true"])
def test_encrypted_connections(
    sqlserver: SqlServer, monkeypatch: pytest.MonkeyPatch, encryption: str, encrypt: str
) -> None:
    monkeypatch.setattr(sqlserver, "encryption", encryption)
    config = config_of(sqlserver, driver__encrypt=encrypt, driver__trustServerCertificate="true")
    if encrypt == "true" and encryption == "off":
        with pytest.raises(SourceError, match="does not encrypt"):
            arrow_client.connect(config)
        return
    with closing(arrow_client.connect(config)) as connection:
        assert isinstance(connection, ArrowConnection)
        assert connection.value("SELECT 1") == 1


def test_certificates_of_a_file_are_compared_by_freetds(sqlserver: SqlServer, tmp_path: Any) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(sqlserver.tls()[1], encoding="utf-8")
    given = {"driver__encrypt": "true", "driver__trustServerCertificate": "false"}
    with closing(arrow_client.connect(config_of(sqlserver, **given, driver__trustStore=str(trusted)))) as connection:
        assert connection.value("SELECT 1") == 1
    # The system trusts it not.
    with pytest.raises(SourceError, match="not trusted"):
        arrow_client.connect(config_of(sqlserver, **given))
