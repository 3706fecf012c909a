"""The Spark side of the source: data sources, readers, row shapes. Imports no database driver, and needs PySpark."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from tailrace.errors import TailraceError

if "pyspark" not in sys.modules and find_spec("pyspark") is None:
    raise TailraceError(
        f"PySpark is not installed for {sys.executable}, and Tailrace runs on it",
        remedy="pip install 'tailrace[spark]'; where a platform brings Spark, run this with the platform's own Python",
    )
