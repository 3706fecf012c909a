"""What a session's login may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..catalogue.model import Database, Table
from ..tsql.errors import error

if TYPE_CHECKING:
    from .session import Session


class SessionRights:
    """Asks the permissions of a login, and remembers the answers until a definition changes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[tuple[object, ...], str | None] = {}
        self._version = -1

    def user_in(self, database_id: int) -> str | None:
        """The user that the login is in a database: `dbo` for administrators, None without access."""
        return self._ask(f"SELECT ms.user_of({quote(self._session.login)}, {database_id})")

    def check(self, permission: str, table: Table) -> None:
        """Raise an error unless the login has a permission on a table."""
        if self.user_in(table.database_id) == "dbo" or self._has(
            permission, table.database_id, "OBJECT", table.object_id
        ):
            return
        raise error(229, permission, table.name, table.database, table.schema, state=5)

    def sees(self, table: Table) -> bool:
        """Whether the login sees masked values of a table."""
        return self.user_in(table.database_id) == "dbo" or self._has(
            "UNMASK", table.database_id, "OBJECT", table.object_id
        )

    def is_named(self, logins: str) -> bool:
        """Whether the login is one of these, which blanks separate."""
        return self._session.login.lower() in logins.lower().split()

    def check_server(self, permission: str) -> None:
        """Raise an error unless the login has a permission on the server."""
        if not self._has(permission, 1, "SERVER", 0):
            raise error(300, permission)

    def check_database(self, permission: str, database: Database) -> None:
        """Raise an error unless the login has a permission on a database."""
        if not self._has(permission, database.database_id, "DATABASE", 0):
            raise error(262, permission, database.name)

    def check_owner(self, database: Database) -> None:
        """Raise an error unless the login owns the database, as change data capture demands."""
        user = self.user_in(database.database_id)
        if user != "dbo" and not self.is_member(database.database_id, "db_owner"):
            raise error(22904)

    def check_administrator(self, database: Database) -> None:
        """Raise an error unless the login may enable capture in a database.

        That is a member of sysadmin, in Azure SQL Database the owner, on RDS nobody (Microsoft: "Enable and disable
        change data capture").
        """
        platform = self._session.server.platform
        if platform.is_azure_database:
            self.check_owner(database)
        elif platform.is_rds or not self.is_administrator:
            raise error(22902)

    @property
    def is_administrator(self) -> bool:
        """Whether the login is a member of sysadmin."""
        return self._ask(f"SELECT ms.is_srvrolemember('sysadmin', {quote(self._session.login)})") == "1"

    def check_changes(self, database: Database, instance: str) -> None:
        """Raise an error unless the login may read a capture instance through its function: by its gating role."""
        if self.may_read_changes(database, instance):
            return
        raise error(229, "SELECT", f"fn_cdc_get_all_changes_{instance}", database.name, "cdc", state=5)

    def may_read_changes(self, database: Database, instance: str) -> bool:
        """Whether the login is in the gating role and may read the source table."""
        if self.user_in(database.database_id) == "dbo" or self.is_member(database.database_id, "db_owner"):
            return True
        reader = self._session.reader()
        tables = reader.object(database.database_id, "cdc", "change_tables")
        if tables is None:
            return False
        rows = self._session.backend.run(
            f"SELECT c3, c9 FROM {tables.physical} WHERE lower(c4) = {quote(instance.lower())}"
        ).rows
        if not rows:
            return True
        source, role = rows[0]
        in_role = role is None or self.is_member(database.database_id, role)
        return in_role and self._has("SELECT", database.database_id, "OBJECT", int(source or 0))

    def is_member(self, database_id: int, role: str) -> bool:
        """Whether the login's user is in a role."""
        user = self.user_in(database_id)
        return (
            user is not None and self._ask(f"SELECT ms.is_member({database_id}, {quote(role)}, {quote(user)})") == "1"
        )

    def _has(self, permission: str, database_id: int, of_class: str, object_id: int) -> bool:
        return (
            self._ask(
                f"SELECT ms.has_permission({quote(self._session.login)}, {database_id}, {quote(permission)},"
                f" '{of_class}', {object_id})"
            )
            == "t"
        )

    def _ask(self, query: str) -> str | None:
        version = self._session.server.catalogue.version
        if version != self._version:
            self._answers.clear()
            self._version = version
        if (query,) not in self._answers:
            self._answers[query,] = self._session.server.lookup(query)
        return self._answers[query,]
