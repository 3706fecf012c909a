"""Values of SQL Server as a SELECT returns them, and what events have."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pyarrow as pa
import pytest

from tailrace.connectors.change_tables.lsn import text_of, texts_of
from tailrace.connectors.defaults import shown_default
from tailrace.connectors.sqlserver.config import resolve
from tailrace.connectors.sqlserver.defaults import parse_default
from tailrace.connectors.sqlserver.log.reader import has_bit
from tailrace.connectors.sqlserver.position import LSN_BYTES, literal_of
from tailrace.connectors.sqlserver.types.times import moments
from tailrace.connectors.sqlserver.types.values import SqlType, source_type, value_type
from tailrace.errors import ConfigError, DecodeError

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
BASE = {"database.hostname": "h", "database.names": "testDB", "topic.prefix": "server1"}


def converted(kind: SqlType, value: Any, **properties: str) -> tuple[str | None, Any]:
    config = resolve({**BASE, **{name.replace("__", "."): text for name, text in properties.items()}})
    found = value_type(kind, config)
    assert found is not None
    return found.schema.name, found.convert(pa.array([value, None]))[0].as_py()


@pytest.mark.parametrize(
    ("name", "scale", "mode", "text", "expected"),
    [
        ("date", 0, "adaptive", "2018-07-13", (DEBEZIUM + "Date", 17725)),
        ("date", 0, "isostring", "2018-07-13", (DEBEZIUM + "IsoDate", "2018-07-13Z")),
        ("time", 2, "adaptive", "10:23:45.68", (DEBEZIUM + "Time", 37425680)),
        ("time", 4, "adaptive", "10:23:45.6789", (DEBEZIUM + "MicroTime", 37425678900)),
        ("time", 7, "adaptive", "10:23:45.6789012", (DEBEZIUM + "NanoTime", 37425678901200)),
        ("time", 7, "connect", "10:23:45.6789012", (CONNECT + "Time", 37425678)),
        ("datetime2", 7, "adaptive", "2018-07-13 11:23:45.3400000", (DEBEZIUM + "NanoTimestamp", 1531481025340000000)),
        ("datetime2", 6, "adaptive", "2018-06-20 15:13:16.945104", (DEBEZIUM + "MicroTimestamp", 1529507596945104)),
        ("datetime", 3, "adaptive", "2018-07-13 13:23:45.780", (DEBEZIUM + "Timestamp", 1531488225780)),
        ("smalldatetime", 0, "adaptive", "2018-07-13 14:24:00", (DEBEZIUM + "Timestamp", 1531491840000)),
        ("datetime2", 0, "adaptive", "1969-12-31 23:59:59", (DEBEZIUM + "Timestamp", -1000)),
        ("datetime2", 3, "adaptive", "0001-01-01 00:00:00.001", (DEBEZIUM + "Timestamp", -62135596799999)),
        ("datetime2", 7, "isostring", "2018-07-13 11:00:00.3400000",
         (DEBEZIUM + "IsoTimestamp", "2018-07-13T11:00:00.34Z")),
        ("smalldatetime", 0, "isostring", "2018-07-13 11:05",
         (DEBEZIUM + "IsoTimestamp", "2018-07-13T11:05:00Z")),
        ("time", 0, "isostring", "11:05", (DEBEZIUM + "IsoTime", "11:05:00Z")),
        ("datetime2", 7, "isostring", "2018-07-13 11:00:00.0000000",
         (DEBEZIUM + "IsoTimestamp", "2018-07-13T11:00:00Z")),
        ("datetimeoffset", 7, "adaptive", "2018-07-13 12:23:45.4560000 +11:00",
         (DEBEZIUM + "ZonedTimestamp", "2018-07-13T12:23:45.456+11:00")),
        ("datetimeoffset", 0, "connect", "2018-07-13 12:23:45 +00:00",
         (DEBEZIUM + "ZonedTimestamp", "2018-07-13T12:23:45Z")),
    ],
)  # fmt: skip
def test_times(name: str, scale: int, mode: str, text: str, expected: tuple[str, Any]) -> None:
    assert converted(SqlType(name, 8, 0, scale), text, time__precision__mode=mode) == expected


def test_a_replica_has_times_that_nanoseconds_cannot_hold() -> None:
    """As nanoseconds they are null; a table has microseconds, and what it does not keep is known."""
    kind, last = SqlType("datetime2", 8, 0, 7), "9999-12-31 23:59:59.9999999"
    assert converted(kind, last) == (DEBEZIUM + "NanoTimestamp", None)
    assert converted(kind, last, value__loss__handling__mode="text")[1] == 253402300799999999
    found = value_type(kind, resolve({**BASE, "value.loss.handling.mode": "text"}))
    assert found is not None
    assert found.loses == "digits of a second behind the sixth"


@pytest.mark.parametrize("mode", ["adaptive", "connect", "isostring", "microseconds", "nanoseconds", "structured"])
@pytest.mark.parametrize(
    ("name", "scale", "value", "text"),
    [
        ("date", 0, date(1, 1, 1), "0001-01-01"),
        ("date", 0, date(9999, 12, 31), "9999-12-31"),
        ("time", 3, time(23, 59, 59, 999000), "23:59:59.999"),
        ("time", 6, time(0, 0, 0, 1), "00:00:00.000001"),
        ("datetime2", 6, datetime(1, 1, 1), "0001-01-01 00:00:00.000000"),
        ("datetime2", 0, datetime(1969, 12, 31, 23, 59, 59), "1969-12-31 23:59:59"),
        ("datetime", 3, datetime(1753, 1, 1, 0, 0, 0, 997000), "1753-01-01 00:00:00.997"),
        ("smalldatetime", 0, datetime(2079, 6, 6, 23, 59), "2079-06-06 23:59:00"),
    ],
)  # fmt: skip
def test_the_drivers_times_give_what_their_texts_give(
    name: str, scale: int, value: object, text: str, mode: str
) -> None:
    kind = value_type(SqlType(name, 8, 0, scale), resolve({**BASE, "time.precision.mode": mode}))
    assert kind is not None
    assert kind.binary is not None
    assert kind.binary.convert(pa.array([value, None])).to_pylist() == kind.convert(pa.array([text, None])).to_pylist()


@pytest.mark.parametrize(("name", "scale"), [("time", 7), ("datetime2", 7), ("datetimeoffset", 3)])
def test_what_the_driver_cannot_hold_is_read_as_text(name: str, scale: int) -> None:
    kind = value_type(SqlType(name, 8, 0, scale), resolve(BASE))
    assert kind is not None
    assert kind.binary is None
    assert "CONVERT" in kind.text


@pytest.mark.parametrize(
    ("name", "size", "length"),
    [
        ("nvarchar", -1, 2**31 - 1),
        ("varchar", -1, 2**31 - 1),
        ("varbinary", -1, 2**31 - 1),
        ("xml", -1, 2**31 - 1),
        ("ntext", 16, 2**30 - 1),
        ("text", 16, 2**31 - 1),
        ("nvarchar", 14, 7),
    ],
)
def test_the_driver_reports_no_limit_as_the_largest_int(name: str, size: int, length: int) -> None:
    assert source_type(SqlType(name, size, 0, 0)).length == length


def test_a_nanosecond_too_far_is_null_or_an_error() -> None:
    far = SqlType("datetime2", 8, 27, 7)
    assert converted(far, "9999-12-31 23:59:59.9999999")[1] is None
    kind = value_type(far, resolve(BASE))
    assert kind is not None
    texts = pa.array(["9999-12-31 23:59:59.9999999", "1970-01-01 00:00:00.0000001"])
    assert kind.convert(texts).to_pylist() == [None, 100]  # beside it the others keep their digits
    with pytest.raises(DecodeError):
        converted(far, "9999-12-31 23:59:59.9999999", event__converting__failure__handling__mode="fail")


def test_the_time_of_a_transaction_is_utc() -> None:
    texts = pa.array(["2018-07-13 12:23:45.4560000 +11:00", "2018-07-13 12:23:45 -03:30"])
    assert moments(texts).to_pylist() == [1531445025456000, 1531497225000000]


@pytest.mark.parametrize(
    ("definition", "kind", "literal"),
    [
        ("((255))", "tinyint", "255"),
        ("('abc')", "varchar", "abc"),
        ("(N'it''s')", "nvarchar", "it's"),
        ("((3147483648.))", "bigint", "3147483648"),
        ("((1.5e+003))", "float", "1.5e+003"),
        ("(NULL)", "int", None),
        ("(newid())", "uniqueidentifier", None),
        ("(getdate())", "datetime", None),
        ("((1)+(2))", "int", None),
        ("(0x0102)", "varbinary", "0102"),
    ],
)
def test_defaults(definition: str, kind: str, literal: str | None) -> None:
    found = parse_default(definition, SqlType(kind, 4, 0, 0))
    assert found is not None
    assert found.literal == literal


@pytest.mark.parametrize(
    ("definition", "kind", "literal"),
    [
        ("(N'it''s')", "nvarchar", "it''s"),
        ("('a(b)c')", "varchar", "b"),
        ("(newid())", "varchar", ""),
        ("(NULL)", "varchar", None),
        ("((1))", "bit", "1"),
        ("(CONVERT([bit],(1)))", "bit", "0"),
        ("(CONVERT([int],(5)))", "int", "5"),
        ("((-1.5e+003))", "float", "-1.5e+003"),
        ("((1)+(2))", "int", None),
        ("(NULL)", "int", None),
        ("('5')", "int", None),
        ("((5.))", "int", None),
        ("((3147483648.))", "bigint", "3147483648"),
        ("('1.5')", "decimal", "1.5"),
        ("(N'1.5')", "decimal", None),
        ("('1.5')", "float", None),
        ("((-1.5))", "money", "-1.5"),
        ("(($1))", "money", None),
        ("(0x0102)", "binary", "0102"),
        ("((0x0102))", "binary", None),
        ("('1/31/1900 1:30 PM')", "datetime", "1900-01-31 13:30"),
        ("('1900-01-31 13:30')", "date", "1900-01-31"),
        ("('1900-01-31 13:30')", "time", "13:30"),
        ("('12:05 AM')", "time", "00:05"),
    ],
)
def test_defaults_as_the_reference_reads_them(definition: str, kind: str, literal: str | None) -> None:
    found = parse_default(definition, SqlType(kind, 4, 0, 0), is_cut=True)
    assert found is not None
    assert found.literal == literal


@pytest.mark.parametrize(
    ("definition", "kind", "mode", "shown"),
    [
        ("('2019-01-01')", "datetime2", "isostring", "2019-01-01T00:00:00Z"),
        ("('2019-01-01 12:30')", "datetime", "isostring", "2019-01-01T12:30:00Z"),
        ("('2019-01-01')", "datetime2", "connect", 1546300800000),
        ("('2019-01-01')", "datetimeoffset", "connect", "2019-01-01T00:00:00Z"),
        ("('2019-01-01 00:00:00')", "datetimeoffset", "connect", "2019-01-01T00:00:00Z"),
        ("('2019-01-01 12:30:00.5 +02:00')", "datetimeoffset", "connect", "2019-01-01T12:30:00.5+02:00"),
        ("('6F9619FF-8B86-D011-B42D-00C04FC964FF')", "uniqueidentifier", "connect", None),
        ("(N'<a/>')", "xml", "connect", None),
    ],
)
def test_which_default_a_schema_shows(definition: str, kind: str, mode: str, shown: object) -> None:
    """Debezium: SqlServerDefaultValueConverter, which has the server parse what is short."""
    of = SqlType(kind, 8, 27, 7)
    mapped = value_type(of, resolve({**BASE, "time.precision.mode": mode}))
    assert mapped is not None
    assert shown_default(parse_default(definition, of), True, mapped) == shown


def test_bits_of_an_update_mask_are_counted_from_the_end() -> None:
    """Ten captured columns: the first eight are in the last byte."""
    mask = bytes([0b00000010, 0b00000001])
    assert [ordinal for ordinal in range(10) if has_bit(mask, ordinal)] == [0, 9]
    assert [ordinal for ordinal in range(10) if has_bit(mask, ordinal, from_start=True)] == [1, 8]  # the reference


def test_lsns() -> None:
    lsn = bytes.fromhex("00000027000007580005")
    assert text_of(lsn) == "00000027:00000758:0005"
    assert texts_of(pa.array([lsn, bytes(10)]), LSN_BYTES).to_pylist() == [
        "00000027:00000758:0005",
        "00000000:00000000:0000",
    ]
    assert literal_of("00000027:00000758:0005") == "0x00000027000007580005"
    assert literal_of("") == "0x" + "0" * 20


def test_what_is_wrong_in_a_configuration_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"database.hostname": "h", "topic.prefix": "p", "driver.authentication": "ActiveDirectoryPassword"})
    assert "database.names" in str(caught.value)
    assert "driver.authentication" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "size", "length"), [("hierarchyid", 892, 892), ("geometry", -1, 2**31 - 1), ("Ours", 40, 40)]
)
def test_types_of_clr_code_are_bytes(name: str, size: int, length: int) -> None:
    """The driver reports them as VARBINARY (DataTypeFilter) and returns them as they are stored."""
    kind = SqlType(name, size, 0, 0, is_clr=True)
    assert (kind.jdbc, kind.length, kind.digits, kind.printed(is_identity=False)) == (-3, length, None, name)
    assert converted(kind, b"\x58", binary__handling__mode="hex") == (None, "58")
    mapped = value_type(kind, resolve(BASE))
    assert mapped is not None
    assert shown_default(parse_default("('/1/')", kind), False, mapped) is None
    assert value_type(SqlType("sql_variant", 8016, 0, 0), resolve(BASE)) is None
