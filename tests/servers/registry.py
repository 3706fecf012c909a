"""A schema registry for tests: Apicurio 3, which has Confluent's API as well, from its archive on Maven Central."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tailrace.errors import TailraceError
from tailrace.testing.jars import java
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

_NAME, _VERSION = "apicurio-registry-app", "3.0.9"  # newer ones need Java 21
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tailrace</groupId><artifactId>registry</artifactId><version>1</version><packaging>pom</packaging></project>
"""
_START_SECONDS = 90


class Registry(ServerProcess):
    """A registry on a free port of 127.0.0.1 that keeps its schemas in memory; up in about five seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self._home = self._folder("tailrace-registry-")

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "registry.log"

    @property
    def base(self) -> str:
        """The address without a path, as Apicurio's converter takes it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def confluent(self) -> str:
        """The address of Confluent's API."""
        return f"{self.base}/apis/ccompat/v7"

    def start(self) -> Self:
        """Start the registry, without schemas, and return once it answers."""
        if self.running:
            return self
        home = _unpacked()
        (jar,) = (*home.glob("*-runner.jar"), *home.glob("quarkus-run.jar"))
        environment = {**os.environ, "QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(self.port)}
        command = [java(), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", str(jar)]
        self._launch(command, {"cwd": home, "env": environment})
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(f"the registry did not start:\n{self._log_tail()}", where=str(self.log))
            time.sleep(0.1)
        return self

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What Confluent's API answers."""
        return httpx.request(method, self.confluent + path, json=body, timeout=30).json()

    def schema(self, id_: int) -> str:
        """The text of a schema by the id that stands in a record."""
        return str(self.ask("GET", f"/schemas/ids/{id_}")["schema"])

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.confluent}/subjects", timeout=2).status_code == 200
        except httpx.TransportError:
            return False


def why_not_here() -> str | None:
    """Why the registry cannot be had on this machine; None once it is in the cache."""
    try:
        _unpacked()
    except TailraceError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        return f"the registry's archive cannot be downloaded: Maven ended with {error.returncode}"
    return None


def _unpacked() -> Path:
    """The registry's folder in the user's cache; downloaded once, 104 MB. Raises TailraceError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    home = cache / f"{_NAME}-{_VERSION}"
    if home.exists():
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise TailraceError("the tests' schema registry comes by Maven", remedy="install the package maven")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as work:
        (Path(work) / "pom.xml").write_text(_POM, encoding="utf-8")
        artifact = f"-Dartifact=io.apicurio:{_NAME}:{_VERSION}:tar.gz:all"
        subprocess.run([maven, "-q", "-B", "dependency:copy", artifact, "-DoutputDirectory=."], cwd=work, check=True)
        (Path(work) / "home").mkdir()
        (archive,) = Path(work).glob("*.tar.gz")
        subprocess.run(["tar", "xzf", str(archive), "-C", "home"], cwd=work, check=True)
        if not home.exists():  # another process may have been faster
            (Path(work) / "home").rename(home)
    return home
