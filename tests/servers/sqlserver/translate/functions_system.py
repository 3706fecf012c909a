"""Translates functions that ask about the session, the server and its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from ..catalogue.literals import quote
from ..datatypes import BIT, INT, MAX, SYSNAME, SqlType, make
from .bound import NULL, Bound
from .context import VARIABLE
from .convert import convert

if TYPE_CHECKING:
    from .binder import Binder

Function = Callable[["Binder", list[exp.Expression]], Bound]
_TEXT = make("nvarchar", MAX)


def _session(name: str, kind: SqlType) -> Function:
    """A value that the session knows when the statement runs."""
    return lambda binder, arguments: Bound(f"{VARIABLE}{name}{VARIABLE}", kind)


def _texts(binder: Binder, arguments: list[exp.Expression]) -> list[str]:
    return [convert(value, _TEXT).sql if not value.untyped_null else "NULL" for value in binder.values(arguments)]


def _whole(binder: Binder, node: exp.Expression) -> str:
    return convert(binder.value(node), INT).sql


def _database(binder: Binder, arguments: list[exp.Expression], place: int) -> str:
    """A database's number in an argument; the current database without it."""
    return _whole(binder, arguments[place]) if len(arguments) > place else str(binder.context.database.database_id)


def _db_id(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    if not arguments:
        return Bound(str(binder.context.database.database_id), make("int"), False)
    return Bound(f"ms.db_id({_texts(binder, arguments)[0]})", make("int"))


def _db_name(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    if not arguments:
        return Bound(quote(binder.context.database.name) + "::text", SYSNAME, False)
    return Bound(f"ms.db_name({_whole(binder, arguments[0])})", SYSNAME)


def _object_id(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    name = arguments[0].name if isinstance(arguments[0], (exp.Literal, exp.National)) else ""
    if "#" in name:
        binder.context.volatile = True
        table = binder.context.temporary.get("#" + name.rpartition("#")[2].rstrip("]").lower())
        return Bound("NULL::int4" if table is None else str(table.object_id), INT)
    kind = _texts(binder, arguments[1:])[0] if len(arguments) > 1 else "NULL"
    return Bound(
        f"ms.object_id({_texts(binder, arguments[:1])[0]}, {binder.context.database.database_id}, {kind})", INT
    )


def _of_object(function: str) -> Function:
    return lambda binder, arguments: Bound(
        f"ms.{function}({_whole(binder, arguments[0])}, {_database(binder, arguments, 1)})", SYSNAME
    )


def _schema_id(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    name = _texts(binder, arguments)[0] if arguments else "'dbo'"
    return Bound(f"ms.schema_id({binder.context.database.database_id}, {name})", INT)


def _schema_name(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    if not arguments:
        return Bound("'dbo'::text", SYSNAME, False)
    return Bound(f"ms.schema_name({binder.context.database.database_id}, {_whole(binder, arguments[0])})", SYSNAME)


def _col_name(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.col_name({_whole(binder, arguments[0])}, {_whole(binder, arguments[1])})", SYSNAME)


def _col_length(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    table, column = _texts(binder, arguments)
    return Bound(
        f"ms.col_length(ms.object_id({table}, {binder.context.database.database_id}, NULL), {column})", make("smallint")
    )


def _columnproperty(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    name, wanted = _texts(binder, arguments[1:])
    return Bound(f"ms.columnproperty({_whole(binder, arguments[0])}, {name}, {wanted})", INT)


def _objectproperty(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.objectproperty({_whole(binder, arguments[0])}, {_texts(binder, arguments[1:])[0]})", INT)


def _serverproperty(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.serverproperty({_texts(binder, arguments)[0]})", make("sql_variant"))


def _databasepropertyex(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    name, wanted = _texts(binder, arguments)
    return Bound(f"ms.databasepropertyex({name}, {wanted})", make("sql_variant"))


def _user_name(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    if not arguments:
        return Bound(f"{VARIABLE}@@user{VARIABLE}", SYSNAME)
    return Bound(f"ms.user_name({binder.context.database.database_id}, {_whole(binder, arguments[0])})", SYSNAME)


def _is_member(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    role = _texts(binder, arguments[:1])[0]
    member = _texts(binder, arguments[1:])[0] if len(arguments) > 1 else f"{VARIABLE}@@user{VARIABLE}"
    return Bound(f"ms.is_member({binder.context.database.database_id}, {role}, {member})", INT)


def _is_srvrolemember(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    role = _texts(binder, arguments[:1])[0]
    login = _texts(binder, arguments[1:])[0] if len(arguments) > 1 else f"{VARIABLE}@@login{VARIABLE}"
    return Bound(f"ms.is_srvrolemember({role}, {login})", INT)


def _has_dbaccess(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.has_dbaccess({VARIABLE}@@login{VARIABLE}, {_texts(binder, arguments)[0]})", INT)


def _has_perms(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    securable, kind, permission = _texts(binder, arguments[:3])
    where = f"{VARIABLE}@@login{VARIABLE}, {binder.context.database.database_id}"
    return Bound(f"ms.has_perms_by_name({where}, {securable}, {kind}, {permission})", INT)


def _type_name(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.type_name({binder.context.database.database_id}, {_whole(binder, arguments[0])})", SYSNAME)


def _ident(function: str) -> Function:
    def bind(binder: Binder, arguments: list[exp.Expression]) -> Bound:
        table = f"ms.object_id({_texts(binder, arguments)[0]}, {binder.context.database.database_id}, NULL)"
        return Bound(f"ms.{function}({table})", make("numeric", 38))

    return bind


def _parsename(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return Bound(f"ms.parsename({_texts(binder, arguments[:1])[0]}, {_whole(binder, arguments[1])})", SYSNAME)


def _index_property(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    return NULL


def _variant_property(binder: Binder, arguments: list[exp.Expression]) -> Bound:
    value = binder.value(arguments[0])
    base = (
        f"split_part(split_part({value.sql}, ':', 1), '(', 1)"
        if value.kind.family == "variant"
        else f"'{value.kind.name}'::text"
    )
    return Bound(f"('nvarchar:' || {base})", make("sql_variant"))


FUNCTIONS: dict[str, Function] = {
    "db_id": _db_id,
    "db_name": _db_name,
    "object_id": _object_id,
    "object_name": _of_object("object_name"),
    "object_schema_name": _of_object("object_schema_name"),
    "schema_id": _schema_id,
    "schema_name": _schema_name,
    "col_name": _col_name,
    "col_length": _col_length,
    "columnproperty": _columnproperty,
    "objectproperty": _objectproperty,
    "objectpropertyex": _objectproperty,
    "indexproperty": _index_property,
    "serverproperty": _serverproperty,
    "databasepropertyex": _databasepropertyex,
    "sql_variant_property": _variant_property,
    "user_name": _user_name,
    "user": _user_name,
    "is_member": _is_member,
    "is_rolemember": _is_member,
    "is_srvrolemember": _is_srvrolemember,
    "has_dbaccess": _has_dbaccess,
    "has_perms_by_name": _has_perms,
    "type_name": _type_name,
    "parsename": _parsename,
    "ident_current": _ident("ident_current"),
    "ident_seed": _ident("ident_seed"),
    "ident_incr": _ident("ident_incr"),
    "suser_sname": _session("@@login", SYSNAME),
    "suser_name": _session("@@login", SYSNAME),
    "system_user": _session("@@login", SYSNAME),
    "original_login": _session("@@login", SYSNAME),
    "host_name": _session("@@host", SYSNAME),
    "app_name": _session("@@application", SYSNAME),
    "program_name": _session("@@application", SYSNAME),
    "scope_identity": _session("@@identity", make("numeric", 38)),
    "xact_state": _session("@@xact_state", make("smallint")),
    "current_transaction_id": _session("@@transaction", make("bigint")),
    "error_number": _session("@@error_number", INT),
    "error_message": _session("@@error_message", make("nvarchar", 4000)),
    "error_severity": _session("@@error_severity", INT),
    "error_state": _session("@@error_state", INT),
    "error_line": _session("@@error_line", INT),
    "error_procedure": _session("@@error_procedure", SYSNAME),
    "is_error": _session("@@error", BIT),
}
