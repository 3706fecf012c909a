"""Translates functions of dates and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import BIGINT, INT, SqlType, make
from ..tsql.errors import error
from .bound import Bound
from .convert import convert, from_ticks, ticks

if TYPE_CHECKING:
    from .binder import Binder

_PARTS = {
    "year": ("yy", "yyyy"),
    "quarter": ("qq", "q"),
    "month": ("mm", "m"),
    "dayofyear": ("dy", "y"),
    "day": ("dd", "d"),
    "week": ("wk", "ww"),
    "weekday": ("dw", "w"),
    "hour": ("hh",),
    "minute": ("mi", "n"),
    "second": ("ss", "s"),
    "millisecond": ("ms",),
    "microsecond": ("mcs",),
    "nanosecond": ("ns",),
    "tzoffset": ("tz",),
    "iso_week": ("isowk", "isoww"),
}
_NAMES = {short: name for name, shorts in _PARTS.items() for short in (*shorts, name)}
_TICKS = {
    "week": 6_048_000_000_000,
    "day": 864_000_000_000,
    "dayofyear": 864_000_000_000,
    "weekday": 864_000_000_000,
    "hour": 36_000_000_000,
    "minute": 600_000_000,
    "second": 10_000_000,
    "millisecond": 10_000,
    "microsecond": 10,
}


def _part(node: exp.Expression) -> str:
    name = _NAMES.get(node.name.lower())
    if name is None:
        raise error(155, node.name)
    return name


def _moment(binder: Binder, node: exp.Expression) -> Bound:
    """An argument as a date or time: texts become datetime2, numbers datetime."""
    value = binder.value(node)
    if value.kind.family == "string":
        return convert(value, make("datetime2", 7))
    return value if value.kind.family == "temporal" else convert(value, make("datetime"))


def _now(sql: str, kind: SqlType) -> Callable[[Binder, list[exp.Expression]], Bound]:
    return lambda binder, arguments: Bound(sql, kind, False)


def _datepart(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    part = _part(arguments[0])
    value = _moment(binder, arguments[1])
    if part == "tzoffset":
        return Bound(f"ms.moment_offset({convert(value, make('datetimeoffset', 7)).sql})", INT, value.nullable)
    shown = f"ms.datetime_shown({value.sql})" if value.kind.name == "datetime" else ticks(value)
    return Bound(f"ms.datepart('{part}', {shown})", INT, value.nullable)


def _single(part: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    return lambda binder, arguments: _datepart(binder, [exp.Var(this=part), *arguments])


def _datename(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    part = _part(arguments[0])
    value = _moment(binder, arguments[1])
    if part in ("month", "weekday"):
        form = "FMMonth" if part == "month" else "FMDay"
        return Bound(f"to_char(ms.timestamp({ticks(value)}), '{form}')", make("nvarchar", 30), value.nullable)
    return convert(_datepart(binder, arguments), make("nvarchar", 30))


def _dateadd(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    part = _part(arguments[0])
    amount = convert(binder.value(arguments[1]), BIGINT)
    value = binder.value(arguments[2])
    if value.kind.family != "temporal":
        value = convert(value, make("datetime"))
    months = {"year": 12, "quarter": 3, "month": 1}.get(part)
    if months:
        sql = f"ms.add_months({ticks(value)}, ({amount.sql}) * {months})"
    elif part == "nanosecond":
        sql = f"({ticks(value)}) + ({amount.sql}) / 100"
    else:
        sql = f"({ticks(value)}) + ({amount.sql}) * {_TICKS[part]}"
    nullable = value.nullable or amount.nullable
    if value.kind.name == "datetimeoffset":
        return Bound(f"ms.moment_from_local({sql}, ms.moment_offset({value.sql}))", value.kind, nullable)
    return Bound(from_ticks(sql, value.kind), value.kind, nullable)


def _difference(kind: SqlType) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        part = _part(arguments[0])
        first, second = (_utc(_moment(binder, node)) for node in arguments[1:3])
        nullable = True
        if part in ("year", "quarter", "month"):
            months = {"year": 12, "quarter": 3, "month": 1}[part]
            sql = f"(ms.month_number({second}) / {months} - ms.month_number({first}) / {months})"
        elif part == "nanosecond":
            sql = f"(({second}) - ({first})) * 100"
        else:
            shift = 864_000_000_000 if part == "week" else 0
            unit = _TICKS[part]
            sql = f"((({second}) + {shift}) / {unit} - (({first}) + {shift}) / {unit})"
        return Bound(f"({sql})::{kind.storage}", kind, nullable)

    return bind


def _utc(value: Bound) -> str:
    return f"ms.moment_utc({value.sql})" if value.kind.name == "datetimeoffset" else ticks(value)


def _offset_minutes(binder: Binder, node: exp.Expression) -> str:
    value = binder.value(node)
    if value.kind.family == "string":
        return f"ms.offset_from_text({value.sql})"
    return f"({value.sql})::int4"


def _todatetimeoffset(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = _moment(binder, arguments[0])
    scale = value.kind.scale if value.kind.name in ("datetime2", "datetimeoffset", "time", "datetime") else 0
    local = f"ms.rounded({ticks(value)}, {scale})"
    return Bound(
        f"ms.moment_from_local({local}, {_offset_minutes(binder, arguments[1])})", make("datetimeoffset", scale)
    )


def _switchoffset(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = convert(binder.value(arguments[0]), make("datetimeoffset", 7))
    return Bound(
        f"ms.moment(ms.moment_utc({value.sql}), {_offset_minutes(binder, arguments[1])})", value.kind, value.nullable
    )


def _eomonth(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = _moment(binder, arguments[0])
    return Bound(f"(ms.add_months(ms.first_of_month({ticks(value)}), 1) / 864000000000 - 1)::int4", make("date"))


def _datefromparts(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    parts = ", ".join(convert(value, INT).sql for value in binder.values(arguments))
    return Bound(f"(make_date({parts}) - DATE '0001-01-01')", make("date"))


def _isdate(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = convert(binder.value(arguments[0]), make("nvarchar", 4000))
    return Bound(f"(ms.parse_moment({value.sql}) IS NOT NULL)::int4", INT, False)


FUNCTIONS: dict[str, Callable[[Binder, list[exp.Expression]], Bound]] = {
    "getdate": _now("ms.datetime(ms.local_now())", make("datetime")),
    "getutcdate": _now("ms.datetime(ms.utc_now())", make("datetime")),
    "sysdatetime": _now("ms.local_now()", make("datetime2", 7)),
    "sysutcdatetime": _now("ms.utc_now()", make("datetime2", 7)),
    "sysdatetimeoffset": _now("ms.moment_from_local(ms.local_now(), ms.offset_minutes())", make("datetimeoffset", 7)),
    "now": _now("ms.datetime(ms.local_now())", make("datetime")),
    "datepart": _datepart,
    "datename": _datename,
    "year": _single("year"),
    "month": _single("month"),
    "day": _single("day"),
    "dateadd": _dateadd,
    "datediff": _difference(INT),
    "datediff_big": _difference(BIGINT),
    "todatetimeoffset": _todatetimeoffset,
    "switchoffset": _switchoffset,
    "eomonth": _eomonth,
    "datefromparts": _datefromparts,
    "isdate": _isdate,
}
