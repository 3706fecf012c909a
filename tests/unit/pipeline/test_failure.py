"""Tailrace's own error is found inside Spark's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.errors import SinkError, SourceError, TailraceError
from tailrace.pipeline.failure import from_spark, sentence
from tailrace.spark.java_errors import summary

WRAPPED = """[STREAM_FAILED] Query [id = 5, runId = 6] terminated with exception: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
  File "/x/source.py", line 9, in read
    raise SourceError("first try")
tailrace.errors.SourceError: first try

During handling of the above exception, another exception occurred:

tailrace.errors.SourceError: slot s: 2 things are wrong
  - it is gone
  - so is its log
  Remedy: Take a new snapshot.

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def test_the_last_sentence_of_a_wrapped_text_is_found_with_all_its_lines() -> None:
    found = from_spark(RuntimeError(WRAPPED))
    assert type(found) is SourceError
    assert str(found).splitlines() == [
        "slot s: 2 things are wrong",
        "  - it is gone",
        "  - so is its log",
        "  Remedy: Take a new snapshot.",
    ]


def test_a_cause_of_ours_is_taken_itself() -> None:
    ours = SinkError("full")
    foreign = RuntimeError("wrapped")
    foreign.__cause__ = ours
    assert from_spark(foreign) is ours


def test_ours_without_remedy() -> None:
    found = from_spark(RuntimeError("x\ntailrace.errors.TailraceError: alone"))
    assert type(found) is TailraceError
    assert (str(found), found.remedy) == ("alone", None)


def test_foreign_errors_are_left() -> None:
    assert from_spark(ValueError("tailrace is not a word of theirs")) is None


def test_the_summary_of_a_foreign_error_is_one_line() -> None:
    text = "Job aborted\njava.io.IOException: No space left on device\n\tat java.base/x\n"
    assert summary(RuntimeError(text)) == "java.io.IOException: No space left on device"
    assert summary(RuntimeError("[SOMETHING] went wrong\nplan")) == "[SOMETHING] went wrong"
    assert summary(RuntimeError()) == "RuntimeError"


def test_a_known_failure_of_spark_has_a_remedy() -> None:
    text = "Job aborted\njava.io.IOException: No space left on device\n\tat java.base/x\n"
    found = sentence(RuntimeError(text), "/state")
    assert str(found).startswith(
        "/state: a disk is full (java.io.IOException: No space left on device)\n  Remedy: free "
    )
    assert "spark.driver.memory" in (sentence(RuntimeError("java.lang.OutOfMemoryError: Java heap"), "/s").remedy or "")
    assert str(sentence(RuntimeError(WRAPPED), "/state")).startswith("slot s: 2 things are wrong")
    assert str(sentence(RuntimeError("boom"), "/state")) == "/state: Spark stopped the pipeline: boom"


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat java.lang.Thread",
        "[STREAM_FAILED] Query [id = 5] terminated with exception: java.io.EOFException",
    ],
)
def test_a_killed_python_process_is_a_sentence(text: str) -> None:
    found = sentence(RuntimeError(text), "state")
    assert "a Python process of Spark ended during its work" in found.what
    assert "a restart resumes from the checkpoint" in (found.remedy or "")
    assert "Thread" not in str(found)


HANDLE = "An error occurred while calling o202.start."
NO_FOLDER = "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/out/file"


class Captured(Exception):
    """An error as PySpark raises it: its stack is kept apart from what it says."""

    def __init__(self, said: str, stack: str) -> None:
        super().__init__(said)
        self._stackTrace = stack


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HANDLE}\n: {NO_FOLDER}\n\tat org.apache.hadoop.x(y.java:1)\n", NO_FOLDER),
        (f"{HANDLE}\n: java.io.IOException\n\tat x", "java.io.IOException"),
        (
            f"{HANDLE}\n: java.lang.RuntimeException: no scheme\n\tat x\nCaused by: java.lang.Kind: no class\n\tat x",
            "java.lang.RuntimeException: no scheme (no class)",
        ),
        (
            f"{HANDLE}\n: a.BException: because of c\nCaused by: a.CException: because of c",
            "a.BException: because of c",
        ),
        (HANDLE, HANDLE),
    ],
)
def test_the_summary_of_an_error_that_spark_does_not_translate_is_its_cause(text: str, said: str) -> None:
    assert summary(RuntimeError(text)) == said


def test_the_cause_is_found_in_the_stack_that_pyspark_keeps_apart() -> None:
    stack = (
        "x.SparkException: [TASK]\n\tat x\nCaused by: java.io.IOException: Mkdirs failed to create file:/out\n\tat x"
    )
    query = "[STREAM_FAILED] Query [id = 5-a, runId = 6-b] terminated with exception: "
    said = f"{query}[TASK] Task failed while writing rows to file:/out. SQLSTATE: 58030 SQLSTATE: XXKST"
    error = Captured(said, stack)
    found = sentence(error, "/state", "/out")
    assert str(found).startswith(
        "/out: the sink could not be written: [TASK] Task failed while writing rows to file:/out. "
        "(Mkdirs failed to create file:/out)\n  Remedy: set the sink's `path` to a folder that Spark may write"
    )
    assert str(sentence(error, "/state", "/other")).startswith("/state: Spark stopped the pipeline: [TASK] Task failed")
    full = Captured("[TASK] Task failed", "x\nCaused by: java.io.IOException: No space left on device\n\tat x")
    assert "a disk is full (No space left on device)" in str(sentence(full, "/state", "/out"))


def test_the_end_of_a_file_is_no_end_of_a_process() -> None:
    error = Captured("[BAD] a file is damaged", "x\nCaused by: a.ReadException: java.io.EOFException: /state/1\n")
    assert str(sentence(error, "/s")) == (
        "/s: Spark stopped the pipeline: [BAD] a file is damaged (java.io.EOFException: /state/1)"
    )


def test_a_file_system_without_its_jar() -> None:
    no_class = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
    found = sentence(RuntimeError(f"{HANDLE}\n: java.lang.RuntimeException: {no_class}\n\tat x"), "/s")
    assert "Spark lacks the jar of a file system" in found.what
    assert "spark.jars.packages" in (found.remedy or "")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, sink = tmp_path / "state", tmp_path / "lake"
    checkpoint.mkdir()
    sink.mkdir()
    free = {str(checkpoint): 10**9, str(sink): 4096}
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=free.get(str(place), 10**9)))
    error = RuntimeError("java.io.IOException: No space left on device")
    assert sentence(error, str(checkpoint), str(sink)).where == f"{sink} (4,096 bytes are free)"
    free[str(sink)] = 10**9
    assert sentence(error, str(checkpoint), str(sink)).where == str(checkpoint), "it has space again"
    assert sentence(error, "s3://bucket/state", None).where == "s3://bucket/state"
