"""Finds the program that starts Python workers: one that has them import the installed PySpark, where that is right."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def program(master: str) -> str:
    """The program for a session with this master: with the installed PySpark, if that is the running Spark's.

    Elsewhere, and for workers on other machines, it is this process's own Python. See
    docs/decisions/0034-workers-import-the-installed-pyspark.md.
    """
    from pyspark.find_spark_home import _find_spark_home

    script = Path(__file__).with_suffix(".sh")
    installed = find_spec("pyspark")
    is_own = installed is not None and Path(_find_spark_home()) == Path(installed.origin or "").parent
    is_here = master.partition("[")[0] == "local"
    if not (is_own and is_here and os.access(script, os.X_OK)):
        return sys.executable
    os.environ["TAILRACE_PYTHON"] = sys.executable
    return str(script)
