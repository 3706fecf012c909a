"""Values of Db2 as its driver returns them, and what events have; positions, defaults, and what is asked of z/OS."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.change_tables.lsn import text_of, texts_of
from tailrace.connectors.db2.catalog import Catalog
from tailrace.connectors.db2.cli.library import Db2Error
from tailrace.connectors.db2.config import resolve
from tailrace.connectors.db2.defaults import parse_default
from tailrace.connectors.db2.failures import FAILURES
from tailrace.connectors.db2.package import Db2Package
from tailrace.connectors.db2.position import LSN_BYTES, literal_of
from tailrace.connectors.db2.types.values import Db2Type, source_type, value_type
from tailrace.connectors.defaults import shown_default
from tailrace.errors import ConfigError, SourceError

DEBEZIUM, CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
BASE = {"database.hostname": "h", "database.dbname": "SHOP", "topic.prefix": "t", "database.user": "cdc"}


def converted(kind: Db2Type, value: Any, **properties: str) -> tuple[str | None, Any]:
    config = resolve({**BASE, **{name.replace("__", "."): text for name, text in properties.items()}})
    found = value_type(kind, config)
    assert found is not None
    return found.schema.name, found.convert(pa.array([value, None]))[0].as_py()


MOMENT = datetime(2018, 6, 20, 15, 13, 16, 945104)


@pytest.mark.parametrize(
    ("name", "scale", "mode", "value", "expected"),
    [
        ("DATE", 0, "adaptive", date(2022, 1, 1), (DEBEZIUM + "Date", 18993)),
        ("DATE", 0, "adaptive", date(1, 1, 1), (DEBEZIUM + "Date", -719162)),
        ("DATE", 0, "connect", date(2022, 1, 1), (CONNECT + "Date", 18993)),
        ("DATE", 0, "isostring", date(2022, 1, 1), (DEBEZIUM + "IsoDate", "2022-01-01Z")),
        ("TIME", 0, "adaptive", time(1, 2, 3), (DEBEZIUM + "Time", 3723000)),
        ("TIME", 0, "microseconds", time(1, 2, 3), (DEBEZIUM + "MicroTime", 3723000000)),
        ("TIME", 0, "nanoseconds", time(1, 2, 3), (DEBEZIUM + "NanoTime", 3723000000000)),
        ("TIME", 0, "isostring", time(1, 2, 3), (DEBEZIUM + "IsoTime", "01:02:03Z")),
        ("TIMESTAMP", 0, "adaptive", MOMENT.replace(microsecond=0), (DEBEZIUM + "Timestamp", 1529507596000)),
        ("TIMESTAMP", 3, "adaptive", MOMENT.replace(microsecond=945000), (DEBEZIUM + "Timestamp", 1529507596945)),
        ("TIMESTAMP", 6, "adaptive", MOMENT, (DEBEZIUM + "MicroTimestamp", 1529507596945104)),
        ("TIMESTAMP", 6, "connect", MOMENT, (CONNECT + "Timestamp", 1529507596945)),
        ("TIMESTAMP", 6, "isostring", MOMENT, (DEBEZIUM + "IsoTimestamp", "2018-06-20T15:13:16.945104Z")),
        ("TIMESTAMP", 9, "adaptive", "2018-06-20-15.13.16.945104123",
         (DEBEZIUM + "NanoTimestamp", 1529507596945104123)),
        ("TIMESTAMP", 12, "adaptive", "2018-06-20-15.13.16.945104123999",
         (DEBEZIUM + "NanoTimestamp", 1529507596945104123)),
        ("TIMESTAMP", 12, "isostring", "1969-12-31 23:59:59.999999999000",
         (DEBEZIUM + "IsoTimestamp", "1969-12-31T23:59:59.999999999Z")),
    ],
)  # fmt: skip
def test_times(name: str, scale: int, mode: str, value: Any, expected: tuple[str, Any]) -> None:
    assert converted(Db2Type(name, 10, scale), value, time__precision__mode=mode) == expected


@given(st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1)), st.integers(0, 999))
def test_every_timestamp_has_its_nanoseconds(moment: datetime, nanos: int) -> None:
    text = f"{moment:%Y-%m-%d-%H.%M.%S}.{moment.microsecond:06}{nanos:03}"
    _, found = converted(Db2Type("TIMESTAMP", 13, 9), text)
    micros = (moment - datetime(1970, 1, 1)) // (datetime.resolution)
    assert found == micros * 1000 + nanos


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("double", "3.123456789012346", 3.123456789012346),
        ("string", "3.012345678901234567890123456789", "3.012345678901234567890123456789"),
        ("precise", "-1.50", {"scale": 1, "value": b"\xf1"}),
        ("precise", "1E+2", {"scale": 0, "value": b"\x64"}),
    ],
)
def test_decfloats(mode: str, value: str, expected: Any) -> None:
    assert converted(Db2Type("DECFLOAT", 16, 0), value, decimal__handling__mode=mode)[1] == expected


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_replica_keeps_what_no_decimal_is(text: str) -> None:
    assert converted(Db2Type("DECFLOAT", 16, 0), text)[1] is None
    assert converted(Db2Type("DECFLOAT", 16, 0), text, value__loss__handling__mode="text")[1] == text


def test_types_that_have_no_mapping() -> None:
    assert value_type(Db2Type("SHOP_MONEY", 8, 0), resolve(BASE)) is None


@pytest.mark.parametrize(
    ("text", "kind", "literal"),
    [
        ("'abc'", Db2Type("VARCHAR", 10, 0), "abc"),
        ("('abc')", Db2Type("VARCHAR", 10, 0), "abc"),
        ("'NO'", Db2Type("CHAR", 5, 0), "NO   "),
        ("'it''s'", Db2Type("VARCHAR", 10, 0), "it's"),
        ("100.", Db2Type("INTEGER", 4, 0), "100"),
        ("3.1", Db2Type("DECIMAL", 5, 2), "3.1"),
        ("X'01FF'", Db2Type("VARCHAR", 4, 0, is_binary=True), "01FF"),
        ("BX'01FF'", Db2Type("VARBINARY", 4, 0), None),
        ("DATE('2022-01-01')", Db2Type("DATE", 4, 0), "2022-01-01"),
        ("LOWER('X')", Db2Type("VARCHAR", 4, 0), None),
    ],
)
def test_defaults(text: str, kind: Db2Type, literal: str | None) -> None:
    found = parse_default(text, kind)
    assert found is not None
    assert found.literal == literal
    assert not found.is_function


@pytest.mark.parametrize("text", [None, "", "NULL"])
def test_no_defaults(text: str | None) -> None:
    assert parse_default(text, Db2Type("VARCHAR", 10, 0)) is None


@pytest.mark.parametrize(
    ("text", "kind", "literal"),
    [
        ("'it''s'", Db2Type("VARCHAR", 10, 0), "it''s"),
        ("('NO')", Db2Type("CHAR", 5, 0), "NO   "),
        ("CURRENT USER", Db2Type("VARCHAR", 20, 0), "CURRENT USER"),
        ("CURRENT DATE", Db2Type("VARGRAPHIC", 20, 0), "CURRENT DATE"),
        ("X'01'", Db2Type("VARCHAR", 20, 0, is_binary=True), "01"),
        ("1", Db2Type("INTEGER", 4, 0), "1"),
    ],
)
def test_defaults_as_the_reference_reads_them(text: str, kind: Db2Type, literal: str) -> None:
    """Db2DefaultValueConverter: what is in no quotes is the default of a text column as it is."""
    found = parse_default(text, kind, is_plain=True)
    assert found is not None
    assert (found.literal, found.is_function) == (literal, False)
    assert parse_default("'a'", Db2Type("LONG VARCHAR", 20, 0), is_plain=True) is None


@pytest.mark.parametrize(("mode", "shown"), [("precise", None), ("double", 3.1), ("string", "3.10")])
def test_a_decfloat_shows_its_default_unless_it_is_a_struct(mode: str, shown: object) -> None:
    """Db2DefaultValueConverter leaves out defaults that are structs (KAFKA-12694)."""
    kind = Db2Type("DECFLOAT", 16, 0)
    mapped = value_type(kind, resolve({**BASE, "decimal.handling.mode": mode}))
    assert mapped is not None
    assert shown_default(parse_default("3.10", kind), False, mapped) == shown


def test_types_are_matched_by_the_name_that_the_driver_reports() -> None:
    """ColumnMappers.mapByDatatype looks at Column.typeName()."""
    assert source_type(Db2Type("CHAR", 4, 0, is_binary=True)).name == "CHAR () FOR BIT DATA"


def test_special_registers_are_functions() -> None:
    for text in ("CURRENT TIMESTAMP", "CURRENT_DATE", "current time"):
        found = parse_default(text, Db2Type("TIMESTAMP", 10, 6))
        assert found is not None
        assert found.is_function


@given(st.lists(st.binary(min_size=16, max_size=16)))
def test_positions_sort_as_their_bytes_do(values: list[bytes]) -> None:
    texts = texts_of(pa.array(values, pa.binary()), LSN_BYTES).to_pylist()
    assert texts == [text_of(each) for each in values]
    assert sorted(texts) == [text_of(each) for each in sorted(values)]
    assert [bytes.fromhex(literal_of(each)[2:-1]) for each in texts] == values


def test_positions_of_ten_bytes() -> None:
    short = bytes.fromhex("00000027000007580003")
    assert texts_of(pa.array([short]), LSN_BYTES).to_pylist() == ["00000027:00000758:0003"]
    assert literal_of("00000027:00000758:0003") == "X'00000027000007580003'"
    assert (text_of(None), literal_of("")) == ("", f"X'{'00' * 16}'")


@pytest.mark.parametrize(
    ("code", "state", "text", "words", "is_transient"),
    [
        (-30082, "08001", 'SQL30082N failed with reason "24"', "refuses the login", False),
        (-30082, "08001", 'SQL30082N failed with reason "17"', "way of logging in", False),
        (-30061, "08004", "SQL30061N The database was not found.", "was not found", False),
        (-30081, "08001", "SQL30081N A communication error", "cannot be reached", True),
        (-99999, "40003", "CLI0108E  Communication link failure.", "cannot be reached", True),
        (-99999, "08003", "CLI0106E  Connection is closed.", "cannot be reached", True),
        (-99999, "HY090", "CLI0131E  Invalid string or buffer length.", "Invalid string", False),
        (-99999, "22003", "CLI0111E  Numeric value out of range.", "out of range", False),
        (-99999, "01004", "CLI0002W  Data truncated.", "truncated", True),
        (-911, "40001", "SQL0911N rolled back", "rolled back", True),
        (-204, "42704", 'SQL0204N "ASNCDC.IBMSNAP_REGISTER"', "no control tables", False),
        (-551, "42501", "SQL0551N does not have the privilege", "lacks the privilege", False),
        (-551, "42501", 'SQL0551N on the object "SYSCAT.TABLES"', "lacks the privilege", False),
        (-805, "51002", "SQL0805N Package NULLID.SYSSH200 was not found", "SQL0805N", False),
        (-668, "57007", 'SQL0668N Operation not allowed for reason code "7"', "SQL0668N", True),
        (-1015, "55025", "SQL1015N The database is in an inconsistent state.", "SQL1015N", True),
        (-1117, "57019", "SQL1117N ROLL-FORWARD PENDING", "SQL1117N", True),
        (-1032, "57019", "SQL1032N No start database manager command", "SQL1032N", True),
        (-1040, "57030", "SQL1040N The maximum number of applications", "SQL1040N", True),
        (-952, "57014", "SQL0952N Processing was cancelled", "SQL0952N", True),
        (-964, "57011", "SQL0964C The transaction log is full", "SQL0964C", True),
        (-954, "57011", "SQL0954C Not enough storage", "SQL0954C", True),
        (-290, "55039", "SQL0290N Table space access is not allowed.", "SQL0290N", True),
        (-1776, "", 'SQL1776N The command cannot be issued on an HADR database. Reason code: "1".', "SQL1776N", True),
        (-1598, "42968", "SQL1598N because of a licensing problem", "SQL1598N", False),
    ],
)
def test_errors_of_the_server(code: int, state: str, text: str, words: str, is_transient: bool) -> None:
    error = Db2Error(f"[IBM][CLI Driver] {text}", state, code)
    assert FAILURES.is_transient(error) == is_transient
    with pytest.raises(SourceError, match=words) as caught, FAILURES.translated("a table cannot be read"):
        raise error
    assert FAILURES.is_transient(caught.value) == is_transient


@pytest.mark.parametrize(
    ("code", "words"),
    [(-805, "db2cli.lst"), (-668, "REORG TABLE"), (-1015, "RESTART DATABASE"), (-1776, "primary"), (-1598, "licence")],
)
def test_errors_that_somebody_has_to_end_say_how(code: int, words: str) -> None:
    with pytest.raises(SourceError) as caught, FAILURES.translated("a table cannot be read"):
        raise Db2Error("SQL", "00000", code)
    assert words in (caught.value.remedy or "")


def test_a_restrictive_database_says_what_to_grant() -> None:
    with pytest.raises(SourceError) as caught, FAILURES.translated("a table cannot be read"):
        raise Db2Error('SQL0551N ... the object "SYSCAT.TABLES"', "42501", -551)
    assert "RESTRICTIVE" in (caught.value.remedy or "")
    assert not FAILURES.is_refused(Db2Error("", "", -668))
    assert FAILURES.is_refused(Db2Error("", "", -1776))


class Answers:
    """A connection that keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rows(self, statement: str) -> list[Any]:
        self.asked.append(statement)
        return []


def test_zos_has_another_catalog() -> None:
    for platform, catalog, other in (("LUW", "SYSCAT.", "SYSIBM."), ("ZOS", "SYSIBM.", "SYSCAT.")):
        connection = Answers()
        found = Catalog(connection, resolve({**BASE, "db2.platform": platform}))  # type: ignore[arg-type]
        assert found.tables() == {}
        found.key(next(iter(found.tables()), None) or _table())
        asked = " ".join(connection.asked)
        assert catalog in asked
        assert other not in asked


def _table() -> Any:
    from tailrace.model.table import TableId
    from tailrace.model.table_id import SCHEMA_TABLE

    return TableId("SHOP", "S", "T", SCHEMA_TABLE)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"db2.platform": "IBMI"}, "journals"),
        ({"database.dbname": ""}, "database.dbname"),
        ({"streaming.query.timespan.seconds": "1"}, "shorter than commits are apart"),
        ({"streaming.query.timespan.seconds": "-5"}, "streaming.query.timespan.seconds"),
        ({"snapshot.isolation.mode": "snapshot"}, "repeatable_read"),
    ],
)
def test_wrong_properties_are_named(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        resolve({**BASE, **properties})


@pytest.mark.parametrize("name", ["SYSCAT.T", "ASNCDC.T", "asncdc2.T", "SYSTOOLS.T"])
def test_schemas_of_the_server_are_not_captured(name: str) -> None:
    config = resolve(BASE)
    schema, table = name.split(".")
    from tailrace.config.filters import TableFilter
    from tailrace.model.table import TableId
    from tailrace.model.table_id import SCHEMA_TABLE

    assert TableFilter.from_config(config).naming.is_system(TableId("SHOP", schema, table, SCHEMA_TABLE))


def test_a_url_is_a_source() -> None:
    source = Db2Package().new_source("db2://cdc:s%20x@host:1234/SHOP?ssl=true&securityMechanism=9")
    assert source.properties["database.port"] == "1234"
    assert source.properties["driver.sslConnection"] == "true"
    assert source.properties["driver.securityMechanism"] == "9"
    assert source.secrets == {"database.password": "s x"}
    for wrong in ("db2://host", "db2://u@h:x/D", "db2://u@h/D?what=1"):
        with pytest.raises(ConfigError, match="url"):
            Db2Package().new_source(wrong)
