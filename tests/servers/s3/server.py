"""A server that speaks S3's protocol, in a process of its own: the buckets are in its memory, and end with it."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen
from xml.etree import ElementTree

from tailrace.errors import TailraceError
from tailrace.testing.jars import resolve_jars
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

# Hadoop's S3A as of Spark's own Hadoop jars. It asks for the bundle of the whole SDK, which is 600 MB; S3 alone is 15.
_S3A = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
)
_SDK = tuple(f"software.amazon.awssdk:{name}:2.35.4" for name in ("s3", "s3-transfer-manager", "sts"))
_START_SECONDS = 60
KEY, SECRET = "tester", "a-secret-key"


class S3Server(ServerProcess):
    """A server on a free port of 127.0.0.1, with one bucket."""

    bucket = "lake"

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self._home = self._folder("tailrace-s3-")

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "server.log"

    @property
    def storage_options(self) -> dict[str, str]:
        """What deltalake needs to reach it."""
        return {**self.environment, "AWS_ALLOW_HTTP": "true"}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that programs for S3 read."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @property
    def spark(self) -> dict[str, str]:
        """The settings of a session that reaches it as s3a://, with its keys from the environment."""
        jars = [*resolve_jars(_S3A, transitive=False), *resolve_jars(_SDK)]
        return {
            "spark.jars": ",".join(str(jar) for jar in jars if not jar.name.startswith("slf4j-")),
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }

    def start(self) -> Self:
        """Start the server, and return once it takes connections. Raises TailraceError."""
        self._launch([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)], {})
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(f"S3 did not start. The end of its log:\n{self._log_tail()}", where=str(self.log))
            time.sleep(0.1)
        urlopen(Request(f"{self.url}/{self.bucket}", method="PUT"), timeout=30).close()
        return self

    def keys(self, prefix: str) -> Iterator[str]:
        """The objects below a prefix."""
        with urlopen(f"{self.url}/{self.bucket}?list-type=2&prefix={prefix}", timeout=30) as answer:
            for node in ElementTree.fromstring(answer.read()).iter():
                if node.tag.endswith("}Key") and node.text:
                    yield node.text

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
