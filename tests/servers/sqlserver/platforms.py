"""The kinds of server that the double can be: a version of SQL Server, a service of Azure, Amazon RDS."""

from __future__ import annotations

from dataclasses import dataclass, replace

_DATABASE, _MANAGED = 5, 8


@dataclass(frozen=True)
class Platform:
    """What a server says of itself, and what it has.

    `edition` is SERVERPROPERTY('EngineEdition'). Azure SQL Database has one database for a connection, no Agent and no
    msdb; on RDS nobody is a member of sysadmin, and procedures of Amazon's do what only these may do.
    """

    name: str
    version: str
    edition: int = 3
    host: str = "Windows"
    is_rds: bool = False

    @property
    def is_azure_database(self) -> bool:
        """Whether it is Azure SQL Database."""
        return self.edition == _DATABASE

    @property
    def has_agent(self) -> bool:
        """Whether SQL Server Agent runs the jobs."""
        return not self.is_azure_database

    @property
    def major(self) -> int:
        """The first number of the version of the server's engine; the services of Azure have the newest."""
        return 17 if self.edition in (_DATABASE, _MANAGED) else int(self.version.partition(".")[0])

    @property
    def has_log_stats(self) -> bool:
        """Whether there is sys.dm_db_log_stats: from SQL Server 2016 SP2 on."""
        numbers = tuple(map(int, self.version.split(".")[:3]))
        return self.edition in (_DATABASE, _MANAGED) or numbers >= (13, 0, 5026)

    @property
    def title(self) -> str:
        """The value of @@VERSION."""
        edition = "" if self.edition in (_DATABASE, _MANAGED) else f"\n\tDeveloper Edition (64-bit) on {self.host}"
        return (
            f"Microsoft {self.name} (RTM) - {self.version} (X64) \n\tTest double over PostgreSQL, not Microsoft's"
            f" server{edition}"
        )

    def properties(self, server: str) -> dict[str, str]:
        """The values of SERVERPROPERTY by name, with their types, of a server or node of that name."""
        services = {_DATABASE: "SQL Azure", _MANAGED: "SQL Azure"}
        return {
            "engineedition": f"int:{self.edition}",
            "edition": "nvarchar:" + services.get(self.edition, "Developer Edition (64-bit)"),
            "productversion": f"nvarchar:{self.version}",
            "productlevel": "nvarchar:RTM",
            "productmajorversion": "nvarchar:" + self.version.partition(".")[0],
            "servername": f"nvarchar:{server}",
            "machinename": f"nvarchar:{server}",
            "computernamephysicalnetbios": f"nvarchar:{server}",
            "ishadrenabled": "int:0",
            "isclustered": "int:0",
            "collation": "nvarchar:SQL_Latin1_General_CP1_CI_AS",
            "isintegratedsecurityonly": "int:0",
            "processid": "int:1",
            "editionid": "bigint:-2117995310",
        }


SQL_SERVER_2022 = Platform("SQL Server 2022", "16.0.4135.4")
SQL_SERVER_2016 = Platform("SQL Server 2016 (SP2)", "13.0.5026.0")
SQL_SERVER_2016_SP1 = Platform("SQL Server 2016 (SP1)", "13.0.4001.0")
SQL_SERVER_2019 = Platform("SQL Server 2019", "15.0.2000.5")
SQL_SERVER_2025 = Platform("SQL Server 2025", "17.0.1000.7")
LINUX = replace(SQL_SERVER_2022, host="Linux")
AZURE_SQL_DATABASE = Platform("SQL Azure", "12.0.2000.8", _DATABASE)
MANAGED_INSTANCE = Platform("SQL Azure", "12.0.2000.8", _MANAGED)
RDS = Platform("SQL Server 2022", "16.0.4135.4", is_rds=True)
