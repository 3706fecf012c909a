"""Converts an error from Spark to a message: Tailrace's own error if one is wrapped in it, or one about Spark."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailrace import errors
from tailrace.errors import TailraceError
from tailrace.spark.java_errors import causes, summary

_OURS = re.compile(r"^(?:.*\W)?tailrace\.errors\.(\w+): (.*)$")
_REMEDY = "  Remedy: "
# A disk that has less is full for who writes blocks.
_LITTLE_BYTES = 1 << 20
# What Java finds of a planner's process that has ended: a message that says nothing of it, or no message.
_PLANNER_ENDED = re.compile(
    r"^Caused by: (java\.\w+\.(?:EOFException|\w+: Broken pipe|\w+: Connection reset))$"
    r"(?:\n\s+at (?!.*PythonStreamingSourceRunner).*)*\n\s+at .*PythonStreamingSourceRunner",
    re.MULTILINE,
)


def from_spark(error: BaseException) -> TailraceError | None:
    """The TailraceError that `error` is, was caused by, or prints in a Python traceback; None if there is none.

    Of several in a text the last is taken: a traceback ends with what was finally raised.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, TailraceError):
            return seen
        seen = seen.__cause__
    lines = str(error).splitlines()
    matches = [(index, match) for index, line in enumerate(lines) if (match := _OURS.match(line))]
    if not matches:
        return None
    index, match = matches[-1]
    kind = getattr(errors, match[1], TailraceError)
    return _read(kind, match[2], lines[index + 1 :])


def _read(kind: type[TailraceError], first: str, rest: list[str]) -> TailraceError:
    """The error whose text begins with `first` and continues while lines are indented by two spaces, as ours are."""
    what, remedy = [first], None
    for line in rest:
        if line.startswith(_REMEDY):
            remedy = line.removeprefix(_REMEDY)
            break
        if not line.startswith("  "):
            break
        what.append(line)
    return kind("\n".join(what), remedy=remedy)


# Failures of Spark and its machine: a text in the message or its causes, what it means, how to fix it.
_NO_SPACE = "No space left on device"
_FOREIGN = (
    (
        _NO_SPACE,
        "a disk is full",
        "free space where the checkpoint, the sink or Spark's temporary files (spark.local.dir) lie, and start again; "
        "the pipeline resumes from its checkpoint",
    ),
    (
        "OutOfMemoryError",
        "Spark's Java process ran out of memory",
        "raise spark.driver.memory (or spark.executor.memory on a cluster), or lower maxBytesPerTrigger",
    ),
    (
        "Checksum error: ",
        "a file of the checkpoint is damaged",
        "restore the checkpoint from a copy, or start with a new one, which takes a new snapshot",
    ),
    (
        "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
        "the checkpoint has files in its folders, but no micro-batch",
        "set `checkpoint` to another folder, or empty this one: nothing was read yet",
    ),
    *(
        (
            sign,
            "Spark lacks the jar of a file system that the checkpoint or the sink lies in",
            "name it in spark.jars or spark.jars.packages under `spark` (s3a:// needs org.apache.hadoop:hadoop-aws, of "
            "the version of Spark's own Hadoop jars), or use a path",
        )
        for sign in ("FileSystem not found", "No FileSystem for scheme")
    ),
    (
        "SparkContext was shut down",
        "Spark shut itself down during a batch, as it does when its Java process runs out of memory",
        "see the end of Spark's log; if it contains an OutOfMemoryError, raise spark.driver.memory",
    ),
    (
        "Python worker failed to connect back",
        "a Python process did not start within the 10 seconds that Spark waits: the machine was too busy, or somebody "
        "killed it",
        "give the machine more cores, or less to do; a restart resumes from the checkpoint",
    ),
)
# The same in the message alone: a cause may be the end of a file.
_WORKERS = tuple(
    (
        sign,
        "a Python process of Spark ended during its work: it was killed, perhaps because memory ran out",
        "a restart resumes from the checkpoint; if it happens again, see Spark's log, and `dmesg`",
    )
    for sign in ("Python worker exited unexpectedly", "java.io.EOFException")
)
_SINK_REMEDY = (
    "set the sink's `path` to a folder that Spark may write, on a disk with free space (jars and keys of a store go "
    "under `spark`), and start again; the pipeline resumes from its checkpoint"
)


def told(error: BaseException) -> str:
    """The message of a Spark error. An ended planner process is described as Spark describes an ended worker."""
    stack = getattr(error, "_stackTrace", None)  # of PySpark's errors, which show it only if Spark is told to
    ended = _PLANNER_ENDED.search(stack) if isinstance(stack, str) else None
    return str(error) if ended is None else f"{error}\nPython worker exited unexpectedly: {ended[1]}"


def sentence(error: BaseException, where: str, sink: str | None = None) -> TailraceError:
    """Our own error, or what is known of Spark's; `where` is the checkpoint, which identifies the pipeline.

    `sink` is the sink's path, if it has one: an error that names it is one of the sink.
    """
    ours = from_spark(error)
    if ours is not None:
        return ours
    lines = told(error).splitlines()
    for signs, texts in ((_FOREIGN, [*lines, *causes(error)]), (_WORKERS, lines)):
        for sign, what, remedy in signs:
            said = next((line for line in texts if sign in line), None)
            if said is not None:
                place = _full(where, sink) if sign == _NO_SPACE else where
                return TailraceError(f"{what} ({said.strip(': ')})", where=place, remedy=remedy)
    text = summary(error)
    if sink is not None and sink in text and where not in text:
        # No SinkError: of one of Spark's own, its words say whether it passes.
        return TailraceError(f"the sink could not be written: {text}", where=sink, remedy=_SINK_REMEDY)
    return TailraceError(f"Spark stopped the pipeline: {text}", where=where)


def _full(checkpoint: str, sink: str | None) -> str:
    """Whose disk is full, of the places that a pipeline writes to; the checkpoint where none is any more."""
    for place in (checkpoint, sink, tempfile.gettempdir()):
        if place is None or "://" in place or not Path(place).exists():
            continue
        if (free := shutil.disk_usage(place).free) < _LITTLE_BYTES:
            return f"{place} ({free:,} bytes are free)"
    return checkpoint


@contextmanager
def sentences(where: str, log: str, sink: str | None = None) -> Iterator[None]:
    """Turns what Spark, or the connection to its Java process, fails with in the block into a TailraceError.

    `where` and `sink` are those of `sentence`, `log` is Spark's.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise sentence(error, where, sink) from error
    except (Py4JError, ConnectionError) as error:
        raise java_ended(where, log) from error


def java_ended(where: str, log: str) -> TailraceError:
    """The error for a Java process that is no more."""
    return TailraceError(
        f"Spark's Java process has ended, its log is {log}",
        where=where,
        remedy="see the end of that log; if it mentions memory, raise spark.driver.memory",
    )
