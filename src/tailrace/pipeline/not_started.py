"""Finds out why Spark did not start: from its error, or from what Java printed to the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tailrace.errors import TailraceError
from tailrace.spark.java_errors import summary

# Lines of Java and Spark that are printed on each start, or say no more than that Java has failed.
_USUAL = re.compile(
    r"\s|WARNING: |Picked up |Using Spark's default|Setting default log level|To adjust logging level"
    r"|.* (?:INFO|WARN) |.* warning: "
    r"|Error: Could not create the Java|Error: A fatal exception|Error occurred during initialization of VM"
)
_IN_THREAD = re.compile(r'^Exception in thread "[^"]*" ')
_MASTER, _MEMORY = "spark.master", "spark.driver.memory"
_SIGNS = {"Master URL": _MASTER, "heap size": _MEMORY, "object heap": _MEMORY, "System memory": _MEMORY}
_CORRECT = {
    _MASTER: "set it below `spark` to local[*], local[4], or the URL of a cluster",
    _MEMORY: "set it below `spark` to a number with its unit, such as 2g or 512m, and less than the machine has",
}
# Values that may stand in a text by chance, as shorter ones may.
_COMMON, _LEAST_VALUE = ("True", "False", "true", "false"), 4
_LONGEST = 500


@contextmanager
def starting(log: Path, settings: Mapping[str, object]) -> Iterator[None]:
    """Turns a failure of Spark's start in the block into a TailraceError. `settings` are those of the pipeline file."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    begin = log.stat().st_size if log.exists() else 0
    try:
        yield
    except Py4JJavaError as error:
        raise not_started(summary(error), log, settings) from error
    except (Py4JError, ConnectionError) as error:
        # Of Java that has ended, Python knows only that it does not answer.
        raise not_started(_printed(log, begin), log, settings) from error
    except (PySparkException, OSError) as error:
        has_ended = "JAVA_GATEWAY_EXITED" in str(error)
        raise not_started(_printed(log, begin) if has_ended else summary(error), log, settings) from error


def not_started(reason: str | None, log: Path, settings: Mapping[str, object]) -> TailraceError:
    """The error for a Spark that did not start for a reason; None: its Java process was ended, without a word."""
    if reason is None:
        return TailraceError(
            "Spark did not start: its Java process ended, and says nothing of it",
            where=str(log),
            remedy="start again; if it happens again, see the end of that log, and `dmesg`: Java may have been killed, "
            "as when memory runs out",
        )
    setting = _setting(reason, settings)
    what = f"Spark did not start: {reason}"
    if setting is None:
        remedy = f"see the end of {log}, and the settings below `spark` in the pipeline file"
        return TailraceError(what, where=str(log), remedy=remedy)
    correct = _CORRECT.get(setting, "correct it below `spark` in the pipeline file")
    return TailraceError(what, where=setting, remedy=f"{correct}; Spark's log is {log}")


def _setting(reason: str, settings: Mapping[str, object]) -> str | None:
    """The setting that a reason is about: one that it names, or whose value it shows."""
    by_name = next((name for name in settings if name in reason), None)
    by_sign = next((name for sign, name in _SIGNS.items() if sign in reason), None)
    values = {name: str(value) for name, value in settings.items() if str(value) not in _COMMON}
    shown = (name for name, value in values.items() if len(value) >= _LEAST_VALUE and value in reason)
    return by_name or by_sign or next(shown, None)


def _printed(log: Path, begin: int) -> str | None:
    """The first unusual line of the log from a byte on."""
    try:
        with log.open("rb") as stream:
            stream.seek(begin)
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    unusual = next((line for line in lines if line and not _USUAL.match(line)), None)
    return None if unusual is None else _IN_THREAD.sub("", unusual)[:_LONGEST]
