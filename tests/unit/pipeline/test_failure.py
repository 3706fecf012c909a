"""Our sentence is found again in what Spark makes of it."""

from __future__ import annotations

import pytest

from tailrace.errors import SinkError, SourceError, TailraceError
from tailrace.pipeline.failure import from_spark, sentence, summary

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


def test_a_known_trouble_of_spark_has_a_remedy() -> None:
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
    assert "start again, the pipeline resumes from its checkpoint" in (found.remedy or "")
    assert "Thread" not in str(found)
