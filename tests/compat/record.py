"""Records the state that this version stores: a server's data, two checkpoints and their Delta replicas.

Run once for each format of offsets that releases have written: `python -m tests.compat.record <folder>`. The archive
holds, below `server`, the data directory of a PostgreSQL 18; below `snapshot` a pipeline that was killed in the middle
of its first snapshot; below `chunks` one that was killed in the middle of an incremental snapshot. Both were killed
while their tables changed. `pipeline.yaml` has the words PORT and PASSWORD where those of the server go.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tailrace.pipeline.checkpoint import position
from tailrace.testing.postgres import EmbeddedPostgres

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run", "--json"]
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": 2}
TABLES = ("a", "b", "c", "d")
ROWS = 400


def main(folder: Path) -> None:
    """Write `state.tar.xz` into a folder."""
    with TemporaryDirectory() as work:
        root = Path(work)
        root.chmod(0o755)
        server = EmbeddedPostgres(18, root / "server", {"max_wal_size": "64MB", "min_wal_size": "32MB"})
        with server:
            for name in ("snapshot", "chunks"):
                _database(server, name)
            _stopped_in_snapshot(server, root / "snapshot")
            _stopped_in_chunks(server, root / "chunks")
        for name in ("snapshot", "chunks"):
            (root / name / "pipeline.yaml").write_text(yaml.safe_dump(_definition(name)), encoding="utf-8")
            shutil.rmtree(root / name / "signals", ignore_errors=True)
        with tarfile.open(folder / "state.tar.xz", "w:xz", preset=9) as archive:
            for name in ("server", "snapshot", "chunks"):
                archive.add(root / name, name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if member.name.endswith((".log", "postmaster.pid", "postmaster.opts")):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _database(server: EmbeddedPostgres, name: str) -> None:
    server.create_database(name)
    with server.connect(name) as connection:
        connection.execute("CREATE TABLE signals (id text PRIMARY KEY, type text, data text)")
        for table in TABLES:
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text, n numeric(10, 2))".encode())
            connection.execute(
                f"INSERT INTO {table} SELECT n, 'first ' || n, n FROM generate_series(1, {ROWS}) n".encode()
            )


def _definition(name: str) -> dict[str, Any]:
    properties = {
        "database.hostname": "127.0.0.1",
        "database.port": "PORT",
        "database.user": "postgres",
        "database.password": "PASSWORD",
        "database.dbname": name,
        "topic.prefix": name,
        "slot.name": f"slot_{name}",
        "publication.name": f"publication_{name}",
        "signal.data.collection": "public.signals",
        "snapshot.max.threads": "1",
        "snapshot.max.threads.multiplier": "8",
        "incremental.snapshot.chunk.size": "20",
    }
    return {
        "name": name,
        "source": {"config": properties},
        "sink": {"replica": {"path": "replica"}},
        "checkpoint": "state",
        "trigger": "200ms",
        "spark": SPARK,
    }


def _stopped_in_snapshot(server: EmbeddedPostgres, folder: Path) -> None:
    with _running(server, folder) as batches, server.connect(folder.name) as connection:
        batches(4)
        _change(connection)
        batches(6)
    phase = _offset(folder)["phase"]
    assert phase == "snapshot", phase


def _stopped_in_chunks(server: EmbeddedPostgres, folder: Path) -> None:
    with _running(server, folder) as batches, server.connect(folder.name) as connection:
        batches(0)
        while _offset(folder)["phase"] != "stream":
            time.sleep(0.1)
        data = '{"type": "incremental", "data-collections": ["public.a", "public.b"]}'
        connection.execute("INSERT INTO signals VALUES ('again', 'execute-snapshot', %s)", [data])
        first = _number(folder)
        batches(first + 4)
        _change(connection)
        batches(first + 8)
    progress = _offset(folder)["snapshots"]
    assert progress["queue"], progress
    assert progress["last"], progress


def _change(connection: Any) -> None:
    for table in TABLES:
        connection.execute(f"UPDATE {table} SET v = 'second ' || id WHERE id % 7 = 0".encode())
        connection.execute(f"DELETE FROM {table} WHERE id % 11 = 0".encode())
        connection.execute(f"INSERT INTO {table} SELECT n, 'second', n FROM generate_series(1001, 1040) n".encode())


class _running:
    """A pipeline that runs for the length of the block and is then killed; waits for numbers of batches."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.server = server

    def __enter__(self) -> Any:
        definition = self.folder / "pipeline.yaml"
        definition.write_text(yaml.safe_dump(_definition(self.folder.name)), encoding="utf-8")
        fill_in(self.folder, self.server)
        with (self.folder / "run.log").open("ab") as log:
            command = [*COMMAND, str(self.folder / "pipeline.yaml")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        return self.batches

    def batches(self, number: int) -> None:
        while _number(self.folder) < number:
            assert self.process.poll() is None, (self.folder / "run.log").read_text()
            time.sleep(0.02)

    def __exit__(self, *error: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def fill_in(folder: Path, server: EmbeddedPostgres) -> None:
    """Put the address of a server into the definition of a pipeline."""
    definition = folder / "pipeline.yaml"
    text = definition.read_text(encoding="utf-8").replace("PORT", str(server.port))
    definition.write_text(text.replace("PASSWORD", server.password), encoding="utf-8")


def _number(folder: Path) -> int:
    committed = position(str(folder / "state")).committed
    return -1 if committed is None else committed.number


def _offset(folder: Path) -> dict[str, Any]:
    committed = position(str(folder / "state")).committed
    assert committed is not None
    return committed.offset


if __name__ == "__main__":
    main(Path(sys.argv[1]))
