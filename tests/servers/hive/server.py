"""A Hive metastore of release 2.3, of the jars that PySpark has; its database is Derby in its own memory."""

from __future__ import annotations

import socket
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError
from tailrace.testing.jars import java
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

_START_SECONDS = 120
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    # Its jars are not among PySpark's.
    "hive.async.log.enabled": "false",
}
_OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.net", "java.util")]


class HiveServer(ServerProcess):
    """A metastore on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self._home = self._folder("tailrace-hive-")
        self.warehouse = self._home / "warehouse"

    @property
    def uri(self) -> str:
        """Its address."""
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "server.log"

    def start(self) -> Self:
        """Start it, without a table, and return once it takes connections. Raises TailraceError."""
        spark = find_spec("pyspark")
        assert spark is not None
        assert spark.origin is not None
        settings = {**_SETTINGS, "hive.metastore.warehouse.dir": str(self.warehouse)}
        lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()]
        (self._home / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>", encoding="utf-8")
        classes = f"{self._home}:{Path(spark.origin).parent / 'jars'}/*"
        main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
        command = [java(), "-Xmx384m", "-XX:TieredStopAtLevel=1", *_OPENS, "-cp", classes, main, "-p", str(self.port)]
        self._launch(command, {"cwd": self._home})
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(f"Hive did not start. The end of its log:\n{self._log_tail()}", where=str(self.log))
            time.sleep(0.1)
        return self

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
