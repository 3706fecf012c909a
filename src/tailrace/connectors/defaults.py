"""Decides which default a column's schema shows.

As in Debezium: a literal is the schema's default, in the form the JSON converter prints. For a function the schema has
the type's zero in a required column and no default in an optional one. NULL and any other expression are no default.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from tailrace.connectors.value_type import ValueType
from tailrace.errors import DecodeError
from tailrace.events.encode.json import encode

log = logging.getLogger(__name__)

# An enum shows literals, and nothing for a function.
_ENUM = "io.debezium.data.Enum"


@dataclass(frozen=True, slots=True)
class Default:
    """A column's default. `expression` is the catalog's text.

    `literal` is its value as text that the column's conversion reads, None for an expression that is no literal.
    """

    expression: str
    literal: str | None = None
    is_function: bool = False


def shown_default(default: Default | None, required: bool, kind: ValueType) -> object:
    """The JSON form of a default, None if the schema shows none."""
    is_shown = kind.zero is not None or kind.literals or kind.schema.name == _ENUM
    if default is None or not is_shown:
        return None
    if default.is_function:
        return kind.zero if required and not kind.literals else None
    text = default.literal
    if text is None:
        return None
    try:
        if kind.digits is not None and kind.digits > 0:
            text = format(Decimal(text).quantize(Decimal(1).scaleb(-kind.digits)), "f")
        value = kind.convert(pa.array([text], pa.string()))
        return json.loads(encode(value, kind.schema)[0].as_py())
    except (pa.ArrowInvalid, ArithmeticError, DecodeError, ValueError) as error:
        said = (default.expression, kind.schema.type, error)
        log.warning("default %s cannot be read as %s (%s); the schema has none", *said)
        return None
