"""Decides which default a column's schema shows.

As in Debezium: a literal is the schema's default, in the form the JSON converter prints. For a function the schema has
the type's zero in a required column. In an optional one it has no default: the converter would print it for a null.
NULL and any other expression are no default.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation

import pyarrow as pa

from tailrace.connectors.value_type import ValueType
from tailrace.errors import DecodeError
from tailrace.model.text.json import encode

log = logging.getLogger(__name__)

# More digits than a declared decimal can have. A default that would be rounded is not shown.
_EXACT = Context(prec=2000, traps=[Inexact, InvalidOperation])
# An enum shows literals, and nothing for a function.
_ENUM = "io.debezium.data.Enum"


@dataclass(frozen=True, slots=True)
class Default:
    """A column's default. `expression` is the catalog's text.

    `literal` is its value as text that the column's conversion reads, None for an expression that is no literal.
    `shown` is the JSON form of one that the conversion does not read. With `even_optional` the zero for a function is
    shown in an optional column, too. With `as_written` a number that is shown as text has the digits of the expression,
    not those of the column.
    """

    expression: str
    literal: str | None = None
    is_function: bool = False
    even_optional: bool = False
    shown: object = None
    as_written: bool = False


def shown_default(default: Default | None, required: bool, kind: ValueType) -> object:
    """The JSON form of a default, None if the schema shows none."""
    is_shown = kind.zero is not None or kind.literals or kind.schema.name == _ENUM
    if default is None or not is_shown:
        return None
    if default.is_function:
        return kind.zero if (required or default.even_optional) and not kind.literals else None
    text = default.literal
    if text is None:
        return default.shown
    try:
        if kind.digits is not None:
            number = Decimal(text)
            if not (default.as_written and kind.schema.type == "string"):
                number = number.quantize(Decimal(1).scaleb(-kind.digits), context=_EXACT)
            text = format(number, "f")
        value = (kind.of_default or kind.convert)(pa.array([text], pa.string()))
        if value.null_count:  # the type cannot hold it, such as the year 1 in nanoseconds
            return None
        return json.loads(encode(value, kind.schema)[0].as_py())
    except (pa.ArrowInvalid, ArithmeticError, DecodeError, ValueError) as error:
        said = (default.expression, kind.schema.type, error)
        log.warning("default %s cannot be read as %s (%s); the schema has none", *said)
        return None
