"""User-supplied converters (`converters`): Python entry points that give columns another schema and other values.

An entry point of the group `tailrace.converters` is a factory: called with the settings `<name>.*` (a dict of texts
without that prefix), it returns a function that is called for each column and returns a Conversion, or None for
the built-in one. Debezium's documentation, "Custom converters", has the same in Java.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.entrypoints import converters
from tailrace.errors import ConfigError, DecodeError
from tailrace.model.schema import ConnectSchema


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column that a converter is called for; `default` is the expression of its default."""

    table: str
    name: str
    type_name: str
    length: int
    _: KW_ONLY
    scale: int
    optional: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The schema of a column, the Arrow type that holds its values, and how to make them.

    `convert` takes what the server prints of each value, as an Arrow string array (null where there is none), and gives
    an array of type `arrow` and of the same length; a ValueError it raises is a value that cannot be read.
    """

    schema: ConnectSchema
    arrow: pa.DataType
    convert: Callable[[pa.Array], pa.Array]


class Converters:
    """The converters of a configuration, asked in their order."""

    def __init__(self, config: Config) -> None:
        self._given = config.given
        self._made = converters(config)

    def settings(self, name: str) -> list[tuple[str, str]]:
        """The settings of a converter by their whole names, secrets included."""
        return sorted((key, text) for key, text in self._given.items() if key.startswith(f"{name}."))

    def of(self, column: SourceColumn) -> tuple[str, Conversion] | None:
        """The first answer, and whose it is. Raises ConfigError for one that is no Conversion."""
        for name, ask in self._made:
            answer = ask(column)
            if isinstance(answer, Conversion):
                return name, Conversion(answer.schema, answer.arrow, _checked(name, answer))
            if answer is not None:
                what = f"the converter gave {type(answer).__name__} for column {column.table}.{column.name}"
                raise ConfigError(what, where=f"{name}.type", remedy="return a tailrace Conversion, or None")
        return None


def _checked(name: str, conversion: Conversion) -> Callable[[pa.Array], pa.Array]:
    """The conversion, whose faults become errors that name the converter."""

    def convert(text: pa.Array) -> pa.Array:
        try:
            values: Any = conversion.convert(text.cast(pa.string()))
        except DecodeError:
            raise
        except Exception as error:  # whatever it is, it is the converter's
            raise DecodeError(f"converter {name}: {type(error).__name__}: {error}") from error
        if not isinstance(values, pa.Array) or values.type != conversion.arrow or len(values) != len(text):
            got = f"{values.type} of {len(values)}" if isinstance(values, pa.Array) else type(values).__name__
            raise DecodeError(f"converter {name} gave {got} values, not {conversion.arrow} of {len(text)}")
        return values

    return convert
