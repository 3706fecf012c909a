"""Converts an error from Spark to a message: Tailrace's own error if one is wrapped in it, or one about Spark."""

from __future__ import annotations

import re

from tailrace import errors
from tailrace.errors import TailraceError

_OURS = re.compile(r"^(?:.*\W)?tailrace\.errors\.(\w+): (.*)$")
_REMEDY = "  Remedy: "
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
    found = [(index, match) for index, line in enumerate(lines) if (match := _OURS.match(line))]
    if not found:
        return None
    index, match = found[-1]
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


# Failures of Spark and its machine: a text in the message, what it means, how to fix it.
_FOREIGN = (
    (
        "No space left on device",
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
    (
        "SparkContext was shut down",
        "Spark shut itself down during a batch, as it does when its Java process runs out of memory",
        "see the end of Spark's log; if it contains an OutOfMemoryError, raise spark.driver.memory",
    ),
    (
        "Python worker failed to connect back",
        "a Python process did not start within the 10 seconds that Spark waits: the machine was too busy, or somebody "
        "killed it",
        "start again when there is less to do, or give the machine more cores",
    ),
    *(
        (
            sign,
            "a Python process of Spark ended during its work: it was killed, perhaps because memory ran out",
            "start again, the pipeline resumes from its checkpoint; if it happens again, see Spark's log, and `dmesg`",
        )
        for sign in ("Python worker exited unexpectedly", "java.io.EOFException")
    ),
)


def told(error: BaseException) -> str:
    """What an error of Spark says. That the planner's Python process ended is told as Spark tells it of a worker's."""
    stack = getattr(error, "_stackTrace", None)  # of PySpark's errors, which show it only if Spark is told to
    ended = _PLANNER_ENDED.search(stack) if isinstance(stack, str) else None
    return str(error) if ended is None else f"{error}\nPython worker exited unexpectedly: {ended[1]}"


def sentence(error: BaseException, where: str) -> TailraceError:
    """Our own error, or what is known of Spark's; `where` is the checkpoint, which identifies the pipeline."""
    ours = from_spark(error)
    if ours is not None:
        return ours
    for sign, what, remedy in _FOREIGN:
        said = next((line for line in told(error).splitlines() if sign in line), None)
        if said is not None:
            return TailraceError(f"{what} ({said.strip(': ')})", where=where, remedy=remedy)
    return TailraceError(f"Spark stopped the pipeline: {summary(error)}", where=where)


def java_ended(where: str, log: str) -> TailraceError:
    """The error for a Java process that is no more."""
    return TailraceError(
        f"Spark's Java process has ended, its log is {log}",
        where=where,
        remedy="see the end of that log; if it mentions memory, raise spark.driver.memory",
    )


def summary(error: BaseException) -> str:
    """The first line of a foreign error worth showing: Spark's own message without stack and query plan."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = [line for line in lines if re.match(r"^(\w+\.)*\w*(Error|Exception|Warning): ", line)]
    return found[-1] if found else (lines[0] if lines else type(error).__name__)
