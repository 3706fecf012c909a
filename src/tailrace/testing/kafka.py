"""An embedded Kafka broker: one KRaft node, started from its jars."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError
from tailrace.override import override
from tailrace.testing.jars import java, resolve_jars
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

_BROKER = ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
# Newer Spark releases lack these artifacts on Maven Central; this set serves PySpark 4.2 and, as far as tried, 4.3.
_SPARK_SINK = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_START_SECONDS = 60  # guessed
_PROPERTIES = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""


def spark_kafka_jars() -> list[Path]:
    """The jars that Spark's own Kafka source and sink want in `spark.jars`. Raises TailraceError."""
    return resolve_jars(_SPARK_SINK, transitive=False)


class EmbeddedKafka(ServerProcess):
    """A broker on a free port of 127.0.0.1, started by `start()` or `with`; topics are made on first use.

    Everybody may do everything until an ACL says otherwise. Its topics outlive `stop()` and `kill()` and are gone after
    `with` or at exit. The first start ever downloads 44 MB of jars. Raises TailraceError when they or Java cannot be
    had or the broker does not start.
    """

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self._controller = free_port()
        self._home = self._folder("tailrace-kafka-")
        self._jars = resolve_jars(_BROKER)

    @property
    def bootstrap(self) -> str:
        """The broker's address, for `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    @override
    def log(self) -> Path:
        """The broker's log file."""
        return self._home / "server.log"

    @override
    def start(self) -> Self:
        """Start the broker, on the topics it had before if any, and return once it takes connections."""
        if self.running:
            return self
        if not (self._home / "data" / "meta.properties").exists():
            self._format()
        seen = self.log.stat().st_size if self.log.exists() else 0
        self._launch(self._java("kafka.Kafka", "server.properties"), {"cwd": self._home})
        deadline = time.monotonic() + _START_SECONDS
        while b"Kafka Server started" not in self.log.read_bytes()[seen:]:
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(
                    f"Kafka did not start. The end of its log:\n{self._log_tail()}", where=str(self.log)
                )
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """Stop the broker and keep its topics."""
        self._signal(signal.SIGTERM)

    def _java(self, *arguments: str) -> list[str]:
        jars = os.pathsep.join(map(str, self._jars))
        return [java(), "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, *arguments]

    def _format(self) -> None:
        text = _PROPERTIES.format(port=self.port, controller=self._controller, folder=self._home)
        (self._home / "server.properties").write_text(text, encoding="utf-8")
        # The leading letter keeps the id from looking like an option.
        cluster = base64.urlsafe_b64encode(b"T" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        command = self._java(
            "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", "server.properties"
        )
        done = subprocess.run(command, cwd=self._home, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TailraceError(
                f"Kafka's storage could not be made:\n{done.stdout}{done.stderr}", where=str(self._home)
            )
