"""The types: how each is declared and filled, what the server is asked about a value, and what a value becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import hypothesis.strategies as st

from tests.types import literals, models
from tests.types.literals import Literals
from tests.types.models import Model

PRINTED = "format('%s', c)"
# By days and time of the day, for the server rounds extract(epoch) of the last years.
EPOCH = (
    "CASE WHEN isfinite(c) THEN ((c::date - date '1970-01-01') * 86400000000::numeric "
    "+ extract(epoch FROM c::time) * 1000000)::numeric(40, 0)::text ELSE c::text END"
)
CLOCK = "(extract(epoch FROM c) * 1000000)::numeric(40, 0)::text"
PARTS = (
    "CASE WHEN isfinite(c) THEN concat_ws(' ', extract(year FROM c), extract(month FROM c), extract(day FROM c), "
    "extract(hour FROM c), extract(minute FROM c), extract(second FROM c)) ELSE c::text END"
)

# The ways to read that change what a value becomes. A case says for which it has a model.
MODES: dict[str, dict[str, str]] = {
    "default": {"include.unknown.datatypes": "true"},
    "texts": {
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "interval.handling.mode": "string",
        "binary.handling.mode": "hex",
    },
    "approximate": {
        "decimal.handling.mode": "double",
        "time.precision.mode": "connect",
        "binary.handling.mode": "base64",
    },
    "adaptive_microseconds": {
        "time.precision.mode": "adaptive_time_microseconds",
        "binary.handling.mode": "base64-url-safe",
    },
    "microseconds": {"time.precision.mode": "microseconds"},
    "nanoseconds": {"time.precision.mode": "nanoseconds"},
    "faults": {"compat.faults": "true"},
}


@dataclass(frozen=True)
class Case:
    """A column type. `asked` is SQL over a column c, whose text the models of the modes turn into the value."""

    type: str
    values: Literals
    models: dict[str, Model]
    asked: str = PRINTED

    @property
    def table(self) -> str:
        """The type's name as a name of a table."""
        return "of_" + "".join(letter if letter.isalnum() else "_" for letter in self.type.replace("[]", " array"))


def plain(type_: str, values: Literals, model: Model = str, asked: str = PRINTED, **others: Model) -> Case:
    """A case with a model for the default mode, and for others if they are told."""
    return Case(type_, values, {"default": model, **others}, asked)


def array(scalar: Case, faults: Model | None = None) -> Case:
    """An array of a type: the server is asked about each element, and the list is made of what it says."""
    element = f"CASE WHEN c IS NULL THEN NULL ELSE {scalar.asked} END"
    asked = f"coalesce((SELECT json_agg({element} ORDER BY n) FROM unnest(c) WITH ORDINALITY AS u (c, n)), '[]')::text"

    def each(model: Model) -> Model:
        return lambda shown: [None if item is None else model(item) for item in json.loads(shown)]

    of = {mode: each(model) for mode, model in scalar.models.items() if mode in ("default", "texts")}
    if faults is not None:
        of["faults"] = faults if faults is models.nothing else each(faults)
    return Case(f"{scalar.type}[]", st.lists(st.none() | scalar.values, max_size=4), of, asked)


def numeric(precision: int, scale: int, precise: Callable[[int], Model] = models.exact) -> Case:
    return plain(
        f"numeric({precision},{scale})",
        literals.decimals(precision, scale),
        precise(scale),
        texts=models.java_name,
        approximate=float,
    )


def timestamp(digits: int | None) -> Case:
    coarse = models.micros if digits is None else models.millis
    return Case(
        "timestamp" if digits is None else f"timestamp({digits})",
        literals.timestamps(),
        {
            "default": coarse,
            "texts": models.iso_timestamp,
            "approximate": models.millis,
            "adaptive_microseconds": coarse,
            "microseconds": models.micros,
        },
        EPOCH,
    )


def time(digits: int | None) -> Case:
    def millis(shown: str) -> int:
        return int(shown) // 1000

    return Case(
        "time" if digits is None else f"time({digits})",
        literals.times(),
        {
            "default": int if digits is None else millis,
            "texts": models.iso_time,
            "approximate": millis,
            "adaptive_microseconds": int,
            "microseconds": int,
            "nanoseconds": lambda shown: int(shown) * 1000,
        },
        CLOCK,
    )


BYTEA = plain(
    "bytea",
    literals.bytea(),
    bytes.fromhex,
    "encode(c, 'hex')",
    texts=str,
    approximate=models.standard,
    adaptive_microseconds=models.url_safe,
)
DATE = Case(
    "date",
    literals.dates(),
    {
        "default": models.days,
        "texts": models.iso_date,
        **dict.fromkeys(("approximate", "adaptive_microseconds", "microseconds", "nanoseconds"), models.days),
    },
    "CASE WHEN isfinite(c) THEN (c - date '1970-01-01')::text ELSE c::text END",
)
TIMETZ = plain(
    "timetz", literals.zoned_times(), models.zoned_time, f"{CLOCK} || '|' || format('%s', c)", texts=models.zoned_time
)
INT4 = plain("int4", literals.integers(32), int)
BOOL = plain("bool", st.sampled_from(["true", "false"]), lambda shown: shown == "t")
FLOAT8 = plain("float8", literals.doubles(64), models.float8, "encode(float8send(c), 'hex')")
AMOUNT = plain("amount", literals.decimals(6, 2), models.exact(2), texts=models.java_name, approximate=float)
TEXT = plain("text", literals.TEXT)
CHAR = plain("char(5)", st.text("ab é\U0001f600", max_size=5))
UUID = plain("uuid", st.uuids().map(str))
INET = plain("inet", st.builds("{}/{}".format, st.ip_addresses(), st.integers(0, 32)) | st.ip_addresses().map(str))
CIDR = plain(
    "cidr",
    st.integers(0, 2**32 - 1).map(lambda number: f"{number >> 24}.{number >> 16 & 255}.0.0/{16 + number % 17}"),
)
MACADDR = plain("macaddr", st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":")))
MACADDR8 = plain("macaddr8", st.binary(min_size=8, max_size=8).map(lambda raw: raw.hex(":")))
MOOD = plain("mood", st.sampled_from(["sad", "it's, ok", 'quo"te\\', "NULL"]))
INT4RANGE = plain("int4range", literals.ranges(st.integers(-(2**31), 2**31 - 2)))
BIT9 = plain("bit(9)", literals.bit_strings(9, 9), models.bits)
BIT1 = plain("bit(1)", literals.bit_strings(1, 1), lambda shown: shown == "1")
JSONB = plain("jsonb", literals.jsons(False))
TIMESTAMPTZ = plain(
    "timestamptz",
    literals.timestamps(zone="-02"),
    models.zoned(6),
    EPOCH,
    texts=models.zoned(6),
    nanoseconds=models.zoned(6),
)
ANY_NUMERIC = plain("numeric", literals.any_numeric(), models.variable, texts=models.java_name, approximate=float)
TSVECTOR = plain("tsvector", st.lists(st.text("abcé", min_size=1, max_size=4), max_size=6).map(" ".join))
VECTOR = plain("vector", literals.vectors(32, 2.0**100), models.vector)

SCALARS = [
    *(
        BOOL,
        INT4,
        BYTEA,
        DATE,
        TIMETZ,
        FLOAT8,
        AMOUNT,
        TEXT,
        CHAR,
        UUID,
        INET,
        CIDR,
        MACADDR,
        MACADDR8,
        MOOD,
        INT4RANGE,
    ),
    *(BIT9, BIT1, JSONB, TIMESTAMPTZ, ANY_NUMERIC, TSVECTOR),
    # No more than 18 digits, which are read together.
    plain("short", literals.decimals(17, 6, special=("0",)), models.variable, texts=models.java_name),
    plain("int2", literals.integers(16), int),
    plain("int8", literals.integers(64), int),
    plain("oid", st.integers(0, 2**32 - 1).map(str), int),
    plain("float4", literals.doubles(32), models.float4, "encode(float4send(c), 'hex')"),
    numeric(10, 2),
    numeric(38, 10),
    numeric(60, 30),
    numeric(76, 76),
    numeric(3, 5),
    numeric(5, -2),
    numeric(5, 60),
    numeric(200, 5, models.unscaled),
    numeric(1000, 1000, models.unscaled),
    numeric(1000, -1000, models.unscaled),
    plain(
        "money",
        literals.money(),
        models.exact(2),
        "c::numeric::text",
        texts=str,
        approximate=float,
    ),
    plain("varchar(20)", st.text("ab\\\t 'é\U0001f600", max_size=20)),
    Case('"char"', st.characters(min_codepoint=1, max_codepoint=127), {"default": str}),
    # With the reference's faults a snapshot has the text and the log has none: a recording shows that.
    plain("name", st.text("aé\\ ", max_size=30)),
    plain("json", literals.jsons(True) | literals.jsons(False)),
    plain("bit(70)", literals.bit_strings(70, 70), models.bits),
    plain("varbit", literals.bit_strings(0, 100), models.bits),
    plain("varbit(1)", st.sampled_from(["0", "1"]), lambda shown: shown == "1"),
    plain("varbit(33)", literals.bit_strings(0, 33), models.bits),
    *(time(digits) for digits in (None, 0, 3)),
    *(timestamp(digits) for digits in (None, 0, 3)),
    plain("timestamptz(0)", literals.timestamps(), models.zoned(0), EPOCH),
    plain("timestamptz(3)", literals.timestamps(), models.zoned(3), EPOCH),
    Case("timestamp(6)", literals.near_timestamps(), {"nanoseconds": models.nanos}, EPOCH),
    plain("interval", literals.intervals(), models.duration, PARTS, texts=models.iso_duration),
    plain("int8range", literals.ranges(st.integers(-(2**63), 2**63 - 2))),
    plain("numrange", literals.ranges(literals.decimals(20, 5, special=("0",)))),
    plain("daterange", literals.ranges(literals.bounds())),
    plain("tsrange", literals.ranges(literals.timestamps())),
    plain("tstzrange", literals.ranges(literals.timestamps(zone="-02"))),
    plain("point", literals.points(), models.point, "encode(point_send(c), 'hex')"),
    plain("pg_lsn", st.builds("{:X}/{:X}".format, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), str.encode),
    plain("circle", st.builds("<({!r},1),{}>".format, st.floats(-1e300, 1e300), st.integers(0, 9)), str.encode),
    VECTOR,
    plain("halfvec", literals.vectors(16, 65_504), models.half_vector),
    plain("sparsevec", literals.sparse_vectors(), models.sparse_vector),
]
ARRAYS = [
    array(scalar)
    for scalar in (
        *(BOOL, INT4, BYTEA, DATE, FLOAT8, AMOUNT, TEXT, CHAR, UUID, INET, CIDR, MACADDR, MACADDR8, MOOD, INT4RANGE),
        *(BIT1, JSONB, TIMESTAMPTZ, ANY_NUMERIC, TSVECTOR, VECTOR, numeric(10, 2), timestamp(3)),
    )
]
ARRAYS += [
    array(time(None), models.time_in_array),
    array(TIMETZ, models.cut_zoned_time),
    array(BIT9, models.nothing),
]
CASES = [*SCALARS, *ARRAYS]
