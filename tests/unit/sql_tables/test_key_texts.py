"""Keys as literals, by which rows are asked for again."""

from __future__ import annotations

from tailrace.connectors.db2.snapshot import DIALECT as DB2
from tailrace.connectors.db2.types.values import Db2Type
from tailrace.connectors.sqlserver.snapshot import DIALECT as SQLSERVER
from tailrace.connectors.sqlserver.types.values import SqlType


def test_db2_reads_the_bytes_of_a_key() -> None:
    kind = Db2Type.of("VARCHAR", 6, 0, 0)
    assert DB2.tried(kind, DB2.octets(b"\0\1")) == f"CAST(X'0001' AS {kind.declared})"


def test_db2_gives_numbers_in_the_type_of_their_column() -> None:
    kind = Db2Type.of("DECIMAL", 5, 2, 0)
    assert [DB2.tried(kind, text) for text in ("1", "-1.50")] == [
        "CAST(1 AS DECIMAL(5,2))",
        "CAST(-1.50 AS DECIMAL(5,2))",
    ]
    assert DB2.tried(kind, "1000.00") == "CAST(NULL AS DECIMAL(5,2))"


def test_sqlserver_reads_the_bytes_of_a_key() -> None:
    kind = SqlType("varbinary", 10, 0, 0)
    assert SQLSERVER.tried(kind, SQLSERVER.octets(b"\0\1")) == "TRY_CONVERT(varbinary(10), N'0x0001', 1)"
