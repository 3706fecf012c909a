"""Translates functions of texts and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..datatypes import INT, MAX, NATIONAL, SqlType, make
from ..tds.collations import ignores_case
from ..tsql.errors import unsupported
from .bound import Bound
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder

_NARROW = make("varchar", 8000)


def _text(binder: Binder, node: exp.Expression) -> Bound:
    """An argument as text."""
    value = binder.value(node)
    return value if value.kind.family == "string" else convert(value, _NARROW)


def _kind(*values: Bound, length: int = 0) -> SqlType:
    """The type of a text made from others."""
    name = "nvarchar" if any(value.kind.name in NATIONAL for value in values) else "varchar"
    large = any(value.kind.is_large for value in values)
    if large:
        return make(name, MAX)
    limit = 4000 if name == "nvarchar" else 8000
    return make(name, min(limit, length) if length > 0 else limit)


def _whole(binder: Binder, node: exp.Expression) -> str:
    return f"({convert(binder.value(node), INT).sql})"


def _len(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = binder.value(arguments[0])
    if value.kind.family in ("binary", "rowversion"):
        return Bound(f"length({value.sql})", INT, value.nullable)
    text = _text(binder, arguments[0])
    return Bound(f"ms.units(rtrim({text.sql}))", INT, text.nullable)


def _datalength(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = binder.value(arguments[0])
    kind = value.kind
    if kind.family in ("binary", "rowversion", "clr"):
        sql = f"length({value.sql})"
    elif kind.name in NATIONAL:
        sql = f"(ms.units({value.sql}) * 2)"
    elif kind.family == "string":
        sql = f"length({value.sql})"
    else:
        sql = f"(CASE WHEN {value.sql} IS NOT NULL THEN {kind.max_length} END)"
    return Bound(sql, INT, value.nullable)


def _side(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value = _text(binder, arguments[0])
        return Bound(
            f"{name}({value.sql}, greatest({_whole(binder, arguments[1])}, 0))",
            _kind(value, length=value.kind.length),
            value.nullable,
        )

    return bind


def _substring(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = binder.value(arguments[0])
    start, count = _whole(binder, arguments[1]), _whole(binder, arguments[2])
    if value.kind.family in ("binary", "rowversion"):
        kind = make("varbinary", value.kind.max_length or MAX)
    else:
        value = _text(binder, arguments[0])
        kind = _kind(value, length=value.kind.length)
    return Bound(f"substring({value.sql}, {start}, {count})", kind, value.nullable)


def _same_text(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        value = _text(binder, arguments[0])
        return Bound(f"{name}({value.sql})", _kind(value, length=value.kind.length), value.nullable)

    return bind


def _replace(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, old, new = (_text(binder, node) for node in arguments)
    if ignores_case(value.kind.collation):
        sql = f"ms.replace_ignoring_case({value.sql}, {old.sql}, {new.sql})"
    else:
        sql = f"replace({value.sql}, {old.sql}, {new.sql})"
    return Bound(sql, _kind(value, new), value.nullable)


def _charindex(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    wanted, value = (_text(binder, node) for node in arguments[:2])
    start = _whole(binder, arguments[2]) if len(arguments) > 2 else "1"
    return Bound(f"ms.charindex(lower({wanted.sql}), lower({value.sql}), {start})", INT, value.nullable)


def _concat(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    values = [_text(binder, node) for node in arguments]
    return Bound(f"concat({', '.join(value.sql for value in values)})", _kind(*values), False)


def _concat_ws(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    values = [_text(binder, node) for node in arguments]
    return Bound(f"concat_ws({', '.join(value.sql for value in values)})", _kind(*values), False)


def _replicate(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = _text(binder, arguments[0])
    text = f"repeat({value.sql}, {_whole(binder, arguments[1])})"
    kind = _kind(value)
    return Bound(text if kind.length == MAX else f"left({text}, {kind.length})", kind, value.nullable)


def _space(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"repeat(' ', {_whole(binder, arguments[0])})", _NARROW)


def _stuff(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value, new = _text(binder, arguments[0]), _text(binder, arguments[3])
    start, count = _whole(binder, arguments[1]), _whole(binder, arguments[2])
    return Bound(f"overlay({value.sql} placing {new.sql} from {start} for {count})", _kind(value, new), value.nullable)


def _code(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = _text(binder, arguments[0])
    return Bound(f"ascii({value.sql})", INT, value.nullable)


def _character(name: str) -> Callable[[Binder, list[exp.Expression]], Bound]:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        number = _whole(binder, arguments[0])
        return Bound(f"ms.character({number})", make(name, 1))

    return bind


def _quotename(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = _text(binder, arguments[0])
    mark = arguments[1].name if len(arguments) > 1 else "["
    left, right = {"[": "[]", "'": "''", '"': '""'}.get(mark, "[]")
    sql_left, sql_right = (f"'{character}'".replace("'''", "''''") for character in (left, right))
    return Bound(
        f"({sql_left} || replace({value.sql}, {sql_right}, {sql_right} || {sql_right}) || {sql_right})",
        make("nvarchar", 258),
        value.nullable,
    )


def _str(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = convert(binder.value(arguments[0]), make("float"))
    length = _whole(binder, arguments[1]) if len(arguments) > 1 else "10"
    digits = _whole(binder, arguments[2]) if len(arguments) > 2 else "0"
    return Bound(
        f"lpad(round(({value.sql})::numeric, {digits})::text, {length})", make("varchar", 8000), value.nullable
    )


def _hashbytes(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    function = {"MD5": "md5", "SHA2_256": "sha256", "SHA2_512": "sha512"}.get(arguments[0].name.upper())
    if function is None:
        raise unsupported(f"HASHBYTES of {arguments[0].name}")
    raw = convert(binder.value(arguments[1]), make("varbinary", MAX), explicit=True)
    sql = f"decode(md5({raw.sql}), 'hex')" if function == "md5" else f"{function}({raw.sql})"
    return Bound(sql, make("varbinary", 8000), raw.nullable)


def _patindex(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    pattern, value = (_text(binder, node) for node in arguments)
    return Bound(f"ms.patindex(lower({pattern.sql}), lower({value.sql}))", INT, value.nullable)


FUNCTIONS: dict[str, Callable[[Binder, list[exp.Expression]], Bound]] = {
    "len": _len,
    "datalength": _datalength,
    "left": _side("left"),
    "right": _side("right"),
    "substring": _substring,
    "upper": _same_text("upper"),
    "lower": _same_text("lower"),
    "ltrim": _same_text("ltrim"),
    "rtrim": _same_text("rtrim"),
    "trim": _same_text("btrim"),
    "reverse": _same_text("reverse"),
    "replace": _replace,
    "charindex": _charindex,
    "patindex": _patindex,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replicate": _replicate,
    "space": _space,
    "stuff": _stuff,
    "ascii": _code,
    "unicode": _code,
    "char": _character("char"),
    "nchar": _character("nchar"),
    "quotename": _quotename,
    "str": _str,
    "hashbytes": _hashbytes,
}
