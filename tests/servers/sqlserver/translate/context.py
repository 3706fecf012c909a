"""What a translation needs to know of the session: its database, variables, temporary tables, rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ..catalogue.model import Column, Database, SystemView, Table
from ..catalogue.store import Reader
from ..datatypes import SqlType, make, parse
from ..platforms import SQL_SERVER_2022, Platform
from ..tsql.errors import SqlError, error, invalid_object
from ..tsql.statements import Name

VARIABLE = "\x02"


# Tables of msdb about jobs.
_JOBS = ("cdc_jobs", "sysjobactivity", "syssessions")


@dataclass
class TableUse:
    """A table that a statement reads or writes, with the hints given."""

    table: Table
    access: str
    hints: frozenset[str] = frozenset()


class Rights(Protocol):
    """Says whether the session's user may do something."""

    def check(self, permission: str, table: Table) -> None:
        """Raise the error of a missing permission."""

    def sees(self, table: Table) -> bool:
        """Whether the login sees masked values of a table."""

    def is_named(self, logins: str) -> bool:
        """Whether the login is one of these, which blanks separate."""

    def check_server(self, permission: str) -> None:
        """Raise the error of a missing permission on the server."""

    def check_database(self, permission: str, database: Database) -> None:
        """Raise the error of a missing permission on a database."""

    def check_changes(self, database: Database, instance: str) -> None:
        """Raise the error of a login that may not read a capture instance."""


@dataclass
class Context:
    """The state of a session that a translation reads; `uses` and `identity_of` are what it finds out."""

    database: Database
    reader: Reader
    views: dict[tuple[str, str], SystemView]
    rights: Rights
    variables: dict[str, SqlType] = field(default_factory=dict)
    temporary: dict[str, Table] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)
    uses: list[TableUse] = field(default_factory=list)
    row_locks: bool = False
    volatile: bool = False
    platform: Platform = SQL_SERVER_2022
    _aliases: int = 0

    def alias(self) -> str:
        """A new name for something in FROM."""
        self._aliases += 1
        return f"s{self._aliases}"

    def inside(self, database: Database) -> Context:
        """The same session as seen from another database, for the text of a view."""
        other = Context(database, self.reader, self.views, self.rights, {}, {}, self.session, self.uses)
        other.row_locks = self.row_locks
        other.platform = self.platform
        other._aliases = self._aliases + 1000
        return other

    # Names

    def database_named(self, name: str) -> Database:
        """A database; the current one for an empty name."""
        if not name or name.lower() == self.database.name.lower():
            return self.database
        if self.platform.is_azure_database:
            raise error(40515, name)
        found = self.reader.database(name)
        if found is None:
            raise error(911, name)
        return found

    def split(self, name: Name) -> tuple[Database, str, str]:
        """Database, schema and name that a name of up to three parts means."""
        parts = ("",) * (3 - len(name[-3:])) + name[-3:]
        try:
            database = self.database_named(parts[0])
        except SqlError as failure:
            if failure.number == 40515:
                raise error(40515, ".".join(name)) from failure
            raise invalid_object(".".join(name)) from failure
        return database, parts[1] or "dbo", parts[2]

    def find_table(self, name: Name) -> Table | None:
        """A table or view, None if there is none of this name."""
        if len(name) == 1 and name[0].startswith(("#", "@")):
            return self.temporary.get(name[0].lower())
        if name[-1].startswith("#"):
            return self.temporary.get(name[-1].lower())
        database, schema, plain = self.split(name)
        found = self.reader.object(database.database_id, schema, plain)
        return found if found is not None and found.kind in ("U", "V") else None

    def table(self, name: Name) -> Table:
        """A table or view."""
        found = self.find_table(name)
        if found is None:
            raise invalid_object(".".join(name))
        return found

    def find_module(self, name: Name, kinds: tuple[str, ...]) -> Table | None:
        """A function or procedure."""
        database, schema, plain = self.split(name)
        found = self.reader.object(database.database_id, schema, plain)
        return found if found is not None and found.kind in kinds else None

    def system_view(self, name: Name) -> SystemView | None:
        """A view of sys or INFORMATION_SCHEMA, or a table of jobs in msdb."""
        lower = tuple(part.lower() for part in name)
        if lower[-1] in _JOBS:
            is_azure = self.platform.is_azure_database
            is_there = lower == ("cdc", "cdc_jobs") if is_azure else lower[-3:-1] == ("msdb", "dbo")
            return self.views.get(("sys", lower[-1])) if is_there else None
        if lower[-1] == "dm_server_services" and not self.platform.has_agent:
            return None
        if len(name) < 2:
            return (
                self.views.get(("sys", name[-1].lower()))
                if name[-1].lower() in ("sysdatabases", "sysobjects")
                else None
            )
        return self.views.get((name[-2].lower(), name[-1].lower()))

    # Types

    def type(self, declared: str, *, for_cast: bool = False) -> SqlType:
        """The type of a declaration, also one that a user has made."""
        try:
            return parse(declared, for_cast=for_cast)
        except (KeyError, ValueError):
            name = declared.replace(" ", "").split(".")[-1].strip("[]")
            found = self.reader.alias_type(self.database.database_id, name)
            if found is None:
                raise error(243, declared) from None
            number, base, _ = found
            kind = parse(base)
            return SqlType(kind.name, kind.length, kind.precision, kind.scale, kind.collation, number)

    def variable(self, name: str) -> SqlType:
        """The type of a variable."""
        kind = self.variables.get(name.lower())
        if kind is None:
            raise error(137, name)
        return kind


def temporary_table(name: str, columns: list[Column], object_id: int) -> Table:
    """A temporary table or table variable."""
    return Table(object_id, 2, "tempdb", "dbo", name, tuple(columns), physical_name=f"t{object_id}")


UNNAMED = make("int")
