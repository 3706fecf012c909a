"""Fetches jars from Maven Central by PySpark's own Ivy, and keeps them in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tailrace.errors import TailraceError

_MODULE = """<ivy-module version="2.0">
  <info organisation="tailrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
_DEPENDENCY = '<dependency org="{0}" name="{1}" rev="{2}" conf="default->{3}"/>'
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <groupId>tailrace</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_POM_DEPENDENCY = "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"
# Ivy and Maven write much; these lines say what went wrong.
_PROBLEM = re.compile(r"not found|error|exception|failed|timed? ?out", re.IGNORECASE)


def java() -> str:
    """The path of a Java to run. Raises TailraceError when there is none."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        raise TailraceError(
            "Java was not found",
            where=f"JAVA_HOME={home}" if home else "PATH",
            remedy="install Java 17 or newer, for example the package openjdk-17-jre-headless",
        )
    return path


def resolve_jars(coordinates: Sequence[str], *, transitive: bool = True) -> list[Path]:
    """The jars of `group:artifact:version` coordinates, with what they need at run time unless `transitive` is off.

    Downloaded once, to `$XDG_CACHE_HOME/tailrace/jars` (default `~/.cache`). Raises TailraceError when they cannot be
    had.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace" / "jars"
    digest = hashlib.sha256(repr((tuple(coordinates), transitive)).encode()).hexdigest()[:12]
    folder = cache / f"{coordinates[0].split(':')[1]}-{digest}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as work:
            _download(Path(work), coordinates, transitive)
            if not folder.exists():  # another process may have been faster
                (Path(work) / "lib").rename(folder)
    return sorted(folder.glob("*.jar"))


def _download(work: Path, coordinates: Sequence[str], transitive: bool) -> None:
    """Fill `work`/lib by Ivy, or by Maven (which knows the user's mirrors) if that fails."""
    problems = []
    for attempt in (_by_ivy, _by_maven):
        (work / "lib").mkdir(exist_ok=True)
        command = attempt(work, [tuple(name.split(":")) for name in coordinates], transitive)
        if command is None:
            continue
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode == 0 and len(list((work / "lib").glob("*.jar"))) >= len(coordinates):
            return
        told = [line for line in (done.stdout + done.stderr).splitlines() if _PROBLEM.search(line)]
        problems.append("\n".join(told[:4]))
        shutil.rmtree(work / "lib")
    raise TailraceError(
        "the jars could not be downloaded from Maven Central:\n" + "\n".join(problems),
        where=", ".join(coordinates),
        remedy="check the network; behind a proxy or mirror, install Maven and name it in ~/.m2/settings.xml",
    )


def _by_ivy(work: Path, names: list[tuple[str, ...]], transitive: bool) -> list[str] | None:
    spark = find_spec("pyspark")
    ivy = sorted((Path(spark.origin).parent / "jars").glob("ivy-*.jar")) if spark and spark.origin else []
    if not ivy:
        return None
    scope = "master,runtime" if transitive else "master"
    dependencies = "".join(_DEPENDENCY.format(*name, scope) for name in names)
    (work / "ivy.xml").write_text(_MODULE.format(dependencies=dependencies), encoding="utf-8")
    arguments = ["-ivy", "ivy.xml", "-cache", str(work / "ivy"), "-confs", "default", "-types", "jar", "bundle"]
    pattern = str(work / "lib" / "[artifact]-[revision](-[classifier]).[ext]")
    return [java(), "-jar", str(ivy[0]), *arguments, "-retrieve", pattern]


def _by_maven(work: Path, names: list[tuple[str, ...]], transitive: bool) -> list[str] | None:
    maven = shutil.which("mvn")
    if maven is None:
        return None
    dependencies = "".join(_POM_DEPENDENCY.format(*name) for name in names)
    (work / "pom.xml").write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
    options = ["-DoutputDirectory=lib", "-DincludeScope=runtime", f"-DexcludeTransitive={str(not transitive).lower()}"]
    return [maven, "-q", "-B", "dependency:copy-dependencies", *options]
