"""Builds the captured columns of a table: applies filters, key, masks, converters and defaults."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import TableFilter, key_columns
from tailrace.config.masks import ColumnMasks, OutOfRange, Propagate
from tailrace.config.options.events import INCLUDE_SCHEMA_COMMENTS, UNAVAILABLE_VALUE_PLACEHOLDER
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.column_info import ColumnInfo
from tailrace.connectors.converters import Converters, SourceColumn
from tailrace.connectors.defaults import shown_default
from tailrace.connectors.masking import altered, check_key
from tailrace.connectors.value_type import ValueType, converted, keeps_all
from tailrace.errors import DecodeError
from tailrace.model.masked import applied
from tailrace.model.table import Column, TableId, TableSchema

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CapturedTable:
    """A TableSchema and how to convert each of its columns.

    `is_alone`: rows of other tables that a query of the table would give as well are not read with it. `absent` are
    columns that the log does not have, `left_out` those whose type has no mapping, `excluded` those that the lists
    leave out.
    """

    schema: TableSchema
    types: tuple[ValueType, ...]
    is_alone: bool = False
    absent: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@cache
def _tell_lossy_key(table: TableId, column: str, loses: str) -> None:
    """Log once what a key does not tell."""
    log.warning(
        "%s: a replica keeps the key column %s without %s, so rows whose keys differ in that alone are one row there",
        *(table, column, loses),
    )


class ColumnRules:
    """The column rules of a configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._filter = TableFilter.from_config(config)
        self._masks = ColumnMasks.from_config(config)
        self._out_of_range = OutOfRange.from_config(config)
        self._converters = Converters(config)
        self._comments = config[INCLUDE_SCHEMA_COMMENTS]
        self._faults = config[COMPAT_FAULTS]

    def captured(
        self,
        table: TableId,
        columns: Sequence[ColumnInfo],
        key: Sequence[str],
        identity: Sequence[str],
        *,
        unique_at_commit: bool = False,
    ) -> CapturedTable | None:
        """A table by its columns, in their order in the database; None, with a warning, if none is captured.

        `key` is the key in the database, which message.key.columns overrides; `identity` names the columns of an old
        row image. `unique_at_commit`: see TableSchema.
        """
        names = [column.name for column in columns]
        key = key_columns(self._config, table, names) or key
        shown = set(self._filter.columns(table, names))
        schemas, types, left_out = [], [], []
        old_key = identity if len(identity) < len(columns) else ()
        # Key columns that are excluded from values come last, see TableSchema.
        for column in sorted(columns, key=lambda column: column.name not in shown):
            wanted = column.name in shown or column.name in key
            if column.exact is not None and column.name in (*key, *old_key) and keeps_all(self._config):
                column = replace(column, value=column.exact, default=None)
            kind = self._value_type(table, column, column.name in key) if wanted else None
            if wanted and kind is None:
                left_out.append(column.name)
            if kind is not None:
                schemas.append(self._column(table, column, kind, shown, key, old_key))
                types.append(kind)
        if not schemas:
            log.warning("%s has no columns to capture, so it is left out", table)
            return None
        kept = {column.name for column in schemas}
        key, identity = (tuple(name for name in names if name in kept) for names in (key, identity))
        schema = TableSchema(table, tuple(schemas), key, identity, unique_at_commit)
        excluded = tuple(name for name in names if name not in shown and name not in key)
        return CapturedTable(schema, tuple(types), left_out=tuple(left_out), excluded=excluded)

    def _column(
        self,
        table: TableId,
        column: ColumnInfo,
        kind: ValueType,
        shown: Collection[str],
        key: Sequence[str],
        old_key: Sequence[str],
    ) -> Column:
        if column.name in key and kind.loses and keeps_all(self._config):
            _tell_lossy_key(table, column.name, kind.loses)
        odd = self._out_of_range.of(table, column.name, is_key=column.name in (*key, *old_key))
        missing, is_unlogged = _missing(column, kind)
        return Column(
            column.name,
            kind.schema,
            kind.arrow,
            column.name in shown,
            out_of_range=odd,
            placeholder=self._placeholder(table, column, kind),
            masking=kind.masking,
            missing=missing,
            is_unlogged=is_unlogged,
            loses=kind.loses,
            configured=kind.configured,
            sql=kind.sql,
            form=kind.form,
        )

    def _placeholder(self, table: TableId, column: ColumnInfo, kind: ValueType) -> str | None:
        """The placeholder under the column's mask, as the reference engine sends it; None for the usual one."""
        mask = (
            self._masks.of(table, column.name, column.type.name) if Fault.MASKED_PLACEHOLDERS in self._faults else None
        )
        if mask is None or isinstance(mask, Propagate) or not column.type.is_character:
            return None
        text = self._config[UNAVAILABLE_VALUE_PLACEHOLDER]
        if text.startswith("hex:"):
            return None
        shown = kind.convert(pa.array([text], pa.string()))
        return str((shown if kind.masking is None else applied(shown, kind.masking))[0].as_py())

    def _value_type(self, table: TableId, column: ColumnInfo, in_key: bool) -> ValueType | None:
        """What a column becomes, optionality, default and mask included; None for a type without a mapping."""
        kind = self._converted(table, column) or column.value
        if kind is None:
            log.warning(
                "%s.%s is left out: type %s has no mapping; include.unknown.datatypes=true would carry its text",
                *(table, column.name, column.type.printed),
            )
            return None
        default = shown_default(column.default, column.required, kind)
        schema = kind.schema.with_(optional=kind.schema.optional or not column.required, default=default)
        if self._comments and column.comment is not None:
            schema = schema.with_(doc=column.comment)
        kind = replace(kind, schema=schema)
        mask = self._masks.of(table, column.name, column.type.name)
        if mask is None:
            return kind
        where = f"{table}.{column.name}"
        source = column if self._comments else replace(column, comment=None)
        result = altered(kind, mask, source, where, self._faults, in_key=in_key)
        is_converted = result.convert is not kind.convert
        if in_key and is_converted:
            check_key(mask, where)
        is_masked = is_converted or result.masking is not None
        return replace(result, form=f"{kind.form} {mask}") if is_masked else result

    def _converted(self, table: TableId, column: ColumnInfo) -> ValueType | None:
        """What a user-supplied converter makes of a column. A default that is a literal is shown, converted."""
        source, default = column.type, column.default
        asked = SourceColumn(
            table=str(table),
            name=column.name,
            type_name=source.printed,
            length=source.length,
            scale=source.scale or 0,
            optional=not column.required,
            default=None if default is None else default.expression,
        )
        converter = self._converters.of(asked)
        if converter is None:
            return None
        name, conversion = converter
        return ValueType(
            conversion.schema,
            conversion.arrow,
            conversion.convert,
            literals=True,
            text=column.text,
            configured="compared as its converter has it",
            form=f"converter {self._converters.settings(name)}",
        )


def _missing(column: ColumnInfo, kind: ValueType) -> tuple[pa.Scalar | None, bool]:
    """What rows have in a column that do not store it; and whether nobody knows that."""
    if column.missing is None:
        return None, False
    try:
        return converted(pa.array([column.missing]), kind, column.name)[0], False
    except DecodeError:
        return None, True  # the rows are to be read, which tells what is wrong with the value
