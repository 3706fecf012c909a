"""Says in one sentence what this machine lacks to build Tailrace; runs on any Python from 3.6 on."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOWEST_PYTHON = (3, 10)
LOWEST_JAVA = 17


def missing() -> "Iterator[str]":
    """Yield a sentence for each thing that has to be installed first."""
    if sys.version_info < LOWEST_PYTHON:
        wanted, found = ".".join(map(str, LOWEST_PYTHON)), sys.version.split()[0]
        yield (
            f"Python {wanted} or newer is needed, this one is {found}: install one and name it, "
            "as in `make env PYTHON=python3.12`."
        )
    else:
        try:
            import ensurepip  # noqa: F401
            import venv  # noqa: F401
        except ImportError:
            yield "Python's venv module is missing: install the package python3-venv."
    version = java_version()
    if version is None:
        yield f"Java was not found: install Java {LOWEST_JAVA} or newer, such as openjdk-17-jre-headless."
    elif version < LOWEST_JAVA:
        yield (
            f"Java {LOWEST_JAVA} or newer is needed, this one is {version}: install it, such as "
            "openjdk-17-jre-headless, and point JAVA_HOME to it."
        )


def java_version() -> "int | None":
    """The major version of the Java that Spark will take, None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java:
        return None
    try:
        told = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', told.decode(errors="replace"))
    return int(version.group(1)) if version else None


if __name__ == "__main__":
    sys.exit("\n".join(missing()) or 0)
