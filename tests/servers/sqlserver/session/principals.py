"""Databases, schemas, types, logins, users, roles, permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..tsql import statements as s
from ..tsql.errors import error, unsupported

if TYPE_CHECKING:
    from .executor import Executor


def create_simple(executor: Executor, statement: s.CreateSimple) -> None:
    """CREATE and ALTER of these."""
    run = _RUNNERS.get((statement.verb, statement.kind))
    if run is None:
        raise unsupported(f"{statement.verb} {statement.kind}")
    run(executor, statement.name[-1], statement.words)


def _database_id(executor: Executor) -> int:
    return executor.session.current_database().database_id


def _create_database(executor: Executor, name: str, words: list[str]) -> None:
    backend = executor.session.backend
    if executor.session.reader().database(name) is not None:
        raise error(1801, name)
    if executor.session.transactions.open:
        raise error(226)
    backend.run(f"SELECT cat.create_database({quote(name)}, nextval('cat.database_ids')::int)")
    upper = [word.upper() for word in words]
    if "COLLATE" in upper:
        backend.run(
            f"UPDATE cat.databases SET collation_name = {quote(words[upper.index('COLLATE') + 1])} WHERE"
            f" lower(name) = {quote(name.lower())}"
        )


def drop_database(executor: Executor, name: str, *, if_exists: bool) -> None:
    """DROP DATABASE."""
    from .definitions import atomic  # definitions hold this

    session = executor.session
    database = session.reader().database(name)
    if database is None:
        if if_exists:
            return
        raise error(3701, "database", name)
    if session.server.users_of(database.name, session):
        raise error(3702, database.name)
    number = database.database_id
    with session.server.capture_paused(number), atomic(executor):
        for (table,) in session.backend.run(
            f"SELECT object_id FROM cat.objects WHERE database_id = {number} AND type = 'U'"
        ).rows:
            session.backend.run(
                f"DROP TABLE IF EXISTS u.t{table} CASCADE; DROP TABLE IF EXISTS log.t{table} CASCADE; DROP"
                f" SEQUENCE IF EXISTS u.identity_{table};"
                f"DROP FUNCTION IF EXISTS log.inserted_{table}, log.deleted_{table}, log.updated_{table}"
            )
        for relation in (
            "objects",
            "schemas",
            "types",
            "users",
            "role_members",
            "permissions",
            "extended_properties",
            "cdc_jobs",
            "instances",
            "transactions",
            "log_scans",
            "databases",
        ):
            session.backend.run(f"DELETE FROM cat.{relation} WHERE database_id = {number}")
        session.backend.run(f"DROP SEQUENCE u.rowversion_{number}; DROP SEQUENCE log.position_{number}")


def _alter_database(executor: Executor, name: str, words: list[str]) -> None:
    session = executor.session
    name = session.database_name if name.upper() == "CURRENT" else name
    database = session.reader().database(name)
    if database is None:
        raise error(5011, name)
    upper = [word.upper() for word in words]
    switches = {
        "ALLOW_SNAPSHOT_ISOLATION": "snapshot_isolation_state",
        "READ_COMMITTED_SNAPSHOT": "read_committed_snapshot",
    }
    for word, column in switches.items():
        if word in upper:
            value = int(upper[upper.index(word) + 1] == "ON")
            session.backend.run(
                f"UPDATE cat.databases SET {column} = {value} WHERE database_id = {database.database_id}"
            )
    if "RECOVERY" in upper:
        model = {"FULL": 1, "BULK_LOGGED": 2, "SIMPLE": 3}[upper[upper.index("RECOVERY") + 1]]
        session.backend.run(
            f"UPDATE cat.databases SET recovery_model = {model} WHERE database_id = {database.database_id}"
        )
    for word in ("READ_ONLY", "READ_WRITE"):
        if word in upper:
            session.backend.run(
                f"UPDATE cat.databases SET is_read_only = {int(word == 'READ_ONLY')} WHERE database_id ="
                f" {database.database_id}"
            )


def _create_schema(executor: Executor, name: str, words: list[str]) -> None:
    number = _database_id(executor)
    if executor.session.reader().schema_id(number, name) is not None:
        raise error(2714, name)
    executor.session.backend.run(
        f"INSERT INTO cat.schemas SELECT {number}, max(schema_id) + 1, {quote(name)}, 1 FROM cat.schemas WHERE"
        f" database_id = {number}"
    )


def _create_type(executor: Executor, name: str, words: list[str]) -> None:
    if words[0].upper() != "FROM":
        raise unsupported("CREATE TYPE other than FROM a system type")
    number = _database_id(executor)
    nullable = 0 if [word.upper() for word in words[-2:]] == ["NOT", "NULL"] else 1
    declared = "".join(word for word in words[1:] if word.upper() not in ("NOT", "NULL"))
    executor.session.context().type(declared)
    executor.session.backend.run(
        f"INSERT INTO cat.types SELECT {number}, coalesce(max(user_type_id), 256) + 1, 1, {quote(name)},"
        f" {quote(declared)}, {nullable}"
        f" FROM cat.types WHERE database_id = {number}"
    )


def _create_login(executor: Executor, name: str, words: list[str]) -> None:
    upper = [word.upper() for word in words]
    session = executor.session
    if session.server.platform.is_azure_database and session.database_name.lower() != "master":
        raise error(5001)
    if "PASSWORD" not in upper:
        raise unsupported("CREATE LOGIN without PASSWORD")
    password = words[upper.index("PASSWORD") + 2]
    default = words[upper.index("DEFAULT_DATABASE") + 2] if "DEFAULT_DATABASE" in upper else "master"
    if executor.session.backend.scalar(f"SELECT 1 FROM cat.logins WHERE lower(name) = {quote(name.lower())}"):
        raise error(15025, name)
    executor.session.backend.run(
        f"INSERT INTO cat.logins (name, type, password, default_database) VALUES ({quote(name)}, 'S',"
        f" {quote(password)}, {quote(default)})"
    )


def _alter_login(executor: Executor, name: str, words: list[str]) -> None:
    upper = [word.upper() for word in words]
    backend = executor.session.backend
    if "PASSWORD" in upper:
        backend.run(
            f"UPDATE cat.logins SET password = {quote(words[upper.index('PASSWORD') + 2])} WHERE lower(name) ="
            f" {quote(name.lower())}"
        )
    if upper[:1] in (["DISABLE"], ["ENABLE"]):
        backend.run(
            f"UPDATE cat.logins SET is_disabled = {int(upper[0] == 'DISABLE')} WHERE lower(name) ="
            f" {quote(name.lower())}"
        )


def _create_user(executor: Executor, name: str, words: list[str]) -> None:
    upper = [word.upper() for word in words]
    login = name
    if upper[:2] in (["FOR", "LOGIN"], ["FROM", "LOGIN"]):
        login = words[2]
    elif upper[:2] == ["WITHOUT", "LOGIN"]:
        login = ""
    elif upper[:2] == ["WITH", "PASSWORD"]:
        # A user of the database alone; the double gives it a login.
        if not executor.session.server.platform.is_azure_database:
            raise error(33233)
        executor.session.backend.run(
            f"INSERT INTO cat.logins (name, type, password) VALUES ({quote(name)}, 'S', {quote(words[3])})"
        )
    _new_user(executor, name, "S", login)


def _create_role(executor: Executor, name: str, words: list[str]) -> None:
    _new_user(executor, name, "R", "")


def _new_user(executor: Executor, name: str, kind: str, login: str) -> None:
    number = _database_id(executor)
    backend = executor.session.backend
    if backend.scalar(f"SELECT 1 FROM cat.users WHERE database_id = {number} AND lower(name) = {quote(name.lower())}"):
        raise error(15023, name)
    if login and not backend.scalar(f"SELECT 1 FROM cat.logins WHERE lower(name) = {quote(login.lower())}"):
        raise error(15007, login)
    login_sql = quote(login) if login else "NULL"
    backend.run(
        f"INSERT INTO cat.users (database_id, name, type, login) VALUES ({number}, {quote(name)}, '{kind}',"
        f" {login_sql})"
    )


def _alter_role(executor: Executor, name: str, words: list[str]) -> None:
    change_member(executor, _database_id(executor), name, words[-1], add=words[0].upper() == "ADD")


def _alter_server_role(executor: Executor, name: str, words: list[str]) -> None:
    change_member(executor, 0, name, words[-1], add=words[0].upper() == "ADD")


def change_member(executor: Executor, database_id: int, role: str, member: str, *, add: bool) -> None:
    """Add a member to a role, or take it out."""
    where = (
        f"database_id = {database_id} AND lower(role) = {quote(role.lower())} AND lower(member) ="
        f" {quote(member.lower())}"
    )
    executor.session.backend.run(f"DELETE FROM cat.role_members WHERE {where}")
    if add:
        executor.session.backend.run(
            f"INSERT INTO cat.role_members VALUES ({database_id}, {quote(role)}, {quote(member)})"
        )


def drop_simple(executor: Executor, kind: str, name: s.Name, *, if_exists: bool) -> None:
    """DROP of one of these."""
    number = _database_id(executor)
    found = f"lower(name) = {quote(name[-1].lower())}"
    condition = {
        "LOGIN": f"logins WHERE {found}",
        "USER": f"users WHERE database_id = {number} AND {found}",
        "ROLE": f"users WHERE database_id = {number} AND {found}",
        "TYPE": f"types WHERE database_id = {number} AND {found}",
        "SCHEMA": f"schemas WHERE database_id = {number} AND {found}",
    }.get(kind)
    if condition is None:
        raise unsupported(f"DROP {kind}")
    if kind == "LOGIN":
        where = f"database_id = 0 AND lower(grantee) = {quote(name[-1].lower())}"
        executor.session.backend.run(f"DELETE FROM cat.permissions WHERE {where}")
    if not executor.session.backend.run(f"DELETE FROM cat.{condition}").count and not if_exists:
        raise error(15151, kind.lower(), name[-1])


def permission(executor: Executor, statement: s.Permission) -> None:
    """GRANT, DENY and REVOKE."""
    context = executor.session.context()
    database = context.database
    number, kind, major = database.database_id, "DATABASE", 0
    if statement.securable_class == "SCHEMA":
        kind, major = "SCHEMA", executor.session.reader().schema_id(number, statement.securable[-1]) or 0
    elif statement.securable_class in ("", "OBJECT") and statement.securable:
        found = executor.session.reader().object(number, *context.split(statement.securable)[1:])
        if found is None and context.system_view((database.name, "dbo", statement.securable[-1])) is not None:
            return  # a table of jobs, which everybody may read here
        if found is None:
            raise error("15151.object", statement.securable[-1])
        kind, major = "OBJECT", found.object_id
    elif any(
        word in ("VIEW SERVER STATE", "CONTROL SERVER", "VIEW ANY DATABASE", "VIEW SERVER PERFORMANCE STATE")
        for word in statement.permissions
    ):
        number, kind = 0, "SERVER"
    for word in statement.permissions:
        for principal in statement.principals:
            where = (
                f"database_id = {number} AND lower(grantee) = {quote(principal.lower())} AND permission ="
                f" {quote(word)} AND class = '{kind}' AND major_id = {major}"
            )
            executor.session.backend.run(f"DELETE FROM cat.permissions WHERE {where}")
            if statement.verb != "REVOKE":
                values = f"{number}, {quote(principal)}, {quote(word)}, '{statement.verb[0]}', '{kind}', {major}"
                executor.session.backend.run(f"INSERT INTO cat.permissions VALUES ({values})")


_RUNNERS = {
    ("CREATE", "DATABASE"): _create_database,
    ("ALTER", "DATABASE"): _alter_database,
    ("CREATE", "SCHEMA"): _create_schema,
    ("CREATE", "TYPE"): _create_type,
    ("CREATE", "LOGIN"): _create_login,
    ("ALTER", "LOGIN"): _alter_login,
    ("CREATE", "USER"): _create_user,
    ("CREATE", "ROLE"): _create_role,
    ("ALTER", "ROLE"): _alter_role,
    ("ALTER", "SERVER ROLE"): _alter_server_role,
}
