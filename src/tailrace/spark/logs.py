"""Sets up logging in Spark's Python processes (planner and tasks), which no application configures."""

from __future__ import annotations

import logging

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def write_to_stderr() -> None:
    """Write our log from INFO on to stderr, which Spark keeps, unless somebody has set up logging here."""
    log = logging.getLogger("tailrace")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
