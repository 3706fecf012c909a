"""Tells where a server runs (SQL Server, Azure, Amazon RDS), and how capture is set up there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tailrace.connectors.sqlserver.client import Connection
from tailrace.connectors.sqlserver.statements import name, text
from tailrace.model.table import TableId

_ASKED = (
    "SELECT @@VERSION, CONVERT(int, SERVERPROPERTY('EngineEdition')), "
    "CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')), DB_ID(N'rdsadmin')"
)
# SQL Server 2016 SP2, the first version with sys.dm_db_log_stats.
_LOG_STATS = (13, 0, 5026)


class PlatformKind(Enum):
    """Who runs a server. The values are their names."""

    SERVER = "SQL Server"
    AZURE_DATABASE = "Azure SQL Database"
    MANAGED_INSTANCE = "Azure SQL Managed Instance"
    RDS = "Amazon RDS for SQL Server"


# SERVERPROPERTY('EngineEdition') of the services of Azure.
_EDITIONS = {5: PlatformKind.AZURE_DATABASE, 8: PlatformKind.MANAGED_INSTANCE}


@dataclass(frozen=True)
class Platform:
    """A server: who runs it, its version in numbers (of the services of Azure it says nothing), and its own words."""

    kind: PlatformKind
    version: tuple[int, ...]
    title: str
    is_linux: bool = False

    @property
    def has_agent(self) -> bool:
        """Whether SQL Server Agent runs capture; in Azure SQL Database a scheduler does."""
        return self.kind is not PlatformKind.AZURE_DATABASE

    @property
    def pause_s(self) -> float:
        """The pause of the capture job where it cannot be queried, in seconds (Azure: "running every 20 seconds")."""
        return 5.0 if self.has_agent else 20.0

    @property
    def has_log_stats(self) -> bool:
        """Whether the server tells where its log ends."""
        return self.kind in _EDITIONS.values() or self.version >= _LOG_STATS

    def jobs(self, database: str) -> str:
        """The table of the capture jobs."""
        return "msdb.dbo.cdc_jobs" if self.has_agent else f"{name(database)}.cdc.cdc_jobs"

    @property
    def starting_agent(self) -> str:
        """How SQL Server Agent is started, which is off on Linux at first (Microsoft: "mssql-conf")."""
        if self.is_linux:
            return (
                "as root: /opt/mssql/bin/mssql-conf set sqlagent.enabled true, then systemctl restart mssql-server "
                "(in a container: MSSQL_AGENT_ENABLED=true)"
            )
        return "start the service SQL Server Agent: it runs the capture job"

    def enabling(self, database: str) -> str:
        """How capture of a database is enabled."""
        if self.kind is PlatformKind.RDS:
            return f"EXEC msdb.dbo.rds_cdc_enable_db {text(database)}"
        if self.kind is PlatformKind.AZURE_DATABASE:
            return f"connected to {database}, as its owner: EXEC sys.sp_cdc_enable_db"
        return f"as a member of sysadmin: USE {name(database)}; EXEC sys.sp_cdc_enable_db"

    def used(self, database: str, statement: str) -> str:
        """A statement that has to be run in a database."""
        if self.kind is PlatformKind.AZURE_DATABASE:
            return f"connected to {database}: {statement}"
        return f"USE {name(database)}; {statement}"

    def granting_state(self) -> str:
        """How a login is let see the state of the server, or of a database where there is no server."""
        if self.kind is PlatformKind.AZURE_DATABASE:
            return "GRANT VIEW DATABASE STATE TO <user>"
        return "GRANT VIEW SERVER STATE TO <login>"


def platform(connection: Connection) -> Platform:
    """The platform of a connection. May raise the driver's errors."""
    ((version, edition, product, rds),) = connection.rows(_ASKED)
    kind = _EDITIONS.get(int(edition), PlatformKind.SERVER if rds is None else PlatformKind.RDS)
    numbers = tuple(int(each) for each in str(product).split(".") if each.isdigit())
    return Platform(kind, numbers, str(version).partition("\n")[0].strip(), is_linux=" on Linux" in str(version))


def enabling_table(table: TableId) -> str:
    """The statement that creates a capture instance of a table, in its database."""
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = {text(table.schema)}, @source_name = {text(table.table)}, "
        "@role_name = NULL, @supports_net_changes = 0"
    )
