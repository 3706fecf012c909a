"""A replica of MongoDB is killed while collections are dropped, renamed and replaced: it ends equal to its source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.behaviour.mongodb_replicas import Replica
from tests.behaviour.mongodb_replicas import replica as replica
from tests.behaviour.mongodb_replicas import shop as shop
from tests.behaviour.test_mongodb_replica import OPLOG, restructure

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

COMMAND = [sys.executable, "-c", "from tailrace.cli.main import main; main()", "run"]
LISTED = {"names": r"orders|totals|stock|capped|a|b|c|inside|came|viewed|chain_\d"}
QUICK = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
PLACES = [
    *(("after-plan", 1), ("after-read", 1), ("after-table", 1), ("after-table", 4), ("after-table", 8)),
    *(("after-copy", 1), ("after-copy", 2), ("after-write", 1), ("after-commit", 1)),
]
PATIENCE_S = 240


@contextmanager
def running(replica: Replica, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline in a process group of its own, which is killed at the end."""
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump({**replica.content, "spark": QUICK}), encoding="utf-8")
    environment = {**os.environ, "TAILRACE_FAILPOINT": str(folder / "failpoint")}
    with (folder / "run.log").open("ab") as log:
        process = subprocess.Popen(
            [*COMMAND, str(file)], stdout=log, stderr=log, start_new_session=True, env=environment
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(condition: Callable[[], bool], folder: Path) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, (folder / "run.log").read_text(encoding="utf-8")[-4000:]
        time.sleep(0.3)


def restructured(replica: Replica) -> None:
    """Drop, rename and replace collections, some of them several times."""
    shop = replica.shop
    restructure(shop)
    shop.chain_1.update_one({"_id": 1}, {"$set": {"v": "chain"}})
    shop.chain_1.rename("chain_2")
    shop.chain_2.insert_one({"_id": "between"})
    shop.chain_2.rename("chain_3")
    shop.chain_1.insert_one({"_id": "again"})
    shop.chain_3.replace_one({"_id": 2}, {"_id": 2.0, "v": "a number of another type"})
    shop.chain_1.rename("chain_2")


@pytest.mark.parametrize(("place", "nth"), PLACES)
@pytest.mark.parametrize("replica", [LISTED, {**LISTED, **OPLOG}], indirect=True, ids=["stream", "oplog"])
def test_a_replica_killed_while_collections_are_restructured_is_right(
    replica: Replica, tmp_path: Path, place: str, nth: int
) -> None:
    shop = replica.shop
    for name in ("orders", "totals", "stock", "capped", "a", "b", "c", "inside", "viewed", "chain_1"):
        shop[name].insert_many([{"_id": key, "v": key} for key in range(5)])
    with running(replica, tmp_path) as process:
        until(lambda: replica.is_same() and (tmp_path / "state" / "commits" / "0").exists(), tmp_path)
        process.kill()
    restructured(replica)
    with running(replica, tmp_path) as process:
        failpoint = tmp_path / "failpoint"
        failpoint.write_text(f"{place} {nth} {process.pid}", encoding="utf-8")
        until(lambda: process.poll() is not None, tmp_path)
        assert not failpoint.exists()
    shop.chain_3.delete_one({"_id": 0})
    gone = {"a", "inside", "viewed", "chain_1"}
    with running(replica, tmp_path) as process:
        until(lambda: replica.is_same() and replica.gone() == gone, tmp_path)
        assert process.poll() is None
