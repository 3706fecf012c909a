"""Summarises errors of Spark and Java in one line."""

from __future__ import annotations

import re
from contextlib import suppress

# What Python raises where Java does not answer.
JAVA_IS_AWAY: tuple[type[Exception], ...] = ()
with suppress(ImportError):  # the package pyspark-client is PySpark without what speaks to Java
    from py4j.protocol import Py4JError

    JAVA_IS_AWAY = (Py4JError,)

# Of an error that Spark does not translate, the first line says only through which handle it came.
_HANDLE = "An error occurred while calling "
_JAVA = re.compile(r"^(?:: )?((?:\w+\.)*\w*(?:Error|Exception|Warning): .*)")
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*[\w$]+: (?!Traceback )(.+)")
# What Spark wraps the messages of a query in: ids that the user knows nothing of, and codes for programs.
_WRAPPING = re.compile(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: |(?: SQLSTATE: \w{5})+$")


def summary(error: BaseException) -> str:
    """What a foreign error says, on one line: its message without stack and query plan, and its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_HANDLE)] or lines
    messages = [match[1] for line in lines if (match := _JAVA.match(line))]
    # Java may say no more than the kind of an error.
    text = messages[-1] if messages else lines[0].removeprefix(": ") if lines else type(error).__name__
    text = _WRAPPING.sub("", text) or text
    cause = next(reversed(causes(error)), None)
    return text if cause is None or cause in text else f"{text} ({cause})"


def causes(error: BaseException) -> list[str]:
    """The messages of Java's causes of an error, the first one last."""
    lines = with_causes(error).splitlines()
    return [match[1].strip() for line in lines if (match := _CAUSE.match(line))]


def with_causes(error: BaseException) -> str:
    """All that an error says, with the classes of Java's causes."""
    return f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
