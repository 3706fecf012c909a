"""Writes names and values in Db2's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tailrace.config import Config
from tailrace.connectors.db2.options import CDC_CONTROL_SCHEMA
from tailrace.model.table import TableId

# What SQL takes without quotes, and folds to upper case.
_ORDINARY = re.compile(r"[A-Za-z][A-Za-z0-9_$#@]*", re.ASCII)


def folded(text: str) -> str:
    """A name of a property as the catalog has it: as SQL reads it, so in upper case unless it has other characters.

    The reference engine writes the schemas of the control tables and of the change tables without quotes.
    """
    return text.upper() if _ORDINARY.fullmatch(text) else text


def control_schema(config: Config) -> str:
    """The schema of the control tables."""
    return folded(config[CDC_CONTROL_SCHEMA])


def name(text: str) -> str:
    """A name in quotes, which keep its case."""
    return '"' + text.replace('"', '""') + '"'


def names(texts: Iterable[str]) -> str:
    """Names, separated by commas."""
    return ", ".join(map(name, texts))


def qualified(schema: str, table: str) -> str:
    """A table with its schema."""
    return f"{name(schema)}.{name(table)}"


def table(id_: TableId) -> str:
    """A table with its schema."""
    return qualified(id_.schema, id_.table)


def text(value: str) -> str:
    """A literal."""
    return "'" + value.replace("'", "''") + "'"
