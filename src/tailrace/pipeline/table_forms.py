"""What a pipeline file may say of how Delta tables are stored: their properties and partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from tailrace.sinks.replica.form import TAKEN


def scalar(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    raise ValueError("should be text, a number, true or false")


Scalar = Annotated[str | int | float | bool, BeforeValidator(scalar)]


def _property(value: object) -> object:
    """Delta's properties are texts; YAML's true and false are those of Delta in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(scalar(value))


def _properties(given: dict[str, str]) -> dict[str, str]:
    for name in given:
        if name.startswith("delta.") and name not in TAKEN:
            raise ValueError(f"{name} is not one that a replica may have; of Delta's it takes {', '.join(TAKEN)}")
        if name.startswith("tailrace."):
            raise ValueError(f"{name}: names that begin with `tailrace.` are the replica's own")
    return given


def _partitions(value: object) -> object:
    """A list of columns is that of all tables; names and expressions are looked at before any table is made."""
    given = value if isinstance(value, Mapping) else {".*": value}
    columns_by_table: dict[str, tuple[str, ...]] = {}
    for name, columns in given.items():
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, list) or not names or not all(isinstance(each, str) and each for each in names):
            raise ValueError(f"{name}: should be a column, or a list of columns")
        if len({*names}) < len(names):
            raise ValueError(f"{name}: a column is named twice")
        try:
            re.compile(str(name))
        except re.error as error:
            raise ValueError(f"{name} is no regular expression: {error}") from error
        columns_by_table[str(name)] = tuple(names)
    return columns_by_table


TableProperties = Annotated[dict[str, Annotated[str, BeforeValidator(_property)]], AfterValidator(_properties)]
PartitionBy = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_partitions)]
