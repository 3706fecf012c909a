"""Plans the column changes that a replica needs to fit its source: columns added, widened, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Field

from tailrace.errors import ShapeError
from tailrace.model.held import is_held, text_of, texts, value_of
from tailrace.model.native import IS_WHOLE, SQL_TYPE, native_rows, with_whole
from tailrace.model.table import TableSchema
from tailrace.sinks.replica.fold import FROM
from tailrace.sinks.replica.table import Table

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_PLAIN_DIGITS = 6
_VARIABLE = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True)
class Evolution:
    """New fields, fields of the target with their wider types, and the target's schema afterwards."""

    added: list[pa.Field]
    widened: list[pa.Field]
    schema: pa.Schema


def evolution(target: pa.Schema, source: pa.Schema, table: str) -> Evolution:
    """The steps from the target's schema to one that holds the source's. Raises ShapeError for a change of kind.

    Columns the source no longer has stay, null in the rows written from then on.
    """
    added, widened, schema = [], [], target
    for field in source:
        place = target.get_field_index(field.name)
        if place < 0:
            added.append(field)
            schema = schema.append(field)
        elif _is_of_another(target.field(place), field):
            widened.append(field)
            schema = schema.set(place, field)
        elif not _same(target.field(place).type, field.type):
            old = target.field(place).type
            if _holds(field.type, old) or _shows(field.type, old) or is_whole(field):
                widened.append(field)
                schema = schema.set(place, field)
            elif not (_holds(old, field.type) or is_whole(target.field(place))):
                raise _changed(table, field.name, old, field.type)
    return Evolution(added, widened, schema)


def takes_over(target: Table, source: pa.Schema) -> bool:
    """Whether a target without a row becomes what its source is now, whatever it was: types and all."""
    held, new = target.schema, target.stored(source)
    alike = held.names == new.names and all(mine.type == its.type for mine, its in zip(held, new, strict=True))
    return not alike and target.count() == 0


@dataclass(frozen=True)
class Filling:
    """What older rows have in new columns: a row of values (no columns: null in all), and what nobody knows of them."""

    values: pa.Table
    unknown: str | None


def filling(table: TableSchema, added: Sequence[pa.Field]) -> Filling:
    """What the source gave its older rows in columns that were added."""
    names = {field.name for field in added}
    columns = tuple(each for each in table.columns if each.name in names and each.missing is not None)
    images = pa.StructArray.from_arrays(
        [pa.array([each.missing.as_py()], each.arrow) for each in columns if each.missing is not None],
        names=[each.name for each in columns],
    )
    native = native_rows(with_whole(replace(table, columns=columns), [images]), images) if columns else images
    values = pa.Table.from_struct_array(native) if columns else pa.table({})
    unlogged = [each.name for each in table.columns if each.name in names and each.is_unlogged]
    why = f"the source filled the new column {', '.join(unlogged)} without a change in its log" if unlogged else None
    return Filling(values, why)


def needs_table(table: TableSchema) -> bool:
    """Whether more than the native types of its columns may matter to evolve a target."""
    return any(each.missing is not None or each.is_unlogged or each.schema.name == _VARIABLE for each in table.columns)


def numbers_as_text(table: TableSchema, widened: Sequence[pa.Field], target: pa.Schema) -> tuple[str, ...]:
    """The columns that become decimals of any scale, which are text without trailing zeros."""
    return tuple(
        field.name
        for field in widened
        if pa.types.is_decimal(target.field(field.name).type) and table.column(field.name).schema.name == _VARIABLE
    )


def trimmed(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals as text without trailing zeros."""
    text = values.cast(pa.string())
    shorter = pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")
    return pc.if_else(pc.match_substring(text, "."), shorter, text)


def is_whole(field: pa.Field) -> bool:
    """Whether a column of texts takes all values of a column of another type."""
    return pa.types.is_string(field.type) and IS_WHOLE.items() <= (field.metadata or {}).items()


def _is_of_another(held: pa.Field, new: pa.Field) -> bool:
    """Whether texts are stored in a type of the database's that new ones need not have; any text fits into text."""
    mine, its = (sql_name(field) for field in (held, new))
    return mine is not None and mine != its and pa.types.is_string(held.type) and pa.types.is_string(new.type)


def sql_name(field: pa.Field) -> str | None:
    """The type in a database of a column whose Arrow type does not tell it (`Column.sql`), None for others."""
    name = (field.metadata or {}).get(SQL_TYPE)
    return None if name is None else name.decode()


def without_sql_names(schema: pa.Schema) -> pa.Schema:
    """The columns as a format has them that has no types of a database."""
    return pa.schema([_without_sql_name(field) for field in schema])


def _without_sql_name(field: pa.Field) -> pa.Field:
    rest = {name: text for name, text in (field.metadata or {}).items() if name != SQL_TYPE}
    return field.with_metadata(rest) if sql_name(field) is not None else field


def cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values in a type that holds them."""
    if is_held(values.type) and pa.types.is_string(kind):
        whole = [pc.coalesce(text_of(chunk), texts(value_of(chunk))) for chunk in values.chunks]
        return pa.chunked_array(whole, pa.string())
    if pa.types.is_string(kind) and (pa.types.is_nested(values.type) or pa.types.is_decimal(values.type)):
        return pa.chunked_array([texts(chunk) for chunk in values.chunks], pa.string())
    return values.cast(kind)


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Net rows with texts where the target has a column of texts for all values; keys of old rows as well."""
    for place, name in enumerate(rows.column_names):
        at = schema.get_field_index(name.removeprefix(FROM))
        if at >= 0 and is_whole(schema.field(at)) and not pa.types.is_string(rows.column(place).type):
            rows = rows.set_column(place, schema.field(at).with_name(name), cast(rows.column(place), pa.string()))
    return rows


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of a schema (null where they have none), in its types; other columns follow as they are."""
    out = pa.table([_column(rows, field) for field in schema], schema=schema)
    for name in rows.column_names:
        if name not in schema.names:
            out = out.append_column(name, rows.column(name))
    return out


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name in rows.column_names:
        return cast(rows.column(field.name), field.type)
    return pa.chunked_array([pa.nulls(rows.num_rows, field.type)])


def _same(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether two Arrow types are one Delta type."""
    return bool(Field.from_arrow(pa.field("x", left)).type == Field.from_arrow(pa.field("x", right)).type)


def _holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether every value of one type is, unchanged, one of the other."""
    if pa.types.is_integer(narrow):
        if pa.types.is_integer(wide):
            return bool(wide.bit_width >= narrow.bit_width)
        if pa.types.is_decimal(wide):
            return bool(wide.precision - wide.scale >= _INTEGER_DIGITS[narrow.bit_width])
        return bool(pa.types.is_float64(wide)) and narrow.bit_width <= 32
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return bool(wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale)
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))


def _shows(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether a database that changes a column from one type to the other gives its values the same meaning as a cast.

    Decimals with more than six digits behind the point are printed with an exponent.
    """
    if pa.types.is_string(wide):
        is_plain = pa.types.is_decimal(narrow) and 0 <= narrow.scale <= _PLAIN_DIGITS
        return bool(pa.types.is_integer(narrow) or is_plain)
    is_local = pa.types.is_timestamp(narrow) and narrow.tz is None
    return pa.types.is_timestamp(wide) and (is_local or (pa.types.is_date(narrow) and wide.tz is None))


def _changed(table: str, column: str, old: pa.DataType, new: pa.DataType) -> ShapeError:
    return ShapeError(
        f"the source's type changed from {old} to {new}, which the replica's rows cannot follow",
        where=f"{table}, column {column}",
        remedy="run `tailrace retry`, which reads the table again with its new type; with on_error=stop, delete or "
        f"move the replica of {table}, then take a new snapshot of the table",
    )
