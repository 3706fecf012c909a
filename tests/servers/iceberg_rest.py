"""A REST catalog for tests: Apache Iceberg's own, the fixture of its specification, over a database of SQLite."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from pyiceberg.catalog import Catalog, load_catalog

from tailrace.errors import TailraceError
from tailrace.testing.jars import java
from tailrace.testing.process import ServerProcess, free_port

if TYPE_CHECKING:
    from typing_extensions import Self

_ICEBERG = "1.10.1"
_JARS = (
    ("org.apache.iceberg", "iceberg-open-api", _ICEBERG, "test-fixtures"),
    ("org.apache.iceberg", "iceberg-core", _ICEBERG, "tests"),
    ("org.apache.iceberg", "iceberg-core", _ICEBERG, ""),
    ("org.apache.hadoop", "hadoop-client-api", "3.4.1", ""),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.1", ""),
    ("org.eclipse.jetty", "jetty-servlet", "11.0.26", ""),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0", ""),
    ("org.slf4j", "slf4j-simple", "2.0.17", ""),
)
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<classifier>{}</classifier></dependency>"
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tailrace</groupId><artifactId>rest-catalog</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>
"""
_START_SECONDS = 90


class RestCatalog(ServerProcess):
    """A catalog on a free port, whose tables lie in a folder of its own; up in about five seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self._home = self._folder("tailrace-catalog-")

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "catalog.log"

    @property
    def warehouse(self) -> Path:
        """The folder of the tables' files."""
        return self._home / "warehouse"

    @property
    def options(self) -> dict[str, str]:
        """pyiceberg's properties of the catalog."""
        return {"type": "rest", "uri": f"http://127.0.0.1:{self.port}"}

    def start(self) -> Self:
        """Start the catalog, with the tables it had before, and return once it answers."""
        if self.running:
            return self
        environment = {
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_WAREHOUSE": f"file://{self.warehouse}",
            "CATALOG_URI": f"jdbc:sqlite:{self._home}/catalog.db",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        }
        command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{_jars()}/*"]
        self._launch([*command, "org.apache.iceberg.rest.RESTCatalogServer"], {"env": {**os.environ, **environment}})
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise TailraceError(f"the catalog did not start:\n{self._log_tail()}", where=str(self.log))
            time.sleep(0.1)
        return self

    def clear(self) -> None:
        """Remove all tables and namespaces, with their files."""
        catalog = self.catalog()
        for namespace in catalog.list_namespaces():
            for table in catalog.list_tables(namespace):
                catalog.purge_table(table)
            catalog.drop_namespace(namespace)
        shutil.rmtree(self.warehouse, ignore_errors=True)

    def catalog(self) -> Catalog:
        """A client of it."""
        return load_catalog("tailrace", **self.options)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.options['uri']}/v1/config", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


@cache
def why_not_here() -> str | None:
    """Why the catalog cannot be had on this machine; None once it is in the cache."""
    try:
        _jars()
    except TailraceError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        return f"the catalog's jars cannot be downloaded: Maven ended with {error.returncode}"
    return None


def _jars() -> Path:
    """The folder of its jars in the user's cache; downloaded once, 100 MB. Raises TailraceError."""
    cache_ = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    home = cache_ / f"iceberg-rest-{_ICEBERG}"
    if home.exists():
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise TailraceError("the tests' REST catalog comes by Maven", remedy="install the package maven")
    cache_.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_, prefix="download-") as work:
        pom = _POM.format("".join(_DEPENDENCY.format(*jar) for jar in _JARS))
        (Path(work) / "pom.xml").write_text(pom, encoding="utf-8")
        options = ["-DoutputDirectory=lib", "-DincludeScope=runtime"]
        subprocess.run([maven, "-q", "-B", "dependency:copy-dependencies", *options], cwd=work, check=True)
        if not home.exists():  # another process may have been faster
            (Path(work) / "lib").rename(home)
    return home
