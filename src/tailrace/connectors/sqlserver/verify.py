"""Probes of `verify` for SQL Server; those of capture are in verify_capture.py."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.connectors.probe import Answer, Expectation, Probe
from tailrace.connectors.sql_bench import BLOCKED_TABLES
from tailrace.connectors.sqlserver.statements import text
from tailrace.connectors.sqlserver.verify_bench import SqlServerBench
from tailrace.connectors.sqlserver.verify_capture import DUMPED, LIFE, capture_probes
from tailrace.override import override

_PROPERTIES = (
    *("ProductVersion", "ProductLevel", "ProductUpdateLevel", "Edition", "EngineEdition", "Collation"),
    *("IsHadrEnabled", "IsClustered", "IsIntegratedSecurityOnly", "PathSeparator"),
)
_DATABASE = (
    *("compatibility_level", "collation_name", "is_read_committed_snapshot_on", "snapshot_isolation_state"),
    *("is_cdc_enabled", "recovery_model_desc", "containment", "is_query_store_on", "delayed_durability_desc"),
    *("is_encrypted", "is_auto_close_on", "is_accelerated_database_recovery_on"),
)
_SESSION = ("@@LANGUAGE", "@@TEXTSIZE", "@@OPTIONS", "@@LOCK_TIMEOUT", "@@MAX_PRECISION", "@@DATEFIRST")
_STABLE = {
    "service_broker_guid": "SELECT CASE WHEN service_broker_guid IS NULL THEN 0 ELSE 1 END FROM sys.databases "
    "WHERE database_id = DB_ID()",
    "recovery_fork_guid": "SELECT COUNT(recovery_fork_guid) FROM sys.database_recovery_status "
    "WHERE database_id = DB_ID()",
}
_VIEWS = {
    "sys.dm_server_services": "SELECT COUNT(*) FROM sys.dm_server_services",
    "msdb.dbo.cdc_jobs": "SELECT COUNT(*) FROM msdb.dbo.cdc_jobs",
    "msdb.dbo.sysjobactivity": "SELECT COUNT(*) FROM msdb.dbo.sysjobactivity",
    "sys.dm_cdc_log_scan_sessions": "SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions",
    "sys.dm_cdc_errors": "SELECT COUNT(*) FROM sys.dm_cdc_errors",
    "sys.dm_db_log_stats": "SELECT COUNT(*) FROM sys.dm_db_log_stats(DB_ID())",
    "cdc.change_tables": "SELECT COUNT(*) FROM cdc.change_tables",
    "cdc.lsn_time_mapping": "SELECT TOP 1 1 FROM cdc.lsn_time_mapping",
    "sys.database_recovery_status": "SELECT COUNT(*) FROM sys.database_recovery_status",
}
_JOB = """
SELECT pollinginterval, maxtrans, maxscans, continuous FROM msdb.dbo.cdc_jobs
WHERE job_type = N'capture' AND database_id = DB_ID()
"""
# Numbers below 100,000, by their digits.
_RIGHTS = ("CONTROL", "SELECT", "EXECUTE", "VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE", "VIEW DEFINITION")
_CAPTURES = "Nothing is captured before an administrator enables change data capture in the database."
_TOLD = "The connector tells a database by its name and a commit that it has read; these would tell more."


class SqlServerProbes(SqlServerBench):
    """The bench with its probes."""

    own_tables = (*BLOCKED_TABLES, LIFE, DUMPED)

    @override
    def probes(self) -> Sequence[Probe]:
        settings = "Which server, database and session settings are these?"
        captures = (Expectation("is_cdc_enabled", (True, 1), _CAPTURES),)
        identity = "What tells this database from another one, and after a failover?"
        views = "Which views may the user read?"
        job = "How is the capture job set?"
        return [
            Probe("identity.server", settings, "Behaviour depends on it.", self._identity, captures, writes=False),
            Probe("identity.stable", identity, _TOLD, self._stable, writes=False),
            Probe("rights.views", views, "Checks need some of them.", self._views, _MAY, writes=False),
            Probe(
                "rights.permissions", "What may the user do?", "A pipeline needs SELECT.", self._rights, writes=False
            ),
            Probe("capture.job", job, "It bounds how soon a change can be read.", self._job, writes=False),
            *capture_probes(self),
            *super().probes(),
        ]

    def _identity(self) -> Answer:
        about = {
            each: self.answer_or_code(f"SELECT CONVERT(nvarchar(128), SERVERPROPERTY({text(each)}))")
            for each in _PROPERTIES
        }
        about |= {
            each: self.answer_or_code(f"SELECT {each} FROM sys.databases WHERE database_id = DB_ID()")
            for each in _DATABASE
        }
        about |= {each: self.answer_or_code(f"SELECT {each}") for each in _SESSION}
        return Answer({"is_cdc_enabled": about["is_cdc_enabled"]}, about)

    def _stable(self) -> Answer:
        return Answer(about={each: self.answer_or_code(query) for each, query in _STABLE.items()})

    def _views(self) -> Answer:
        told = {each: self.answer_or_code(query) for each, query in _VIEWS.items()}
        about = {each: answer if str(answer).startswith("code") else "readable" for each, answer in told.items()}
        # Only the form of an LSN: where the server writes letters in upper case, comparisons of texts are wrong.
        end = str(self.answer_or_code("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())"))
        form = (
            end if end.startswith("code") else re.sub(r"[A-F]+", "A", re.sub(r"[a-f]+", "a", re.sub(r"\d+", "0", end)))
        )
        return Answer({"cdc.change_tables": about["cdc.change_tables"]}, {**about, "log_end_lsn_form": form})

    def _rights(self) -> Answer:
        listed = ", ".join(map(text, _RIGHTS))
        query = f"SELECT permission_name FROM fn_my_permissions(NULL, N'DATABASE') WHERE permission_name IN ({listed})"
        return Answer(about={"permissions": sorted({str(row[0]) for row in self.main.rows(query)})})

    def _job(self) -> Answer:
        rows = self.main.rows(_JOB)
        names = ("pollinginterval", "maxtrans", "maxscans", "continuous")
        return Answer(about=dict(zip(names, rows[0], strict=True)) if rows else {"job": "none"})


_MAY = (Expectation("cdc.change_tables", ("readable",), "GRANT SELECT ON SCHEMA::cdc TO the user."),)
