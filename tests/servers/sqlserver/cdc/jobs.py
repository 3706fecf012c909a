"""The jobs of change data capture: how they are set, started and stopped, and the clean-up of change tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..backend import Backend
from ..catalogue.literals import quote
from ..catalogue.model import Database
from ..session.outcome import Compiled
from ..tsql.errors import error
from . import instances

if TYPE_CHECKING:
    from ..session.executor import Executor
    from ..session.procedures import Arguments


def enabled(executor: Executor) -> Database:
    """The current database, in which change data capture is on."""
    database = executor.session.current_database()
    if not database.cdc:
        raise instances.not_enabled(database)
    return database


def create_jobs(executor: Executor, database: Database) -> None:
    """Create the capture and the clean-up job of a database, if it has none."""
    number = database.database_id
    backend = executor.session.backend
    backend.run(
        f"INSERT INTO cat.cdc_jobs (database_id, job_type) VALUES ({number}, 'capture') ON CONFLICT DO NOTHING;"
        f"INSERT INTO cat.cdc_jobs (database_id, job_type, maxtrans, maxscans, continuous, pollinginterval,"
        f" retention, threshold)"
        f" VALUES ({number}, 'cleanup', 0, 0, 0, 0, 4320, 5000) ON CONFLICT DO NOTHING"
    )


def change_job(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_change_job."""
    database = enabled(executor)
    kind = arguments.text("job_type") or "capture"
    names = ("maxtrans", "maxscans", "continuous", "pollinginterval", "retention", "threshold")
    values = [f"{name} = {arguments.number(name, 0)}" for name in names if arguments.has(name)]
    if values:
        executor.session.backend.run(
            f"UPDATE cat.cdc_jobs SET {', '.join(values)} WHERE database_id = {database.database_id} AND job_type"
            f" = {quote(kind)}"
        )
    return ()


def add_job(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_add_job."""
    create_jobs(executor, enabled(executor))
    change_job(executor, arguments)
    executor.session.server.capture.wake()
    return ()


def drop_job(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_drop_job."""
    database = enabled(executor)
    executor.session.backend.run(
        f"DELETE FROM cat.cdc_jobs WHERE database_id = {database.database_id} AND job_type ="
        f" {quote(arguments.text('job_type') or '')}"
    )
    return ()


def start_job(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_start_job: the capture job goes on; the clean-up job runs once."""
    database = enabled(executor)
    capture = executor.session.server.capture
    if not capture.agent_running:
        raise error(22022)
    if (arguments.text("job_type") or "capture") == "cleanup":
        capture.clean_up(database.database_id)
    else:
        capture.set_running(database.database_id, True)
    return ()


def stop_job(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_stop_job."""
    database = enabled(executor)
    if (arguments.text("job_type") or "capture") == "capture":
        executor.session.server.capture.set_running(database.database_id, False)
    return ()


def scan(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_scan: one run of the capture step, whether the job runs or not."""
    executor.session.server.capture.scan(enabled(executor).database_id)
    return ()


def cleanup_change_table(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_cdc_cleanup_change_table: rows below the mark go, and the instance begins at it."""
    from ..session.definitions import atomic  # definitions know of instances

    database = enabled(executor)
    executor.session.rights.check_owner(database)
    name = arguments.text("capture_instance") or ""
    mark = arguments.text("low_water_mark")
    with atomic(executor):
        rows = executor.session.backend.run(
            f"SELECT object_id FROM cat.instances WHERE database_id = {database.database_id} AND lower(name) ="
            f" {quote(name.lower())}"
        ).rows
        if not rows:
            raise error(22964, name, database.name)
        clean_instance(
            executor.session.backend,
            database.database_id,
            int(rows[0][0] or 0),
            None if mark is None else f"{quote(mark)}::bytea",
        )
    return ()


def clean_instance(backend: Backend, database_id: int, changes_id: int, mark: str | None) -> None:
    """Delete the rows of a change table below a mark, and the transactions that no change table needs any more."""
    run = backend.run
    rows = run(
        "SELECT o.name, o.object_id FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE o.database_id = {database_id} AND s.name = 'cdc' AND o.name IN ('change_tables', 'lsn_time_mapping')"
    ).rows
    physical = {name: f"u.t{number}" for name, number in rows}
    tables, mapping = physical["change_tables"], physical["lsn_time_mapping"]
    if mark is not None:
        run(f"UPDATE {tables} SET c5 = {mark} WHERE c1 = {changes_id} AND c5 < {mark}")
    run(
        f"DELETE FROM u.t{changes_id} WHERE c1 < (SELECT c5 FROM {tables} WHERE c1 = {changes_id});"
        f"DELETE FROM {mapping} WHERE c1 < (SELECT min(c5) FROM {tables})"
    )


def clean_up(backend: Backend, database_id: int, minutes: int | None = None) -> None:
    """The clean-up job: what was committed longer ago than the retention goes from all change tables of a database."""
    if minutes is None:
        minutes = int(
            backend.scalar(
                f"SELECT retention FROM cat.cdc_jobs WHERE database_id = {database_id} AND job_type = 'cleanup'"
            )
            or 4320
        )
    mapping = backend.scalar(
        "SELECT 'u.t' || o.object_id FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE o.database_id = {database_id} AND s.name = 'cdc' AND o.name = 'lsn_time_mapping'"
    )
    oldest = f"ms.datetime(ms.local_now()) - {minutes} * 18000::int8"
    mark = backend.scalar(f"SELECT coalesce(min(c1) FILTER (WHERE c3 >= {oldest}), max(c1)) FROM {mapping}")
    if mark is None:
        return
    for (number,) in backend.run(f"SELECT object_id FROM cat.instances WHERE database_id = {database_id}").rows:
        clean_instance(backend, database_id, int(number or 0), f"{quote(mark)}::bytea")


_JOB = (
    "job_type",
    "start_job",
    "maxtrans",
    "maxscans",
    "continuous",
    "pollinginterval",
    "retention",
    "threshold",
    "check_for_logreader",
)

PROCEDURES = {
    "sp_cdc_change_job": (_JOB, change_job),
    "sp_cdc_add_job": (_JOB, add_job),
    "sp_cdc_drop_job": (("job_type",), drop_job),
    "sp_cdc_start_job": (("job_type",), start_job),
    "sp_cdc_stop_job": (("job_type",), stop_job),
    "sp_cdc_scan": (("maxtrans", "maxscans", "continuous", "pollinginterval", "is_from_job"), scan),
    "sp_cdc_cleanup_change_table": (
        ("capture_instance", "low_water_mark", "threshold", "fcleanupfailed"),
        cleanup_change_table,
    ),
}
