"""time.precision.mode=structured: the parts say what the other modes say; forms of struct, JSON, Avro and replica.

Names and fields are those of Debezium 3.7; tests/golden/postgres-3.7 has recordings of PostgreSQL's.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.db2.config import resolve as resolve_db2
from tailrace.connectors.db2.types.values import Db2Type
from tailrace.connectors.db2.types.values import value_type as db2_type
from tailrace.connectors.defaults import Default, shown_default
from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tailrace.connectors.sqlserver.config import resolve as resolve_sqlserver
from tailrace.connectors.sqlserver.types.values import SqlType
from tailrace.connectors.sqlserver.types.values import value_type as sqlserver_type
from tailrace.connectors.value_type import ValueType, converted
from tailrace.errors import DecodeError
from tailrace.events.avro.datums import datums, joined
from tailrace.events.avro.schema import AvroSettings, avro_schema, schema_text
from tailrace.events.equality import same
from tailrace.model.schema import ConnectSchema, Field
from tailrace.model.text.json import encode, null_text
from tests.unit.postgres.test_values import config
from tests.unit.postgres.test_values import kind as postgres_kind

SQLSERVER = {"database.hostname": "h", "database.names": "testDB", "topic.prefix": "server1"}
DB2 = {"database.hostname": "h", "database.dbname": "SHOP", "topic.prefix": "t", "database.user": "cdc"}
Kind = Callable[..., ValueType]


def postgres(name: str, digits: int = -1, mode: str = "structured", **more: str) -> ValueType:
    properties = {"time.precision.mode": mode, **{key.replace("__", "."): value for key, value in more.items()}}
    found: ValueType = postgres_kind(name, digits, properties)
    return found


def sqlserver(name: str, digits: int = 0, mode: str = "structured", **more: str) -> ValueType:
    properties = {"time.precision.mode": mode, **{key.replace("__", "."): value for key, value in more.items()}}
    found = sqlserver_type(SqlType(name, 8, 0, digits), resolve_sqlserver({**SQLSERVER, **properties}))
    assert found is not None
    return found


def db2(name: str, digits: int = 0, mode: str = "structured", **more: str) -> ValueType:
    properties = {"time.precision.mode": mode, **{key.replace("__", "."): value for key, value in more.items()}}
    found = db2_type(Db2Type(name, 10, digits), resolve_db2({**DB2, **properties}))
    assert found is not None
    return found


def read(kind: ValueType, *values: Any) -> list[Any]:
    """The values, of a slice with nulls about; a null among them must stay one."""
    found = converted(pa.array([None, *values, None]).slice(1), kind, "t.c")
    found.validate(full=True)
    assert found.type == kind.arrow
    assert not found[len(values)].is_valid
    rows: list[Any] = found.slice(0, len(values)).to_pylist()
    return rows


def moment_of(found: dict[str, Any]) -> datetime:
    day = datetime(found["year"], found["month"], found["day"], found["hour"], found["minute"], found["second"])
    return day.replace(microsecond=found["nanos"] // 1000)


FIRST = datetime(1970, 1, 1)
MOMENTS = st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)), min_size=1)
POSTGRES_TIMESTAMPS = st.integers(-211_813_488_000_000_000, 9_224_318_015_999_999_999)  # 4714 BC to 294276


@given(MOMENTS)
def test_timestamps_are_the_microseconds_of_the_other_mode(moments: list[datetime]) -> None:
    texts = [str(each) for each in moments]
    readings: list[tuple[Kind, str, list[Any]]] = [
        (postgres, "timestamp", texts), (sqlserver, "datetime2", texts), (db2, "TIMESTAMP", list(moments)),
    ]  # fmt: skip
    for kind, name, given_ in readings:
        found = read(kind(name, 6), *given_)
        micros = read(kind(name, 6, mode="microseconds"), *given_)
        assert [(moment_of(each) - FIRST) // timedelta(microseconds=1) for each in found] == micros
        assert {each["precision"] for each in found} == {6}
        assert {each["specialValue"] for each in found} == {None}


@given(st.lists(st.dates(), min_size=1))
def test_dates_are_the_days_of_the_other_mode(dates: list[date]) -> None:
    texts = [str(each) for each in dates]
    for kind, name, values in ((postgres, "date", texts), (sqlserver, "date", texts), (db2, "DATE", dates)):
        found = read(kind(name), *values)
        assert [date(each["year"], each["month"], each["day"]) for each in found] == dates
        assert [set(each) for each in found] == [{"year", "month", "day", "specialValue"}] * len(dates)


@given(st.lists(st.times(), min_size=1))
def test_times_are_the_microseconds_of_the_other_mode(times: list[time]) -> None:
    texts = [f"{each:%H:%M:%S.%f}" for each in times]
    whole = [each.replace(microsecond=0) for each in times]
    for kind, name, digits, values in (
        (postgres, "time", 6, texts), (sqlserver, "time", 6, texts), (db2, "TIME", 0, whole),
    ):  # fmt: skip
        found = read(kind(name, digits), *values)
        micros = [
            ((each["hour"] * 60 + each["minute"]) * 60 + each["second"]) * 1_000_000 + each["nanos"] // 1000
            for each in found
        ]
        assert micros == read(kind(name, digits, mode="microseconds"), *values)
        assert {each["precision"] for each in found} == {digits}


@given(MOMENTS)
def test_zoned_timestamps_of_postgresql_are_the_text_of_the_other_mode(moments: list[datetime]) -> None:
    texts = [f"{each}+00" for each in moments]
    found = read(postgres("timestamptz", 6), *texts)
    assert [f"{moment_of(each):%Y-%m-%dT%H:%M:%S.%f}".rjust(26, "0") + "Z" for each in found] == read(
        postgres("timestamptz", 6, mode="isostring"), *texts
    )
    assert {(each["offsetSeconds"], each["zoneId"], each["precision"]) for each in found} == {(0, "Z", 6)}


@given(st.lists(POSTGRES_TIMESTAMPS, min_size=1))
def test_every_timestamp_of_postgresql_has_its_parts(micros: list[int]) -> None:
    """Those of other eras and beyond 64 bits of microseconds since 1970 as well, in one batch with others."""
    days, rest = zip(*(divmod(each, 86_400_000_000) for each in micros), strict=True)
    eras = [day // 146_097 for day in days]
    known = [date.fromordinal(719_163 + day % 146_097) for day in days]
    years = [each.year + 400 * era for each, era in zip(known, eras, strict=True)]
    texts = [
        f"{year if year > 0 else 1 - year:04}-{day:%m-%d} {FIRST + timedelta(microseconds=of_day):%H:%M:%S.%f}"
        + ("" if year > 0 else " BC")
        for year, day, of_day in zip(years, known, rest, strict=True)
    ]
    found = read(postgres("timestamp"), *texts)
    assert [(each["year"], each["month"], each["day"]) for each in found] == [
        (year, day.month, day.day) for year, day in zip(years, known, strict=True)
    ]
    clocks = [((each["hour"] * 60 + each["minute"]) * 60 + each["second"]) * 10**9 + each["nanos"] for each in found]
    assert clocks == [each * 1000 for each in rest]


def _zone(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


@given(st.lists(st.tuples(st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)), st.integers(-840, 840)), min_size=1))
def test_offsets_of_sqlserver_stay(moments: list[tuple[datetime, int]]) -> None:
    texts = [f"{moment!s:0<19}"[:19] + f".{moment.microsecond:06}0 {_zone(offset)}" for moment, offset in moments]
    found = read(sqlserver("datetimeoffset", 7), *texts)
    assert [(moment_of(each), each["offsetSeconds"] // 60, each["zoneId"]) for each in found] == [
        (*each, None) for each in moments
    ]


PARTS = ("years", "months", "days", "hours", "minutes", "seconds", "nanos")
SPANS = st.tuples(
    st.integers(-(10**8), 10**8), st.integers(-11, 11), st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6),
    st.integers(-59, 59), st.integers(-59_999_999, 59_999_999),
)  # fmt: skip


@given(st.lists(SPANS, min_size=1))
def test_intervals_are_the_text_of_the_other_mode(spans: list[tuple[int, ...]]) -> None:
    texts = []
    for years, months, days, hours, minutes, micros in spans:
        seconds = f"{'-' if micros < 0 else ''}{abs(micros) // 10**6}.{abs(micros) % 10**6:06}"
        texts.append(f"P{years}Y{months}M{days}DT{hours}H{minutes}M{seconds}S")
    found = read(postgres("interval"), *texts)
    again = [(*(each[name] for name in PARTS[:5]), each["seconds"] * 10**6 + each["nanos"] // 1000) for each in found]
    assert again == spans


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        (postgres("date"), "0044-03-15 BC", {"year": -43, "month": 3, "day": 15, "specialValue": None}),
        (postgres("date"), "5874897-12-31", {"year": 5874897, "month": 12, "day": 31, "specialValue": None}),
        (postgres("date"), "infinity",
         {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}),
        (postgres("time", 3), "24:00:00", {"hour": 24, "minute": 0, "second": 0, "nanos": 0, "precision": 3}),
        (postgres("timetz"), "24:00:00+05:30",
         {"hour": 24, "minute": 0, "second": 0, "nanos": 0, "offsetSeconds": 19800, "precision": 6}),
        (postgres("timetz", 6), "13:51:30.123789-02:00:05",
         {"hour": 13, "minute": 51, "second": 30, "nanos": 123789000, "offsetSeconds": -7205, "precision": 6}),
        (postgres("timestamp"), "294276-12-31 23:59:59.999999",
         {"year": 294276, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59, "nanos": 999999000,
          "specialValue": None, "precision": 6}),
        (postgres("timestamp", 2), "-infinity",
         {**dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "nanos")),
          "specialValue": "NEGATIVE_INFINITY", "precision": 2}),
        (postgres("timestamptz", 0), "infinity",
         {**dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "nanos", "offsetSeconds", "zoneId")),
          "specialValue": "POSITIVE_INFINITY", "precision": 0}),
        (postgres("interval"), "PT-0.5S",
         {**dict.fromkeys(PARTS, 0), "nanos": -500_000_000, "precision": 6}),
        (sqlserver("time", 7), "10:23:45.6789012",
         {"hour": 10, "minute": 23, "second": 45, "nanos": 678901200, "precision": 7}),
        (sqlserver("datetime"), "2018-07-13 13:23:45.780",
         {"year": 2018, "month": 7, "day": 13, "hour": 13, "minute": 23, "second": 45, "nanos": 780_000_000,
          "specialValue": None, "precision": 3}),
        (sqlserver("smalldatetime"), "2018-07-13 14:24:00",
         {"year": 2018, "month": 7, "day": 13, "hour": 14, "minute": 24, "second": 0, "nanos": 0,
          "specialValue": None, "precision": 0}),
        (sqlserver("datetimeoffset", 7), "9999-12-31 23:59:59.9999999 +14:00",
         {"year": 9999, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59, "nanos": 999_999_900,
          "offsetSeconds": 50_400, "zoneId": None, "specialValue": None, "precision": 7}),
        (db2("TIMESTAMP", 12), "2018-06-20-15.13.16.945104123999",
         {"year": 2018, "month": 6, "day": 20, "hour": 15, "minute": 13, "second": 16, "nanos": 945104123,
          "specialValue": None, "precision": 12}),
    ],
)  # fmt: skip
def test_values_at_the_edges(kind: ValueType, value: str, shown: dict[str, Any]) -> None:
    assert read(kind, value) == [shown]
    text = encode(converted(pa.array([value]), kind, "t.c"), kind.schema)[0].as_py()
    assert json.loads(text) == shown
    assert list(json.loads(text)) == list(shown)  # in this order


@pytest.mark.parametrize(
    ("name", "semantic", "fields"),
    [
        ("date", "StructuredDate", "year int32, month int8, day int8, specialValue string"),
        ("time", "StructuredTime", "hour int8, minute int8, second int8, nanos int32, precision int32"),
        ("timestamp", "StructuredTimestamp", "year int32, month int8, day int8, hour int8, minute int8, second int8, "
         "nanos int32, specialValue string, precision int32"),
        ("timetz", "StructuredZonedTime", "hour int8, minute int8, second int8, nanos int32, offsetSeconds int32, "
         "precision int32"),
        ("timestamptz", "StructuredZonedTimestamp", "year int32, month int8, day int8, hour int8, minute int8, "
         "second int8, nanos int32, offsetSeconds int32, zoneId string, specialValue string, precision int32"),
        ("interval", "StructuredDuration", "years int32, months int32, days int32, hours int32, minutes int32, "
         "seconds int64, nanos int32, precision int32"),
    ],
)  # fmt: skip
def test_schemas(name: str, semantic: str, fields: str) -> None:
    schema = postgres(name).schema
    assert (schema.type, schema.name, schema.version) == ("struct", f"io.debezium.time.{semantic}", 1)
    assert ", ".join(f"{each.name} {each.schema.type}" for each in schema.fields) == fields
    assert all(each.schema.optional for each in schema.fields)


@pytest.mark.parametrize("text", ["infinity", "-infinity", "PT2562047788H54.775807S"])
def test_an_interval_that_no_struct_holds_is_null_or_an_error(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read(postgres("interval"), "P1D", text)[1] is None
    assert "1 intervals without a structured form become null" in caplog.text
    with pytest.raises(DecodeError, match="has no structured form"):
        read(postgres("interval", event__converting__failure__handling__mode="fail"), text)


def test_arrays_have_structs_as_elements() -> None:
    properties = {"time.precision.mode": "structured", "compat.faults": "true"}
    kind = postgres_kind("date", properties=properties)
    array = value_type(PgType("_date", "date[]", element=PgType("date", "date")), -1, config(properties))
    assert array is not None
    assert array.schema.items == kind.schema.with_(optional=True)
    assert read(array, "{2018-06-20,NULL,infinity}") == [[*read(kind, "2018-06-20"), None, *read(kind, "infinity")]]


@pytest.mark.parametrize(
    ("kind", "zero"),
    [
        (postgres("date"), {"year": 1970, "month": 1, "day": 1, "specialValue": None}),
        (postgres("interval", 3), {**dict.fromkeys(PARTS, 0), "precision": 3}),
        (sqlserver("time", 7), {"hour": 0, "minute": 0, "second": 0, "nanos": 0, "precision": 7}),
        (db2("TIMESTAMP", 6), {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nanos": 0,
                               "specialValue": None, "precision": 6}),
    ],
)  # fmt: skip
def test_a_required_column_that_an_old_row_lacks_is_the_first_moment(kind: ValueType, zero: dict[str, Any]) -> None:
    assert json.loads(null_text(kind.schema)) == zero
    assert null_text(kind.schema.with_(optional=True)) == "null"


@pytest.mark.parametrize("default", [Default("'2018-06-20'", "2018-06-20"), Default("now()", is_function=True)])
def test_schemas_show_no_defaults(default: Default) -> None:
    assert shown_default(default, True, postgres("date")) is None
    assert shown_default(default, True, sqlserver("date")) is None
    assert shown_default(default, True, db2("DATE")) is None


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (postgres, ["date", "time", "timetz", "timestamp", "timestamptz", "interval"]),
        (sqlserver, ["date", "time", "datetime", "datetime2", "smalldatetime", "datetimeoffset"]),
        (db2, ["DATE", "TIME", "TIMESTAMP"]),
    ],
)
@pytest.mark.parametrize("more", [{"value__loss__handling__mode": "text"}, {"shape": "table"}])
def test_rows_of_native_types_have_what_they_have_in_other_modes(
    kind: Kind, names: list[str], more: dict[str, str]
) -> None:
    for name in names:
        found, plain = kind(name, 6, **more), kind(name, 6, mode="adaptive", **more)
        assert (found.schema, found.arrow, found.loses) == (plain.schema, plain.arrow, plain.loses)


def test_avro_reads_back_what_was_there() -> None:
    kinds = {name: postgres(name) for name in ("date", "time", "timetz", "timestamp", "timestamptz", "interval")}
    texts = {
        "date": ["2018-06-20", "infinity"],
        "time": ["24:00:00", "15:13:16.945104"],
        "timetz": ["24:00:00+05:30", "13:51:30.123789-02"],
        "timestamp": ["294276-12-31 23:59:59.999999", "0044-03-15 00:00:00 BC"],
        "timestamptz": ["2018-06-20 15:13:16.94+00", "-infinity"],
        "interval": ["P1Y2M3DT4H5M6.789S", None],
    }
    columns = [converted(pa.array(texts[name]), kind, name) for name, kind in kinds.items()]
    fields = tuple(Field(name, kind.schema.with_(optional=name == "interval")) for name, kind in kinds.items())
    schema = ConnectSchema("struct", name="t.Value", fields=fields)
    rows = pa.StructArray.from_arrays(columns, names=list(kinds))
    how = AvroSettings()
    parsed = fastavro.parse_schema(json.loads(schema_text(avro_schema(schema, how))))
    written = joined(datums(rows, schema, how), len(rows)).to_pylist()
    assert [fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in written] == rows.to_pylist()


def test_keys_that_are_dates_are_compared_by_their_values() -> None:
    kind = postgres("date")
    old = converted(pa.array(["2018-06-20", "2018-06-20", "infinity"]), kind, "t.c")
    new = converted(pa.array(["2018-06-20", "2018-06-21", "-infinity"]), kind, "t.c")
    assert same(old, new, kind.schema).tolist() == [True, False, False]
