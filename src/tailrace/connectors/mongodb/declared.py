"""Parses `document.columns`: the columns that are declared for collections, in Spark's DDL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailrace.errors import ConfigError

OPTION = "document.columns"
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z_][\w$]*)|(\d+)|([<>(),:]))")
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("BOOLEAN",), pa.bool_()),
    **dict.fromkeys(("TINYINT", "BYTE"), pa.int8()),
    **dict.fromkeys(("SMALLINT", "SHORT"), pa.int16()),
    **dict.fromkeys(("INT", "INTEGER"), pa.int32()),
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    **dict.fromkeys(("DOUBLE",), pa.float64()),
    **dict.fromkeys(("DATE",), pa.date32()),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), pa.timestamp("us", "UTC")),
    **dict.fromkeys(("TIMESTAMP_NTZ",), pa.timestamp("us")),
    **dict.fromkeys(("STRING",), pa.string()),
    **dict.fromkeys(("BINARY",), pa.binary()),
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")


@dataclass(frozen=True)
class Declaration:
    """The columns of the collections whose names (`database.collection`) match an expression."""

    collections: re.Pattern[str]
    fields: tuple[pa.Field, ...]


def parse_declarations(text: str | None) -> list[Declaration]:
    """The declarations in `expression: name TYPE, name TYPE; expression: ...`. Raises ConfigError."""
    declarations = []
    for entry in (text or "").split(";"):
        if not entry.strip():
            continue
        names, colon, columns = entry.partition(":")
        try:
            expression = re.compile(names.strip(), re.IGNORECASE)
        except re.error as error:
            raise _invalid(entry, f"{names.strip()} is no regular expression") from error
        if not colon:
            raise _invalid(entry, "no column is declared")
        declarations.append(Declaration(expression, _Parser(entry, columns).columns()))
    return declarations


def declared_fields(declarations: Sequence[Declaration], name: str) -> tuple[pa.Field, ...]:
    """The columns of a collection, by the first declaration that matches it; none if it has no declaration."""
    return next((each.fields for each in declarations if each.collections.fullmatch(name)), ())


def declaration(expression: str, fields: Sequence[pa.Field]) -> str:
    """The text of a declaration."""
    return f"{expression}: " + ", ".join(f"{_quoted(field.name)} {_ddl(field.type)}" for field in fields)


class _Parser:
    """Reads the columns of one entry."""

    def __init__(self, entry: str, columns: str) -> None:
        self._entry = entry
        self._tokens: list[str] = []
        at, columns = 0, columns.rstrip()
        while at < len(columns):
            token = _TOKEN.match(columns, at)
            if token is None:
                raise _invalid(entry, f"unexpected {columns[at:].strip()[:20]}")
            self._tokens.append(token.group().strip())
            at = token.end()

    def columns(self) -> tuple[pa.Field, ...]:
        """All columns, to the end of the text."""
        fields = self._fields(separator="")
        if self._tokens:
            raise _invalid(self._entry, f"unexpected {self._tokens[0]}")
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise _invalid(self._entry, "a name is declared twice")
        return tuple(fields)

    def _fields(self, separator: str) -> list[pa.Field]:
        fields = [self._field(separator)]
        while self._tokens[:1] == [","]:
            self._take(",")
            fields.append(self._field(separator))
        return fields

    def _field(self, separator: str) -> pa.Field:
        name = self._next("a name")
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if separator and self._tokens[:1] == [separator]:
            self._take(separator)
        return pa.field(name, self._type())

    def _type(self) -> pa.DataType:
        name = self._next("a type").upper()
        if name in _DECIMALS:
            return self._decimal()
        if name == "ARRAY":
            self._take("<")
            item = self._type()
            self._take(">")
            return pa.list_(item)
        if name == "STRUCT":
            self._take("<")
            fields = self._fields(":")
            self._take(">")
            return pa.struct(fields)
        if name not in _TYPES:
            raise _invalid(self._entry, f"{name} is no type for a field of a document")
        return _TYPES[name]

    def _decimal(self) -> pa.DataType:
        if self._tokens[:1] != ["("]:
            return pa.decimal128(10, 0)
        self._take("(")
        precision, scale = self._next("digits"), "0"
        if self._tokens[:1] == [","]:
            self._take(",")
            scale = self._next("digits")
        self._take(")")
        if not (precision.isdecimal() and scale.isdecimal() and int(scale) <= int(precision) and int(precision) <= 38):
            raise _invalid(self._entry, "a decimal has at most 38 digits")
        return pa.decimal128(int(precision), int(scale))

    def _next(self, what: str) -> str:
        if not self._tokens:
            raise _invalid(self._entry, f"{what} is expected at the end")
        return self._tokens.pop(0)

    def _take(self, token: str) -> None:
        next_token = self._next(token)
        if next_token != token:
            raise _invalid(self._entry, f"{token} is expected before {next_token}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _ddl(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"{_quoted(field.name)}: {_ddl(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"ARRAY<{_ddl(kind.value_type)}>"
    return next(name for name, declared in _TYPES.items() if declared == kind)


def _invalid(entry: str, why: str) -> ConfigError:
    return ConfigError(
        f"{entry.strip()}: {why}",
        where=OPTION,
        remedy=r"write shop\.orders: name STRING, total DECIMAL(10,2); shop\.stock: ...",
    )
