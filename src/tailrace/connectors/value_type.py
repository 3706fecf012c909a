"""Describes what a source column becomes: its Connect schema, its Arrow type and the conversion.

A conversion takes a whole column in the form in which its connector reads it (for many types the text that the server
prints, as an Arrow string array) and raises pa.ArrowInvalid or DecodeError for a value that does not fit. `converted`
adds the column's name to such an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.options.events import EVENT_CONVERTING_FAILURE_HANDLING_MODE
from tailrace.config.options.filters import VALUE_LOSS_HANDLING_MODE
from tailrace.config.options.spark import SHAPE
from tailrace.connectors.lost_values import at
from tailrace.errors import DecodeError
from tailrace.model.masks import Masking
from tailrace.model.schema import ConnectSchema

Convert = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Binary:
    """How to read a column in the server's binary form.

    `select` is the expression to select ({} is the column). `convert` takes what the driver returns for it.
    """

    select: str
    convert: Convert


def as_is(values: pa.Array) -> pa.Array:
    """The values themselves, where the driver already returns the type that the event needs."""
    return values


# For integers, floats and booleans.
AS_IS = Binary("{}", as_is)


@dataclass(frozen=True, slots=True)
class ValueType:
    """What a source type becomes. `schema` is in its required form, without a default.

    `zero` is the JSON default of a required column whose default is a function; None: the schema shows no defaults of
    this type. `digits` is the number of fraction digits that the server prints of a decimal read as text. With
    `literals` the schema shows defaults that are literals and no others. `text` is the SQL expression that gives a
    column ({}) in the form that `convert` takes; `binary` is a cheaper way to the same values. `of_default` reads a
    default where `convert` would not. Without `placeholder` a large value that the log did not repeat is null.
    `masking` is a mask that `convert` leaves to the images. `loses` names what of a value is not kept, `configured`
    what is compared of a value that the configuration alters. `sql` is that of Column. `form` tells settings under
    which rows have other values than the source, or other texts of them.
    """

    schema: ConnectSchema
    arrow: pa.DataType
    convert: Convert
    zero: object = None
    _: KW_ONLY
    digits: int | None = None
    literals: bool = False
    text: str = "{}"
    binary: Binary | None = None
    of_default: Convert | None = None
    placeholder: bool = True
    masking: Masking | None = None
    loses: str | None = None
    configured: str | None = None
    sql: str | None = None
    form: str = field(default="", repr=False)


def converted(column: pa.Array, kind: ValueType, where: str, *, binary: bool = False) -> pa.Array:
    """The values of a column; with `binary` from its binary form, if the type has one.

    Raises DecodeError, naming the place, for text that is not UTF-8 and for values that do not fit.
    """
    try:
        with at(where):
            if kind.binary is not None and binary:
                return kind.binary.convert(column)
            if kind.arrow == pa.string():
                column.validate(full=True)
            return kind.convert(column)
    except (ValueError, ArithmeticError, DecodeError) as error:  # pa.ArrowInvalid is a ValueError
        raise DecodeError(
            f"a value cannot be read: {error}",
            where=where,
            remedy="report the type and value; to continue, exclude the column with column.exclude.list, or leave such "
            "rows out with event.processing.failure.handling.mode=warn",
        ) from error


def as_string(text: pa.Array) -> pa.Array:
    """Text as a plain string array."""
    return text if text.type == pa.string() else pc.cast(text, pa.string())


def text_type(
    name: str | None = None, zero: str | None = None, parameters: tuple[tuple[str, str], ...] = ()
) -> ValueType:
    """A type that stays text, with a semantic schema name or without one."""
    version = None if name is None else 1
    schema = ConnectSchema("string", name=name, version=version, parameters=parameters)
    return ValueType(schema, pa.string(), as_string, zero)


def cast_type(connect: str, arrow: pa.DataType, zero: object, binary: Binary | None = None) -> ValueType:
    """A number that Arrow itself reads from the column's form."""
    return ValueType(ConnectSchema(connect), arrow, lambda column: pc.cast(column, arrow), zero, binary=binary)


def keeps_all(config: Config) -> bool:
    """Whether a value that its schema cannot hold is kept as text, for a table that is to equal its source."""
    return config[VALUE_LOSS_HANDLING_MODE] == "text"


def is_native(config: Config) -> bool:
    """Whether rows become native types, so that their values need not have the form of an event."""
    return keeps_all(config) or config[SHAPE] == "table"


def is_strict(config: Config) -> bool:
    """Whether a value that its schema cannot hold is an error; otherwise it becomes null, with a warning."""
    return config[EVENT_CONVERTING_FAILURE_HANDLING_MODE] == "fail"
