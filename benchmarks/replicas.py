"""How fast a backlog of inserts, updates and deletes goes into a Delta replica, whose contents are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

import contestants
import measure
import pyarrow.compute as pc
import workload
from contestants import Course, Result
from deltalake import DeltaTable

from tailrace.testing.postgres import EmbeddedPostgres

# Several micro-batches, so that most of them merge into a table that has rows.
_MOST_BYTES = "33554432"


def backlog(server: EmbeddedPostgres, slots: list[str], rows: int) -> workload.Backlog:
    """Inserts of so many rows, then an update of each, then the delete of every tenth, 100 rows a transaction."""
    workload.make_slots(server, slots)
    filled = workload.fill(server, rows)
    changes = {
        "update": f"UPDATE {workload.TABLE} SET customer = customer + 1 WHERE id BETWEEN start AND start + 99",
        "remove": f"DELETE FROM {workload.TABLE} WHERE id BETWEEN start AND start + 99 AND id % 10 = 0",
    }
    with server.connect(workload.DATABASE) as connection:
        for name, statement in changes.items():
            loop = f"FOR start IN 1..rows BY 100 LOOP {statement}; COMMIT; END LOOP"
            connection.execute(
                f"CREATE PROCEDURE {name}_all(rows bigint) LANGUAGE plpgsql AS $$ BEGIN {loop}; END $$".encode()
            )
            connection.execute(f"CALL {name}_all(%s)".encode(), [rows])
    return workload.Backlog(2 * rows + rows // 10, filled.ids, filled.end, filled.log_bytes)


def tailrace(course: Course, slot: str) -> Result:
    """A pipeline into a replica; its rate is in changes of the log, not in rows that were written."""
    server = measure.Tree(workload.pid(course.server))
    content = course.content(slot, "replica")
    content["sink"] = {"replica": {"path": "lake"}}
    content["source"]["config"]["maxBytesPerTrigger"] = _MOST_BYTES
    with tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        task = {"content": content, "folder": folder, "kind": "backlog"}
        with contestants.reader(task) as process, measure.Tree(process.pid) as tree:
            contestants.tell(process, "go")
            contestants.expect(process, "STREAMING")
            before, server_before = tree.cpu(), server.cpu()
            said = contestants.answer(process)
            cpu, server_cpu = tree.cpu() - before, server.cpu() - server_before
        _check(course.server, Path(folder) / "lake" / workload.TABLE)
    return Result(course.backlog.rows, said["seconds"], cpu, server_cpu, tree.peak, dict(tree.peaks))


def _check(server: EmbeddedPostgres, place: Path) -> None:
    """Ends the benchmark unless the replica has the source's rows, by their number and two sums."""
    table = DeltaTable(place).to_pyarrow_table(columns=["id", "customer"])
    found = len(table), pc.sum(table["id"]).as_py(), pc.sum(table["customer"]).as_py()
    with server.connect(workload.DATABASE) as connection:
        query = f"SELECT count(*), sum(id)::int8, sum(customer)::int8 FROM {workload.TABLE}"
        wanted = connection.execute(query.encode()).fetchone()
    if found != wanted:
        raise SystemExit(f"the replica has {found}, the source {wanted}")
