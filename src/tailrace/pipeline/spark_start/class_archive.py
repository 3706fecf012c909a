"""Keeps an archive of Spark's classes as Java has loaded them, which takes half of the CPU time out of a start.

Java calls it a dynamic archive for class data sharing (CDS). It lies in the user's cache folder, for one Java and one
Spark, and takes about 170 MB. Java itself checks that it fits, and starts without it otherwise.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tailrace.connectors.private_files import is_own_file

log = logging.getLogger(__name__)

# The classes that a start loads may be others in a later version of this module.
_VERSION = 1
# Java would print a line for each class that it cannot archive, or for a jar that has changed.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def place(java: str, version: str) -> Path:
    """The archive's file for the program `java`, which prints `version` of itself, and this Spark."""
    from pyspark.find_spark_home import _find_spark_home

    jars = Path(_find_spark_home()) / "jars"
    jar_texts = [f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(jars.glob("*.jar"))]
    text = "\n".join([str(_VERSION), java, version, str(jars), *jar_texts])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tailrace" / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"


def java_options(archive: Path) -> str:
    """Options of Java that use the archive. If there is none, it is made when this process has ended.

    An empty file says that this Java cannot make one. One that others may have written is not used, as it is code.
    """
    try:
        if not is_own_file(archive):
            log.warning(
                "%s is not used, so starts take longer: others may write it, or a folder above it; remove it, or set "
                "XDG_CACHE_HOME to a folder of this user's",
                archive,
            )
            return ""
        size = archive.stat().st_size
    except FileNotFoundError:
        atexit.register(_create_behind, archive)
        return ""
    except OSError:  # someone else's cache folder: a start without an archive is only slower
        return ""
    with suppress(OSError):  # an image whose files cannot be changed
        os.utime(archive)
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if size else ""


def _create_behind(archive: Path) -> None:
    """Have another process make the archive, which has the lowest priority and outlives this one."""
    command = [sys.executable, "-m", f"{__name__}_writer", str(archive)]
    nothing = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
