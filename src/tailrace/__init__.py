"""Tailrace: change data capture as a Spark streaming source, with Debezium's events and properties."""

from tailrace.errors import TailraceError
from tailrace.version import __version__

__all__ = ["TailraceError", "__version__"]
