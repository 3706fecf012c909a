"""Column defaults as PostgreSQL prints their expressions (pg_get_expr)."""

from __future__ import annotations

import re

from tailrace.config.faults import NO_FAULTS, Fault, Faults
from tailrace.connectors.defaults import Default
from tailrace.connectors.postgres.types.pg_type import PgType

_LITERAL = re.compile(r"^\(?B?'((?:[^']|'')*)'(?:::[\w\s\".,()\[\]]+)?\)?$")
_NUMBER = re.compile(r"^\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w\s(),]+)?$")
_FUNCTION = re.compile(r"^\(?[A-Za-z0-9_.]+\(")
_NOW = ("current_timestamp", "current_time", "current_date", "localtime", "localtimestamp")
_BOOLEAN = {"true": "t", "false": "f"}


def parse_default(expression: str | None, pg: PgType, schema: str | None, faults: Faults = NO_FAULTS) -> Default | None:
    """What an expression is, for a column of that type and schema name. With `faults`: what the reference engine reads.

    It shows no defaults of domains, which is right, as their nulls are then shown as nulls. For a function it shows the
    type's zero in optional columns as well; of quoted text it reads up to the next quote.
    """
    if expression is None or pg.domain:
        return None
    if expression.startswith("NULL"):
        return Default(expression)
    if _FUNCTION.match(expression) or expression.lower() in _NOW:
        return Default(expression, is_function=True, even_optional=Fault.ZERO_FUNCTION_DEFAULTS in faults)
    literal = _literal_of_reference(expression, pg) if Fault.DEFAULTS_CUT_AT_QUOTE in faults else _literal(expression)
    if Fault.OUTERMOST_DEFAULTS in faults and literal in _OUTERMOST and pg.name in _CLOCKS:
        return Default(expression, shown=_OUTERMOST[literal].get((schema or "").rpartition(".")[2]))
    return Default(expression, literal)


def _literal(expression: str) -> str | None:
    if expression in _BOOLEAN:
        return _BOOLEAN[expression]
    quoted = _LITERAL.match(expression)
    if quoted:
        return quoted[1].replace("''", "'")
    number = _NUMBER.match(expression)
    return number[1] if number else None


# Java's parsers take a whole number or decimal, nothing in parentheses or with a cast.
_JAVA_NUMBERS = {
    "int2": re.compile(r"[-+]?\d+"),
    "int4": re.compile(r"[-+]?\d+"),
    "int8": re.compile(r"[-+]?\d+"),
    "numeric": re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"),
}
_CLOCKS = ("date", "time", "timestamp", "timestamptz")
# What the reference engine computes of Java's outermost dates and times, by the name of the schema. Where its
# arithmetic fails, the schema shows no default.
_OUTERMOST: dict[str | None, dict[str, object]] = {
    "infinity": {
        "Date": 169_560_311,
        "IsoDate": "+999999999-12-31Z",
        "MicroTimestamp": -9_223_372_036_853_775_810,
        "IsoTimestamp": "+999999999-12-31T23:59:59.999999999Z",
    },
    "-infinity": {
        "Date": -170_999_002,
        "IsoDate": "-999999999-01-01Z",
        "MicroTimestamp": -9_223_372_036_854_775_808,
        "IsoTimestamp": "-999999999-01-01T00:00:00Z",
    },
    "24:00:00": {
        "Time": 86_399_999,
        "MicroTime": 86_399_999_999,
        "NanoTime": 86_399_999_999_999,
        "IsoTime": "23:59:59.999999999Z",
    },
}


def _literal_of_reference(expression: str, pg: PgType) -> str | None:
    """The first quoted text up to the next quote, or else the whole expression; None if Java cannot read it."""
    if pg.labels and "." in pg.name:  # it takes what is before the dot for a schema
        return None
    if pg.labels:
        before, _, _ = expression.rpartition("::")
        return before[1:-1] if before[:1] == before[-1:] == "'" else None
    match = re.search("'(.*?)'", expression)
    if match is None and "'" in expression:
        return None
    text = expression if match is None else match[1]
    if pg.name == "bool":
        return "t" if text.lower() == "true" else "f"
    if pg.name in ("bit", "varbit"):
        return re.sub("[^1]", "0", text)
    if pg.name in _JAVA_NUMBERS and not _JAVA_NUMBERS[pg.name].fullmatch(text):
        return None
    return text
