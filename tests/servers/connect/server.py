"""A server of Spark Connect in a process of its own, as a platform has one: clients need no Java."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tailrace.errors import TailraceError
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_START_SECONDS = 90
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class ConnectServer(ServerProcess):
    """A server on a free port of 127.0.0.1 with two cores, which has this environment's Python."""

    def __init__(self, jars: Sequence[Path] = (), settings: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self.port = free_port()
        self._home = self._folder("tailrace-connect-")
        given = {"spark.connect.grpc.binding.port": self.port, **_SETTINGS, **(settings or {})}
        if jars:
            given["spark.jars"] = ",".join(map(str, jars))
        self._settings = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]

    @property
    def url(self) -> str:
        """What a client's `SparkSession.builder.remote` takes."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "server.log"

    def start(self) -> Self:
        """Start the server, and return once it takes connections. Raises TailraceError."""
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [submit, "--master", "local[2]", *self._settings, "--class", _CLASS, "spark-internal"]
        surroundings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": _paths()}
        self._launch(command, {"cwd": self._home, "env": {**os.environ, **surroundings}})  # type: ignore[arg-type]
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(
                    f"Spark Connect did not start. The end of its log:\n{self._log_tail()}", where=str(self.log)
                )
            time.sleep(0.1)
        return self

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _paths() -> str:
    """Where this process finds packages: Spark's workers should find the same."""
    return os.pathsep.join(path for path in sys.path if path)
