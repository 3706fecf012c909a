"""The types of random columns, with literals for values and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random


@dataclass(frozen=True)
class Type:
    """A type as it is declared.

    `literals` are SQL expressions of its values, the extremes among them; `odd` are values that the engine cannot send
    in a required column. `shapes` name what else holds:

    - `default`: the literals can be defaults;
    - `element`: there are arrays of it;
    - `required`: the elements of its arrays are required in the engine, so that an array has no NULL;
    - `nullable`: the engine turns some values into null, so that a column is never NOT NULL.
    """

    sql: str
    literals: Sequence[str]
    shapes: frozenset[str] = frozenset({"default", "element"})
    odd: Sequence[str] = ()

    def value(self, random: Random) -> str:
        """A literal, not NULL."""
        return random.choice(self.literals)


def _quoted(*texts: str) -> list[str]:
    return ["'" + text.replace("'", "''") + "'" for text in texts]


_PLAIN: frozenset[str] = frozenset()
_USUAL = frozenset({"default", "element"})
_DEFAULT = frozenset({"default"})

INTEGER = Type("integer", ["0", "1", "-1", "42", "2147483647", "'-2147483648'"])
TEXT = Type(
    "text",
    _quoted("", "a", "it's", 'say "hi"', "ünï🎉", "tab\there", "line\nbreak", "back\\slash", "NULL", "x" * 40),
)

NUMBERS = (
    Type("smallint", ["0", "1", "'-32768'", "32767", "7"]),
    INTEGER,
    Type("bigint", ["0", "'-9223372036854775808'", "9223372036854775807", "5", "12345678901"]),
    Type("real", ["0", "1.5", "'-0.25'", "1024", "'NaN'", "'Infinity'", "'-Infinity'", "100000000"]),
    Type(
        "double precision", ["0", "1.5", "'-2.75'", "1e300", "'1e-300'", "'NaN'", "'Infinity'", "123456789.123", "'-0'"]
    ),
    Type(
        "numeric",
        ["0", "1.10", "'-123.4500'", "100", "1e20", "0.000001", "12345678901234567890.123456789"],
        _USUAL,
        _quoted("NaN", "Infinity", "-Infinity"),
    ),
    Type("numeric(10,2)", ["0", "1.1", "'-99999999.99'", "12345.67", "3"], _USUAL, _quoted("NaN")),
    Type("numeric(5)", ["0", "1", "'-99999'", "12345"]),
    Type("numeric(38,10)", ["0", "1234567890123456789012345678.0123456789", "'-0.0000000001'"]),
    Type("numeric(3,3)", ["0", "0.999", "'-0.001'"]),
    Type("decimal(18,4)", ["0", "1.1", "'-1000.0001'"]),
    Type("money", ["'0'", "'12.34'", "'-1234567.89'", "'92233720368547758.07'"], _DEFAULT),
    Type("boolean", ["true", "false"]),
    Type("oid", ["0", "1", "'4294967295'"]),
)

TEXTS = (
    TEXT,
    Type("varchar", _quoted("", "abc", "ß", "it's", "a,b")),
    Type("varchar(20)", _quoted("", "abc", "twenty characters...", "ü")),
    Type("character varying(255)", _quoted("", "some words", "NULL")),
    Type("char", _quoted("x", "", "é")),
    Type("char(5)", _quoted("ab", "abcde", "")),
    Type("bpchar", _quoted("ab", "  ", "trailing  "), _DEFAULT),
)

BINARIES = (
    Type("bytea", [r"'\x'", r"'\x00ff10'", r"'\xdeadbeef'", r"'\x3b'"], _DEFAULT),
    Type("bit(1)", ["B'0'", "B'1'"], _DEFAULT),
    Type("bit", ["B'0'", "B'1'"], _DEFAULT),
    Type("bit(8)", ["B'00000000'", "B'10000001'", "B'00001111'"]),
    Type("bit(12)", ["B'000000000000'", "B'100000000001'"]),
    Type("varbit(10)", ["B''", "B'1'", "B'1010101010'"], _DEFAULT),
    Type("varbit", ["B''", "B'1'", "B'10101010101010101'"], _DEFAULT),
)

TIMES = (
    Type("date", _quoted("1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31")),
    Type("time", _quoted("00:00:00", "23:59:59.999999", "12:34:56.789", "01:02:03"), _USUAL, _quoted("24:00:00")),
    Type("time(0)", _quoted("00:00:00", "23:59:59")),
    Type("time(3)", _quoted("00:00:00", "23:59:59.999")),
    Type("timetz", _quoted("00:00:00+00", "12:34:56.789012+02", "23:59:59-11:30")),
    Type("timetz(3)", _quoted("00:00:00+00", "12:34:56.789+05:45")),
    Type(
        "timestamp",
        _quoted("1970-01-01 00:00:00", "2024-02-29 12:34:56.789012", "0001-01-01 00:00:00", "9999-12-31 23:59:59"),
        _USUAL,
        _quoted("infinity", "-infinity", "0044-03-15 12:00:00 BC"),
    ),
    Type("timestamp(0)", _quoted("1970-01-01 00:00:00", "1969-12-31 23:59:59", "2024-06-01 01:02:03")),
    Type("timestamp(3)", _quoted("1970-01-01 00:00:00.001", "1969-12-31 23:59:59.999")),
    Type("timestamp(6)", _quoted("1970-01-01 00:00:00.000001", "1582-10-04 00:00:00")),
    Type(
        "timestamptz",
        _quoted("1970-01-01 00:00:00+00", "2024-02-29 12:34:56.789012+02", "1969-12-31 23:59:59.5+00"),
        _USUAL,
        _quoted("infinity", "-infinity", "0044-03-15 12:00:00+00 BC"),
    ),
    Type("timestamptz(0)", _quoted("1970-01-01 00:00:00+00", "2024-06-01 01:02:03-08")),
    Type("timestamptz(3)", _quoted("2024-06-01 01:02:03.456+00", "0001-01-01 00:00:00+00")),
    Type("interval", _quoted("0", "1 day 02:03:04.5", "-1 year 2 months", "00:00:00.000001", "100 years"), _DEFAULT),
    Type("interval(3)", _quoted("1.234 seconds", "3 mons"), _DEFAULT),
    Type("interval day to second", _quoted("4 days 01:00:00"), _DEFAULT),
)

OTHERS = (
    Type("uuid", _quoted("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    Type("json", _quoted("{}", '{"a": 1, "b":[1,2]}', "null", '"text"', '{"u": "ü"}')),
    Type("jsonb", _quoted("{}", '{"b": 1, "a": [1, 2.50]}', "null", '"text"')),
    Type("inet", _quoted("127.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32")),
    Type("cidr", _quoted("10.0.0.0/8", "2001:db8::/32")),
    Type("macaddr", _quoted("08:00:2b:01:02:03")),
    Type("macaddr8", _quoted("08:00:2b:01:02:03:04:05"), _DEFAULT),
    Type("point", _quoted("(0,0)", "(1.5,-2)"), _DEFAULT),
    Type("int4range", _quoted("[1,5)", "empty", "(,)")),
    Type("int8range", _quoted("[1,5)", "[10,)")),
    Type("numrange", _quoted("[1.5,2.50)", "empty")),
    Type("daterange", _quoted("[2024-01-01,2024-02-01)", "(,2024-01-01)")),
    Type("tsrange", _quoted('["2024-01-01 00:00:00","2024-01-02 12:00:00.5")')),
    Type("tstzrange", _quoted('["2024-01-01 00:00:00+00",)')),
    Type("tsvector", _quoted("'a' 'b':2A", "the quick fox"), _PLAIN),
    Type("tsquery", _quoted("a & b"), _PLAIN),
    Type("int4multirange", _quoted("{[1,5)}"), _PLAIN),
    Type("box", _quoted("(1,2),(0,0)"), _PLAIN),
    Type("circle", _quoted("<(1,2),3>"), _PLAIN),
    Type("line", _quoted("{1,2,3}"), _PLAIN),
    Type("path", _quoted("[(0,0),(1,1)]"), _PLAIN),
    Type("pg_lsn", _quoted("0/16B3748"), _PLAIN),
    Type("xid", _quoted("7"), _PLAIN),
    Type("vector(3)", _quoted("[1,2.5,-3]"), _PLAIN),
    Type("halfvec(2)", _quoted("[1,2]"), _PLAIN),
    Type("sparsevec(5)", _quoted("{1:1,3:2}/5"), frozenset({"nullable"})),
)

GROUPS = (NUMBERS, TEXTS, BINARIES, TIMES, OTHERS)


def random_type(random: Random) -> Type:
    """A type, an array of one in every sixth case."""
    found = random.choice(random.choice(GROUPS))
    return array_of(found) if "element" in found.shapes and random.random() < 0.16 else found


def within_nanoseconds(given: Type) -> Type:
    """The type without values that 64 bits of nanoseconds do not hold."""
    if given.sql.startswith("date"):
        return given
    far = ("0001-01-01", "9999-12-31", "1582-", "infinity", "BC")
    kept = [literal for literal in given.literals if not any(part in literal for part in far)]
    return replace(given, literals=kept) if kept else given


def array_of(element: Type) -> Type:
    """The array of a type."""
    one, two = element.literals[0], element.literals[-1]
    name = f"{element.sql}[]"
    literals = [f"ARRAY[{one}, {two}]::{name}", f"'{{}}'::{name}"]
    if "required" not in element.shapes:  # the engine cannot send a required array with a null element of these
        literals.append(f"ARRAY[{two}, NULL]::{name}")
    return Type(name, literals, _PLAIN if element.sql in ("integer", "bigint", "text") else frozenset({"nullable"}))


def large(random: Random) -> Type:
    """A type with values so large that the table does not hold them itself."""
    words = "SELECT string_agg(md5(i::text), {}) FROM generate_series({}, {}) i"
    start = random.randrange(1000)
    text = f"({words.format(repr(''), start, start + 200)})"
    more = f"({words.format(repr(' '), start, start + 150)})"
    number = f"(SELECT array_agg(i * 7919) FROM generate_series({start}, {start + 1200}) i)"
    return random.choice(
        (
            Type("text", [text, more, "'small'"], _PLAIN),
            Type("varchar(9000)", [text, "'small'"], _PLAIN),
            Type("json", [f"to_json({text})", "'1'"], _PLAIN),
            Type("jsonb", [f"to_jsonb({text})", "'1'"], _PLAIN),
            Type("bytea", [f"decode({text}, 'hex')", r"'\x01'"], _PLAIN),
            Type("bigint[]", [f"{number}::bigint[]", "'{}'"], _PLAIN),
            Type("integer[]", [f"{number}::integer[]", "'{}'"], _PLAIN),
            Type("text[]", [f"string_to_array({more}, ' ')", "'{}'"], _PLAIN),
            Type("numeric", ["(repeat('123456789', 600) || '.5')::numeric", "1"], _PLAIN),
        )
    )
