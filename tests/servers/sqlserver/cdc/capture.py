"""The capture step: moves committed changes from the logs of captured tables into their change tables."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..backend import Backend, EngineError
from . import jobs

if TYPE_CHECKING:
    from ..engine import Engine

log = logging.getLogger(__name__)

_NO_LSN = "00000000:00000000:0000"
# What follows the LSN text of an idle scan: NUL, in the form in which texts are stored.
_NUL = "\U0010f7ff"
_SCANS_KEPT = 50
_IDLE_SCANS = 0.5


class Capture:
    """Runs the capture jobs of all databases in a thread that sleeps until something is committed."""

    def __init__(self, engine: Engine, interval: float, idle_seconds: float) -> None:
        self.interval = interval
        self.idle_seconds = idle_seconds
        self.agent_running = True
        # Whether a capture instance has its start from the scan that meets it, and none before.
        self.starts_late = False
        # Whether each job scans after its pollinginterval only, and no more than maxtrans * maxscans transactions.
        self.is_paced = False
        # How long clean-up holds what it deletes.
        self.cleanup_seconds = 0.0
        self._next_scan: dict[int, float] = {}
        self._engine = engine
        self._control: Backend = engine.connect("capture control")
        self._control_lock = threading.Lock()
        self._worker: Backend = engine.connect("capture")
        self._scan_lock = threading.RLock()
        self._paused: set[int] = set()
        self._stopping = False
        self._last_row: dict[int, float] = {}
        self._worker.run("LISTEN committed")
        self.agent_running = self._control.scalar("SELECT agent_running FROM cat.server") == "1"
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)

    def start(self) -> None:
        """Start capturing."""
        self._thread.start()
        self.wake()

    def close(self) -> None:
        """Stop for good."""
        self._stopping = True
        self.wake()
        self._thread.join(10)
        self._worker.close()
        self._control.close()

    # Control

    def wake(self) -> None:
        """Look for changes now."""
        self._tell("NOTIFY committed, '0'")

    def set_agent(self, running: bool) -> None:
        """Start or stop the Agent, and with it all jobs."""
        self.agent_running = running
        self._tell(f"UPDATE cat.server SET agent_running = {int(running)}; NOTIFY committed, '0'")
        self._finish_scan()

    def set_running(self, database_id: int, running: bool) -> None:
        """Start or stop the capture job of a database."""
        job = f"database_id = {database_id} AND job_type = 'capture'"
        self._tell(f"UPDATE cat.cdc_jobs SET is_running = {int(running)} WHERE {job}; NOTIFY committed, '0'")
        self._finish_scan()

    def _finish_scan(self) -> None:
        """Wait until a scan that has begun has ended."""
        with self._scan_lock:
            return

    @contextmanager
    def paused(self, database_id: int) -> Iterator[None]:
        """Let a database alone, as while it is dropped."""
        with self._scan_lock:
            self._paused.add(database_id)
        try:
            yield
        finally:
            self._paused.discard(database_id)

    def clean_up(self, database_id: int, minutes: int | None = None) -> None:
        """The clean-up job: delete what is older than the retention."""
        with self._scan_lock, self._control_lock:
            if not self.cleanup_seconds:
                jobs.clean_up(self._control, database_id, minutes)
                return
            self._control.run("BEGIN")
            jobs.clean_up(self._control, database_id, minutes)
            self._control.run(f"SELECT pg_sleep({self.cleanup_seconds}); COMMIT")

    def _tell(self, statement: str) -> None:
        with self._control_lock:
            self._control.run(statement)

    # Scans

    def _run(self) -> None:
        while not self._stopping:
            self._worker.notifications(self._idle_timeout())
            if self._stopping:
                return
            begun = time.monotonic()
            try:
                self._scan_all()
                self._write_idle_rows()
            except EngineError as error:
                self._recover(error)
            time.sleep(max(0.0, self.interval - (time.monotonic() - begun)))

    def _idle_timeout(self) -> float | None:
        """How long to sleep if nothing happens: until an idle database gets a row that says so."""
        if not self._last_row:
            return None
        # The job scans an idle log, too.
        return min(_IDLE_SCANS, max(0.05, min(self._last_row.values()) + self.idle_seconds - time.monotonic()))

    def _recover(self, error: EngineError) -> None:
        """A table or database that is dropped while it is scanned, a deadlock: the next scan finds things in order."""
        if self._worker.in_transaction:
            self._worker.run("ROLLBACK")
        if error.state not in ("42P01", "3F000", "40P01", "55P03"):
            log.warning("the capture job goes on after %s", error)
        self.wake()

    def _jobs(self) -> list[tuple[int, int, int, float]]:
        """The databases with their jobs' maxtrans, maxscans and pollinginterval."""
        if not self.agent_running:
            return []
        rows = self._worker.run(
            "SELECT database_id, maxtrans, maxscans, pollinginterval FROM cat.cdc_jobs"
            " WHERE job_type = 'capture' AND is_running = 1 AND"
            " is_enabled = 1"
        ).rows
        return [
            (int(database or 0), int(count or 1), int(scans or 1), float(pause or 0))
            for database, count, scans, pause in rows
        ]

    def _scan_all(self) -> None:
        for database_id, maximum, scans, pause in self._jobs():
            if self.is_paced and time.monotonic() < self._next_scan.get(database_id, 0):
                continue
            with self._scan_lock:
                left = scans if self.is_paced else -1
                # The job may have been stopped while this waited for the lock.
                while left and self._runs(database_id) and scan(self._worker, database_id, maximum):
                    self._last_row[database_id] = time.monotonic()
                    left -= 1
                self._last_row.setdefault(database_id, time.monotonic())
            self._next_scan[database_id] = time.monotonic() + pause

    def _runs(self, database_id: int) -> bool:
        return database_id not in self._paused and any(database_id == number for number, *_ in self._jobs())

    def _write_idle_rows(self) -> None:
        """A row in lsn_time_mapping for databases in which nothing has happened for long."""
        running = {database_id for database_id, *_ in self._jobs()}
        for database_id in list(self._last_row):
            if database_id not in running:
                del self._last_row[database_id]
            elif time.monotonic() - self._last_row[database_id] >= self.idle_seconds:
                self._last_row[database_id] = time.monotonic()
                with self._scan_lock:
                    write_idle_row(self._worker, database_id)

    def scan(self, database_id: int) -> None:
        """One scan on demand."""
        with self._scan_lock, self._control_lock:
            while scan(self._control, database_id, 500):
                pass

    def write_idle_row(self, database_id: int) -> None:
        """Do at once what the capture job does every five minutes in an idle database."""
        with self._scan_lock, self._control_lock:
            write_idle_row(self._control, database_id)


def _cdc_table(backend: Backend, database_id: int, name: str) -> str:
    number = backend.scalar(
        "SELECT o.object_id FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)"
        f" WHERE o.database_id = {database_id} AND s.name = 'cdc' AND o.name = '{name}'"
    )
    return f"u.t{number}"


def write_idle_row(backend: Backend, database_id: int) -> None:
    """The row of an idle database: without a transaction, at a new LSN."""
    mapping = _cdc_table(backend, database_id, "lsn_time_mapping")
    now = "ms.datetime(ms.local_now())"
    backend.run(
        f"INSERT INTO {mapping} SELECT ms.lsn(ms.log_position({database_id})), {now}, {now}, '\\x00'::bytea, NULL"
    )


def scan(backend: Backend, database_id: int, maximum: int) -> int:
    """Capture the next transactions of a database; how many there were."""
    begun = time.time()
    backend.run("BEGIN")
    rows = backend.run(
        f"SELECT xid, lsn, is_marker FROM cat.transactions WHERE database_id = {database_id} AND lsn IS NOT NULL"
        f" ORDER BY lsn LIMIT {maximum}"
    ).rows
    if not rows:
        backend.run("COMMIT")
        _note_idle(backend, database_id)
        return 0
    last = rows[-1][1]
    backend.run(
        "CREATE TEMP TABLE scanned ON COMMIT DROP AS SELECT * FROM cat.transactions"
        f" WHERE database_id = {database_id} AND lsn IS NOT NULL AND lsn <= {last}"
    )
    commands = _capture_tables(backend, database_id)
    mapping = _cdc_table(backend, database_id, "lsn_time_mapping")
    backend.run(
        f"UPDATE {_cdc_table(backend, database_id, 'change_tables')} t SET c5 = ms.lsn(i.start_position)"
        f" FROM cat.instances i WHERE i.object_id = t.c1 AND t.c5 IS NULL AND i.start_position <= {last}"
    )
    backend.run(
        f"INSERT INTO {mapping} SELECT ms.lsn(lsn), ms.shown(begin_time), ms.shown(end_time),"
        " CASE WHEN is_marker THEN '\\x00'::bytea ELSE substring(int8send(xid::text::int8), 3) END, CASE WHEN NOT"
        " is_marker THEN ms.lsn(lsn) END"
        " FROM scanned s WHERE is_marker OR EXISTS (SELECT 1 FROM captured c WHERE c.xid = s.xid);"
        f"DELETE FROM cat.transactions WHERE database_id = {database_id} AND lsn IS NOT NULL AND lsn <= {last}"
    )
    _note_scan(backend, database_id, len(rows), commands, int(rows[0][1] or 0), int(last or 0), begun)
    backend.run("COMMIT")
    return len(rows)


def _capture_tables(backend: Backend, database_id: int) -> int:
    """Fill the change tables from the logs; how many changes there were."""
    sources = [
        str(number)
        for (number,) in backend.run(
            f"SELECT DISTINCT source_object_id FROM cat.instances WHERE database_id = {database_id}"
        ).rows
    ]
    backend.run("CREATE TEMP TABLE captured (xid xid8) ON COMMIT DROP")
    if not sources:
        return 0
    changes = " UNION ALL ".join(
        f"SELECT xid, position, least(op, 3) AS part FROM log.t{number} WHERE xid IN (SELECT xid FROM scanned)"
        for number in sources
    )
    # The number of a change in its transaction, over all tables; the two rows of an update share it.
    backend.run(
        "CREATE TEMP TABLE commands ON COMMIT DROP AS SELECT position, part, row_number() OVER (PARTITION BY xid"
        " ORDER BY position, part)::int AS command"
        f" FROM (SELECT DISTINCT xid, position, part FROM ({changes}) a) b; CREATE INDEX ON commands (position,"
        f" part); ANALYZE commands"
    )
    total = 0
    rows = backend.run(
        f"SELECT i.object_id, i.source_object_id, i.start_position, array_to_string(i.columns, ','),"
        f" array_to_string(ARRAY(SELECT n FROM unnest(i.columns) n"
        " WHERE EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass('log.t' || i.source_object_id)"
        " AND a.attname = 'c' || n)), ',')"
        f" FROM cat.instances i WHERE i.database_id = {database_id}"
    ).rows
    for instance, source, start, captured, logged in rows:
        total += _capture_instance(
            backend, str(instance), str(source), str(start), str(captured).split(","), set(str(logged).split(","))
        )
    for number in sources:
        backend.run(f"DELETE FROM log.t{number} WHERE xid IN (SELECT xid FROM scanned)")
    return total


def _capture_instance(
    backend: Backend, instance: str, source: str, start: str, captured: list[str], logged: set[str]
) -> int:
    ids = f"ARRAY[{','.join(captured)}]"
    values = ", ".join(f"l.c{column}" if column in logged else "NULL" for column in captured)
    targets = ", ".join(f"c{number}" for number in range(1, len(captured) + 7))
    outcome = backend.run(
        f"WITH written AS (INSERT INTO u.t{instance} ({targets})"
        f" SELECT ms.lsn(s.lsn), NULL, ms.lsn(l.position), l.op, CASE WHEN l.op <= 2 THEN ms.update_mask(NULL,"
        f" {ids}) ELSE ms.update_mask(l.changed, {ids}) END,"
        f" {values}, k.command FROM scanned s JOIN log.t{source} l USING (xid) JOIN commands k ON k.position ="
        f" l.position AND k.part = least(l.op, 3)"
        f" WHERE l.position >= {start} ORDER BY s.lsn, k.command, l.op RETURNING c1)"
        " INSERT INTO captured SELECT DISTINCT s.xid FROM written w JOIN scanned s ON ms.lsn(s.lsn) = w.c1"
    )
    return outcome.count


def _note_scan(
    backend: Backend, database_id: int, transactions: int, commands: int, first: int, last: int, begun: float
) -> None:
    """The row of sys.dm_cdc_log_scan_sessions for a scan that found something."""
    backend.run(
        "INSERT INTO cat.log_scans SELECT coalesce(max(session_id), 0) + 1,"
        f" {database_id}, to_timestamp({begun}), clock_timestamp(), {int(time.time() - begun)},"
        f" ms.lsn_text({first}), ms.lsn_text({last}), {transactions},"
        f" {commands}, ms.lsn_text({last}), (SELECT max(end_time) FROM scanned),"
        " greatest(0, extract(epoch FROM clock_timestamp() - (SELECT max(end_time) FROM scanned)))::int, 0 FROM"
        " cat.log_scans;"
        f"DELETE FROM cat.log_scans WHERE session_id < (SELECT max(session_id) - {_SCANS_KEPT} FROM cat.log_scans)"
    )


def _note_idle(backend: Backend, database_id: int) -> None:
    """The row of a scan that found nothing; further ones are counted in it."""
    backend.run(
        f"UPDATE cat.log_scans SET empty_scan_count = empty_scan_count + 1, end_time = clock_timestamp() WHERE"
        f" session_id = (SELECT max(session_id) FROM cat.log_scans"
        f" WHERE database_id = {database_id}) AND empty_scan_count > 0"
    )
    backend.run(
        f"INSERT INTO cat.log_scans SELECT coalesce(max(session_id), 0) + 1, {database_id}, clock_timestamp(),"
        f" clock_timestamp(), 0,"
        f" '{_NO_LSN}{_NUL}', '{_NO_LSN}{_NUL}', 0, 0, '{_NO_LSN}{_NUL}', NULL, 0, 1 FROM cat.log_scans"
        f" HAVING NOT EXISTS (SELECT 1 FROM cat.log_scans l WHERE l.database_id = {database_id} AND"
        f" l.empty_scan_count > 0"
        f" AND l.session_id = (SELECT max(session_id) FROM cat.log_scans WHERE database_id = {database_id}))"
    )
