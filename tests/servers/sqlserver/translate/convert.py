"""Conversions between types: CAST, CONVERT and those that SQL Server makes by itself."""

from __future__ import annotations

from dataclasses import replace

from ..datatypes import MAX, NATIONAL, SqlType
from ..tds.collations import code_page
from ..tds.transcode import CODE_PAGES
from ..tsql.errors import SqlError, error
from . import clr
from .bound import Bound

_DAY = 864_000_000_000
_DAYS_TO_1900 = 693_595


def convert(value: Bound, target: SqlType, style: int = 0, *, explicit: bool = False) -> Bound:
    """The value as another type."""
    source = value.kind
    if value.untyped_null:
        return Bound(f"NULL::{target.storage}", target)
    if source == target or (source.family == target.family and _same(source, target)):
        return Bound(value.sql, target, value.nullable, column=value.column, is_text_literal=value.is_text_literal)
    family = target.family
    if family == "binary" and source.family == "string" and not explicit:
        raise error(257, source.name, target.name)
    if family == "string" and value.kind.family == "string" and target.collation is None:
        # "If the input expression is a character string, the output expression has the same collation" (CAST).
        target = replace(target, collation=value.kind.collation)
    sql = _CONVERTERS[family](value, target, style)
    return Bound(sql, target, value.nullable)


def _same(source: SqlType, target: SqlType) -> bool:
    """Whether values of one type are values of the other as they are."""
    if source.family == "integer":
        return source.name == target.name
    if source.family == "decimal":
        return target.scale == source.scale and target.precision >= source.precision
    if source.name == target.name and source.name in ("time", "datetime2", "datetimeoffset"):
        return target.scale >= source.scale
    if source.family == "string":
        narrowed = (source.name in NATIONAL) != (target.name in NATIONAL) and target.name not in NATIONAL
        fits = target.length in (MAX, 0) or (0 < source.length <= target.length)
        return fits and not narrowed and target.name not in ("char", "nchar")
    return source.name == target.name and source.family not in ("binary",)


# To text


def _to_string(value: Bound, target: SqlType, style: int) -> str:
    sql = _as_text(value, style)
    narrowed = value.kind.name in NATIONAL and target.name not in NATIONAL
    if narrowed and code_page(target.collation) in CODE_PAGES:
        sql = f"ms.narrow_{code_page(target.collation)}({sql})"
    if target.length > 0 and not (value.kind.family == "string" and 0 < value.kind.length <= target.length):
        sql = f"left({sql}, {target.length})"
    if target.name in ("char", "nchar"):
        sql = f"ms.pad_text({sql}, {target.length})"
    return sql


def _as_text(value: Bound, style: int) -> str:
    kind, sql = value.kind, value.sql
    if kind.family in ("string", "xml"):
        return sql
    if kind.family == "integer":
        return f"({sql})::text"
    if kind.family == "decimal":
        return f"round({sql}, {kind.scale})::text"
    if kind.family == "money":
        return f"round({sql}, {4 if style == 2 else 2})::text"
    if kind.family == "float":
        return f"({sql})::text" if style == 3 else f"ms.float_text({sql})"
    if kind.family == "guid":
        return f"ms.guid_text({sql})"
    if kind.family == "variant":
        return f"substring({sql}, position(':' in {sql}) + 1)"
    if kind.family == "temporal":
        return _moment_text(kind, sql, style)
    if style in (1, 2):
        return ("'0x' || " if style == 1 else "") + f"upper(encode({sql}, 'hex'))"
    if kind.family == "clr":
        return f"ms.clr_text('{kind.name}', {sql})"
    return f"ms.bytes_text({sql})"


def _moment_text(kind: SqlType, sql: str, style: int) -> str:
    if kind.name == "datetime":
        return f"ms.styled(ms.datetime_shown({sql}), {style}, 3)"
    if kind.name == "smalldatetime":
        return f"ms.styled(({sql}) * 600000000, {style}, 3)"
    if kind.name == "datetimeoffset":
        if style in (126, 127):
            return f"ms.styled(ms.moment_local({sql}), 126, {kind.scale}) || ms.offset_text(ms.moment_offset({sql}))"
        return f"ms.moment_text({sql}, {kind.scale})"
    if style and kind.name != "time":
        return (
            f"ms.styled({_ticks(kind, sql)},"
            f" {23 if kind.name == 'date' and style in (20, 21, 120, 121, 126) else style}, {kind.scale})"
        )
    if kind.name == "date":
        return f"ms.date_text({sql})"
    return f"ms.{kind.name}_text({sql}, {kind.scale})"


# To numbers


def _to_integer(value: Bound, target: SqlType, _: int) -> str:
    number = _number(value, target)
    if target.name == "bit":
        return f"(({number}) <> 0)::int4::int2"
    if target.name == "tinyint":
        return f"ms.tinyint(({number})::int4)"
    return f"({number})::{target.storage}"


def _number(value: Bound, target: SqlType) -> str:
    kind, sql = value.kind, value.sql
    if kind.family == "integer":
        return sql
    if kind.family in ("decimal", "float"):
        return f"({sql})" if target.name == "bit" else f"trunc({sql})"
    if kind.family == "money":
        return f"({sql})" if target.name == "bit" else f"round({sql})"
    if kind.family == "string":
        return f"ms.text_to_bit({sql})" if target.name == "bit" else f"ms.text_to_int8({sql}, '{target.name}')"
    if kind.family in ("binary", "rowversion"):
        return f"ms.bytes_to_int({sql})" if target.name == "int" else f"ms.bytes_to_int8({sql})"
    if kind.family == "variant":
        return f"ms.text_to_int8({_as_text(value, 0)}, '{target.name}')"
    if kind.family == "temporal":
        return f"((({_ticks(kind, sql)}) + {_DAY // 2}) / {_DAY} - {_DAYS_TO_1900})"
    raise _impossible(kind, target)


def _to_decimal(value: Bound, target: SqlType, _: int) -> str:
    return f"({_numeric(value, target)})::numeric({target.precision},{target.scale})"


def _numeric(value: Bound, target: SqlType) -> str:
    kind, sql = value.kind, value.sql
    if kind.family in ("integer", "decimal", "money", "float"):
        return sql
    if kind.family in ("string", "variant"):
        return f"ms.text_to_numeric({_as_text(value, 0)}, '{target.name}')"
    if kind.family == "temporal":
        return f"({_ticks(kind, sql)})::numeric / {_DAY} - {_DAYS_TO_1900}"
    if kind.family in ("binary", "rowversion"):
        return f"ms.bytes_to_int8({sql})"
    raise _impossible(kind, target)


def _to_money(value: Bound, target: SqlType, _: int) -> str:
    precision = target.kind.precision
    if value.kind.family == "string":
        return f"ms.text_to_money({value.sql})::numeric({precision},4)"
    return f"({_numeric(value, target)})::numeric({precision},4)"


def _to_float(value: Bound, target: SqlType, _: int) -> str:
    if value.kind.family in ("string", "variant"):
        return f"ms.text_to_float({_as_text(value, 0)})::{target.storage}"
    return f"({_numeric(value, target)})::{target.storage}"


# To dates and times


def _ticks(kind: SqlType, sql: str) -> str:
    """A point in time as 100 ns since 0001-01-01, local where there is an offset."""
    return {
        "date": f"({sql})::int8 * {_DAY}",
        "time": f"({sql}) + {_DAYS_TO_1900 * _DAY}",
        "datetime": f"ms.datetime_ticks({sql})",
        "smalldatetime": f"({sql}) * 600000000",
        "datetime2": f"({sql})",
        "datetimeoffset": f"ms.moment_local({sql})",
    }[kind.name]


def _to_temporal(value: Bound, target: SqlType, _: int) -> str:
    kind, sql = value.kind, value.sql
    scale = f", {target.scale}" if target.name in ("time", "datetime2", "datetimeoffset") else ""
    if kind.family in ("string", "variant"):
        name = "moment" if target.name == "datetimeoffset" else target.name
        return f"ms.text_to_{name}({_as_text(value, 0)}{scale})"
    if kind.family in ("integer", "decimal", "float", "money"):
        if target.name not in ("datetime", "smalldatetime"):
            raise error(206, kind.name, target.name)
        per_day = 25_920_000 if target.name == "datetime" else 1440
        return f"ms.in_{target.name}_range(((({sql})::numeric + {_DAYS_TO_1900}) * {per_day})::int8)"
    if kind.family != "temporal":
        raise _impossible(kind, target)
    if kind.name == "datetimeoffset" and target.name == "datetimeoffset":
        return f"ms.moment(ms.rounded(ms.moment_utc({sql}), {target.scale}), ms.moment_offset({sql}))"
    return _from_ticks(_ticks(kind, sql), target)


def _from_ticks(ticks: str, target: SqlType) -> str:
    return {
        "date": f"(({ticks}) / {_DAY})::int4",
        "time": f"(ms.rounded(({ticks}) % {_DAY}, {target.scale}) % {_DAY})",
        "datetime": f"ms.in_datetime_range(ms.datetime({ticks}))",
        "smalldatetime": f"ms.in_smalldatetime_range((({ticks}) + 300000000) / 600000000)",
        "datetime2": f"ms.rounded({ticks}, {target.scale})",
        "datetimeoffset": f"ms.moment_from_local(ms.rounded({ticks}, {target.scale}), 0)",
    }[target.name]


def ticks(value: Bound) -> str:
    """A date or time as 100 ns since 0001-01-01."""
    return _ticks(value.kind, value.sql)


def from_ticks(sql: str, target: SqlType) -> str:
    """100 ns since 0001-01-01 as a date or time."""
    return _from_ticks(sql, target)


# To bytes and the rest


def _to_binary(value: Bound, target: SqlType, style: int) -> str:
    kind, sql = value.kind, value.sql
    size = target.length
    if kind.family == "integer":
        sender = {
            "bit": "int2send",
            "tinyint": "int2send",
            "smallint": "int2send",
            "int": "int4send",
            "bigint": "int8send",
        }[kind.name]
        raw = f"{sender}({sql})"
        raw = f"substring({raw}, 2)" if kind.name in ("bit", "tinyint") else raw
        return f"ms.pad_bytes_left({raw}, {size})" if target.name == "binary" and size > 0 else raw
    if kind.family == "string":
        raw = (
            f"ms.hex_to_bytes({sql})"
            if style in (1, 2)
            else f"ms.{'wide' if kind.name in NATIONAL else 'narrow'}_bytes({sql})"
        )
    elif kind.family in ("binary", "rowversion", "clr"):
        raw = sql
    elif kind.family == "guid":
        raw = f"ms.guid_bytes({sql})"
    else:
        raise _impossible(kind, target)
    if size > 0 and not (kind.family == "binary" and 0 < kind.length <= size):
        raw = f"substring({raw}, 1, {size})"
    return f"ms.pad_bytes({raw}, {size})" if target.name == "binary" and size > 0 else raw


def _to_guid(value: Bound, target: SqlType, _: int) -> str:
    if value.kind.family == "string":
        return f"ms.text_to_guid({value.sql})"
    if value.kind.family == "binary":
        return f"ms.guid_from_bytes({value.sql})"
    raise _impossible(value.kind, target)


def _to_xml(value: Bound, target: SqlType, _: int) -> str:
    if value.kind.family != "string":
        raise _impossible(value.kind, target)
    return f"ms.xml({value.sql})"


def _to_variant(value: Bound, target: SqlType, _: int) -> str:
    kind, sql = value.kind, value.sql
    declared = str(kind) if kind.family in ("decimal", "temporal") else kind.name
    if kind.family == "binary":
        text = f"encode({sql}, 'hex')"
    elif kind.family == "guid":
        text = f"encode(ms.guid_bytes({sql}), 'hex')"
    elif kind.family == "money":
        text = f"(({sql}) * 10000)::int8::text"
    elif kind.is_large or kind.family in ("clr", "rowversion") or kind.name == "datetimeoffset":
        raise _impossible(kind, target)
    else:
        text = f"({sql})::text"
    return f"('{declared}:' || {text})"


def _to_rowversion(value: Bound, target: SqlType, style: int) -> str:
    return _to_binary(value, SqlType("binary", 8), style)


def _to_clr(value: Bound, target: SqlType, _: int) -> str:
    if value.kind.family == "binary":
        return value.sql
    if value.is_text_literal:
        return clr.from_literal(target.name, value.sql)
    raise _impossible(value.kind, target)


def _impossible(source: SqlType, target: SqlType) -> SqlError:
    return error(529, source.name, target.name)


_CONVERTERS = {
    "string": _to_string,
    "integer": _to_integer,
    "decimal": _to_decimal,
    "money": _to_money,
    "float": _to_float,
    "temporal": _to_temporal,
    "binary": _to_binary,
    "guid": _to_guid,
    "xml": _to_xml,
    "variant": _to_variant,
    "rowversion": _to_rowversion,
    "clr": _to_clr,
}
